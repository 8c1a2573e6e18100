/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_dbd.h: connections from mod_dbd for requests */
#ifndef MOD_CRMAPI_DBD_H
#define MOD_CRMAPI_DBD_H

/* apr_dbd.h first: mod_dbd.h does not include it. */
#include "apr_dbd.h"

#include "mod_dbd.h"

#include "crm_db_conn.h"
#include "crm_error.h"

#include "mod_crmapi_pool.h"

/* The schema of a database is checked again after this time. */
#define CRMAPI_SCHEMA_TRUST apr_time_from_sec(5)

/* Register the hooks by which connections of other modules are counted, too. */
void crmapi_dbd_register(void);

/* The implementations of crm_service_t's acquire, release and add_waiting. */
/* See crm_service_t. */
int crmapi_distributed(void *baton);

crm_error_t *crmapi_acquire(crm_conn_t **conn_p, apr_time_t since, void *baton,
                            apr_pool_t *p);
void crmapi_release(crm_conn_t *conn, void *baton);
int crmapi_add_waiting(int change, void *baton);

/* Set *DBD_P to one of the connections of this process to POOL's database, without
 * waiting, for crmapi_dbd_return(); NULL: it has none, and gets none. Scratch memory
 * is in P. Return 0 if all are in use. */
int crmapi_dbd_borrow(ap_dbd_t **dbd_p, crmapi_pool_t *pool, apr_pool_t *p);

/* Give DBD back to POOL. SERVED: it was usable. */
void crmapi_dbd_return(ap_dbd_t *dbd, crmapi_pool_t *pool, int served);

/* Check that the database of CONN, which belongs to POOL, has the schema of
 * this version. Log for the server S if the result has changed. Errors, in P:
 * CRM_E_UNAVAILABLE, without a log line if the schema has another version. */
crm_error_t *crmapi_schema_check(crmapi_pool_t *pool, crm_conn_t *conn,
                                 const server_rec *s, apr_pool_t *p);

#endif /* MOD_CRMAPI_DBD_H */
