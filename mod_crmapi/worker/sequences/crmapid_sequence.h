/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_sequence.h: generating the steps of an enrollment */
#ifndef CRMAPID_SEQUENCE_H
#define CRMAPID_SEQUENCE_H

#include "crmapid_job.h"

/* Handler of "generate.steps": make and store the steps of an enrollment
 * (contract 11.6 to 11.8). */
crm_error_t *crmd_sequence_generate(crmd_work_t *work);

/* End the enrollment of WORK as failed with "internal_error". */
crm_error_t *crmd_sequence_give_up(crmd_work_t *work);

#endif /* CRMAPID_SEQUENCE_H */
