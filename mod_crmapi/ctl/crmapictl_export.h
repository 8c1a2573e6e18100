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

/* Return NULL if NAMES are objects of an export, else what the first that is none must
 * be, in RESULT_POOL. */
const char *crm_export_rule(const apr_array_header_t *names, apr_pool_t *result_pool);

#endif /* CRMAPICTL_EXPORT_H */
