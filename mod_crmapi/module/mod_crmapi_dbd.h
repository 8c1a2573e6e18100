/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_dbd.h: connections from mod_dbd for requests */
#ifndef MOD_CRMAPI_DBD_H
#define MOD_CRMAPI_DBD_H

#include "crm_db_conn.h"
#include "crm_error.h"

#include "mod_crmapi_pool.h"

/* Register the hooks by which connections of other modules are counted, too. */
void crmapi_dbd_register(void);

/* The implementations of crm_service_t's acquire, release and add_waiting. */
/* See crm_service_t. */
int crmapi_distributed(void *baton);

crm_error_t *crmapi_acquire(crm_conn_t **conn_p, apr_time_t since, void *baton,
                            apr_pool_t *p);
void crmapi_release(crm_conn_t *conn, void *baton);
int crmapi_add_waiting(int change, void *baton);

/* Check that the database of CONN, which belongs to POOL, has the schema of
 * this version. Log for the server S if the result has changed. Errors, in P:
 * CRM_E_UNAVAILABLE, without a log line if the schema has another version. */
crm_error_t *crmapi_schema_check(crmapi_pool_t *pool, crm_conn_t *conn,
                                 const server_rec *s, apr_pool_t *p);

#endif /* MOD_CRMAPI_DBD_H */
