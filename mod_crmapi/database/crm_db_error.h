/* SPDX-License-Identifier: Apache-2.0 */
/* crm_db_error.h: errors of PostgreSQL */
#ifndef CRM_DB_ERROR_H
#define CRM_DB_ERROR_H

#include <libpq-fe.h>

#include "apr_pools.h"

#include "crm_error.h"

/* Return the error of RESULT (NULL: of the connection PG), with its SQLSTATE:
 * 08, 53, 57, 25006, 40P01, 40001, 55P03 → CRM_E_UNAVAILABLE; 23505, 23503,
 * 23514, 22 → CRM_E_CONFLICT, which callers make specific; 42, 3F →
 * CRM_E_UNAVAILABLE (unexpected schema); others CRM_E_INTERNAL. LOG has the
 * server's primary message, without its DETAIL, which quotes values. */
crm_error_t *crm_db_error(const PGresult *result, PGconn *pg,
                          apr_pool_t *result_pool);

#endif /* CRM_DB_ERROR_H */
