/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_import.h: importing JSON Lines into a workspace */
#ifndef CRMAPICTL_IMPORT_H
#define CRMAPICTL_IMPORT_H

#include "crm_db_conn.h"

/* A callback that gets the number of LINES read so far. */
typedef void (*crm_import_progress_t)(void *baton, apr_int64_t lines);

/* A callback before the commit. */
typedef crm_error_t *(*crm_import_end_t)(void *baton);

/* Import the lines of the descriptor IN into the workspace WORKSPACE_ID over CONN in
 * one transaction and set *COUNT_P to their number without the blank ones. PROGRESS
 * (may be NULL) is called with BATON every 1,000 lines, END at the end of the
 * transaction. crm_shape_init() must have been called. The memory used does not depend
 * on the number of lines. Errors: CRM_E_VALIDATION with the message "line N: FIELD:
 * RULE", several if several lines are refused, each in a line of its own, and those of
 * the database. Then nothing is imported. */
crm_error_t *crm_import(apr_int64_t *count_p, crm_conn_t *conn,
                        const char *workspace_id, int in,
                        crm_import_progress_t progress,
                        crm_import_end_t end, void *baton,
                        apr_pool_t *result_pool);

#endif /* CRMAPICTL_IMPORT_H */
