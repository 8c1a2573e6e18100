/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_settle.h: a table after many rows were inserted at once */
#ifndef CRMAPICTL_SETTLE_H
#define CRMAPICTL_SETTLE_H

#include "crm_db.h"

/* Merge the pending lists of the GIN indexes of TABLE of the schema crmapi, which
 * many rows at once may leave long, and update the planner's statistics of the
 * columns that its other indexes have. Autovacuum may take minutes, and old
 * statistics lead to plans that read whole workspaces. Errors are ignored: the
 * rows are committed, and a role that does not own the table may not do it. */
void ctl_settle(crm_conn_t *conn, const char *table, apr_pool_t *scratch_pool);

#endif /* CRMAPICTL_SETTLE_H */
