/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_settle.h: a table after many rows were inserted at once */
#ifndef CRMAPICTL_SETTLE_H
#define CRMAPICTL_SETTLE_H

#include "crm_db.h"

/* After many rows were inserted into TABLE of the schema crmapi, do what
 * autovacuum would do minutes later. Merge the pending lists of its GIN
 * indexes, which may be long, and update the planner's statistics of the
 * columns of its other indexes: old statistics lead to plans that read whole
 * workspaces. Errors are ignored: the rows are committed, and only the owner of
 * the table may do this. */
void ctl_settle(crm_conn_t *conn, const char *table, apr_pool_t *scratch_pool);

#endif /* CRMAPICTL_SETTLE_H */
