/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_import.h: JSON Lines into a workspace, and out of one */
#ifndef CRMAPICTL_IMPORT_H
#define CRMAPICTL_IMPORT_H

#include <stdio.h>

#include "crm_db.h"

/* Called now and then with the number of LINES read so far. */
typedef void (*crm_import_progress_t)(void *baton, apr_int64_t lines);

/* Import the lines of IN into the workspace WORKSPACE_ID over CONN, all or
 * nothing, in one transaction; set *COUNT_P to their number. PROGRESS may be
 * NULL. crm_endpoint_init() must have been called.
 * Errors: CRM_E_VALIDATION, whose message is "line N: FIELD: RULE"; those of
 * the database. Memory does not grow with the number of lines. */
crm_error_t *crm_import(apr_int64_t *count_p, crm_conn_t *conn,
                        const char *workspace_id, FILE *in,
                        crm_import_progress_t progress, void *baton,
                        apr_pool_t *result_pool);

/* Write all of the workspace WORKSPACE_ID to OUT, one snapshot, as lines that
 * crm_import() takes. */
crm_error_t *crm_export(crm_conn_t *conn, const char *workspace_id, FILE *out,
                        apr_pool_t *result_pool);

#endif /* CRMAPICTL_IMPORT_H */
