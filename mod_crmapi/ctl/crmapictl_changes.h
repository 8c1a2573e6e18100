/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_changes.h: bringing a restored workspace up to date (contract 14.3) */
#ifndef CRMAPICTL_CHANGES_H
#define CRMAPICTL_CHANGES_H

#include "crmapictl_restore.h"

/* Bring the workspace of RESTORE up to date by a dump of changes, whose first line
 * was read, and print how much that was. */
crm_error_t *ctl_restore_changes(ctl_restore_t *restore);

#endif /* CRMAPICTL_CHANGES_H */
