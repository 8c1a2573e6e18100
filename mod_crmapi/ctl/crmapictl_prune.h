/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_prune.h: deleting what no document names (contract 14.1) */
#ifndef CRMAPICTL_PRUNE_H
#define CRMAPICTL_PRUNE_H

#include "crmapictl_apply.h"

/* Delete the rows of all kinds that APPLY's documents do not name, and note them.
 * An intake token is revoked. What a row still owns goes to the row of its kind that
 * --move-to names. Errors: it owns something, and there is none. */
crm_error_t *ctl_prune(ctl_apply_t *apply);

#endif /* CRMAPICTL_PRUNE_H */
