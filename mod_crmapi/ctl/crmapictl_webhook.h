/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_webhook.h: webhook endpoints and deliveries */
#ifndef CRMAPICTL_WEBHOOK_H
#define CRMAPICTL_WEBHOOK_H

#include "crmapictl.h"

/* The commands. The manual page describes their output. */
crm_error_t *ctl_webhook_add(ctl_t *ctl);
crm_error_t *ctl_webhook_list(ctl_t *ctl);
crm_error_t *ctl_webhook_remove(ctl_t *ctl);
crm_error_t *ctl_webhook_rotate(ctl_t *ctl);
crm_error_t *ctl_webhook_enable(ctl_t *ctl);
crm_error_t *ctl_webhook_disable(ctl_t *ctl);
crm_error_t *ctl_webhook_test(ctl_t *ctl);
crm_error_t *ctl_webhook_deliveries(ctl_t *ctl);
crm_error_t *ctl_webhook_redrive(ctl_t *ctl);

#endif /* CRMAPICTL_WEBHOOK_H */
