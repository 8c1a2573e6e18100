/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_export.h: exporting a workspace as JSON Lines */
#ifndef CRMAPICTL_EXPORT_H
#define CRMAPICTL_EXPORT_H

#include <stdio.h>

#include "crm_db_conn.h"

/* Write the workspace WORKSPACE_ID to OUT, as of one snapshot, as lines for
 * crm_import(). */
crm_error_t *crm_export(crm_conn_t *conn, const char *workspace_id, FILE *out,
                        apr_pool_t *result_pool);

#endif /* CRMAPICTL_EXPORT_H */
