/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_step.h: sending a step of an enrollment */
#ifndef CRMAPID_STEP_H
#define CRMAPID_STEP_H

#include "crmapid_job.h"

/* Handler of "sequence.step": send a due step (contract 11.10, 11.11). */
crm_error_t *crmd_step_send(crmd_work_t *work);

#endif /* CRMAPID_STEP_H */
