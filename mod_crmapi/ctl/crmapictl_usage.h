/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_usage.h: what a workspace has used (contract 14.7) */
#ifndef CRMAPICTL_USAGE_H
#define CRMAPICTL_USAGE_H

#include "crmapictl.h"

/* usage: print requests, messages, webhooks and bytes of a workspace by day. */
crm_error_t *ctl_usage(ctl_t *ctl);

#endif /* CRMAPICTL_USAGE_H */
