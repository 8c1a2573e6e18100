/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_made.h: rows with secrets, which documents never have: they are made, or
 * taken from files (contract 14.1) */
#ifndef CRMAPICTL_MADE_H
#define CRMAPICTL_MADE_H

#include "crmapictl_apply.h"

/* Insert the row of WORK, a webhook endpoint or an intake token, and set CHANGE's
 * secret, unless it was taken from a file. */
crm_error_t *ctl_made_insert(ctl_apply_t *apply, const ctl_kind_t *kind,
                             const ctl_work_t *work, ctl_change_t *change);

/* Compare the secret of WORK's row with the file that its object names, if it does.
 * An endpoint gets the other secret; the old one signs for 24 hours more. Another
 * token is refused. */
crm_error_t *ctl_made_compare(ctl_apply_t *apply, const ctl_kind_t *kind,
                              const ctl_work_t *work);

#endif /* CRMAPICTL_MADE_H */
