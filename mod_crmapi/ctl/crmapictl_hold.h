/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_hold.h: holding what sends, and releasing it (contract 14.2) */
#ifndef CRMAPICTL_HOLD_H
#define CRMAPICTL_HOLD_H

#include "crmapictl.h"

/* Close the API of the workspace ID, which must be held, and record it. Return when
 * all transactions have ended that may not have seen it: what is read from then on has
 * all that was acknowledged. */
crm_error_t *ctl_hold_close(ctl_t *ctl, const char *id);

/* The commands of the same names: see the table in crmapictl.c. */
crm_error_t *ctl_hold(ctl_t *ctl);
crm_error_t *ctl_release(ctl_t *ctl);
crm_error_t *ctl_workspace_hold(ctl_t *ctl);
crm_error_t *ctl_workspace_release(ctl_t *ctl);

#endif /* CRMAPICTL_HOLD_H */
