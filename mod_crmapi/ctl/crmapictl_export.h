/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_export.h: exporting a workspace as JSON Lines */
#ifndef CRMAPICTL_EXPORT_H
#define CRMAPICTL_EXPORT_H

#include <stdio.h>

#include "apr_tables.h"

#include "crm_db_conn.h"

/* Write the workspace WORKSPACE_ID to OUT, as of one snapshot, as lines for
 * crm_import(): the objects NAMES (const char *), or if it is NULL all. */
crm_error_t *crm_export(crm_conn_t *conn, const char *workspace_id,
                        const apr_array_header_t *names, FILE *out,
                        apr_pool_t *result_pool);

/* Return the first of NAMES that is no object of an export, or NULL. */
const char *crm_export_unknown(const apr_array_header_t *names);

#endif /* CRMAPICTL_EXPORT_H */
