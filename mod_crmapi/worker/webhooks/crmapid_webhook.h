/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_webhook.h: delivering webhook events */
#ifndef CRMAPID_WEBHOOK_H
#define CRMAPID_WEBHOOK_H

#include "crmapid_job.h"

/* Handler of "webhook.deliver": make one attempt at a delivery (contract
 * 12). */
crm_error_t *crmd_webhook_deliver(crmd_work_t *work);

#endif /* CRMAPID_WEBHOOK_H */
