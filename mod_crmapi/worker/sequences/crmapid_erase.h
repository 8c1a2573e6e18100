/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_erase.h: erasures that the API has begun */
#ifndef CRMAPID_ERASE_H
#define CRMAPID_ERASE_H

#include "crmapid_job.h"

/* Handler of "sequence.erase": erase the person whom the job names, if that was not
 * done, and delete messages to erased people from the outbox of the relay maildir
 * (contract 14.4). While something is being sent to the person, it is tried again. */
crm_error_t *crmd_erase_contact(crmd_work_t *work);

#endif /* CRMAPID_ERASE_H */
