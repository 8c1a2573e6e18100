/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_retention.h: deleting what workspaces keep for some days only */
#ifndef CRMAPID_RETENTION_H
#define CRMAPID_RETENTION_H

#include "crm_db_conn.h"

/* Delete conversations, submissions and events that are older at MOMENT (NULL: now)
 * than their workspaces keep them (contract 14.5), in small batches, over CONN. Set
 * *COUNT_P to the number of rows. It ends early if CONN is unwanted. Errors: those of
 * the database. */
crm_error_t *crmd_retention_run(apr_int64_t *count_p, crm_conn_t *conn,
                                const char *moment, apr_pool_t *scratch_pool);

#endif /* CRMAPID_RETENTION_H */
