/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_outage.h: what error_log says when a database cannot be used */
#ifndef MOD_CRMAPI_OUTAGE_H
#define MOD_CRMAPI_OUTAGE_H

#include "crm_db_conn.h"

#include "mod_crmapi_pool.h"

/* Let mod_dbd log nothing about the servers from MAIN_SERVER on that have a
 * pool: it says for each request, twice, what crmapi_outage_report() says once.
 * A server for which LogLevel names mod_dbd keeps its level. Memory is in
 * PCONF. */
void crmapi_outage_quiet(server_rec *main_server, apr_pool_t *pconf);

/* Register the hooks of child_init around mod_dbd's, which opens the first
 * connections. */
void crmapi_outage_register(void);

/* Log for the server S that the database of POOL cannot be used because of
 * CAUSE, unless that was logged recently. CHECKED: a check has found it, which a busy
 * server may answer later than requests. Scratch memory is in P. */
void crmapi_outage_report(const crmapi_pool_t *pool, int checked,
                          const char *cause, const server_rec *s,
                          apr_pool_t *p);

/* The same after mod_dbd got no connection for POOL: find the cause, unless it
 * was logged recently or another thread does. That takes at most CRMAPI_CHECK_TIME. */
void crmapi_outage_explain(crmapi_pool_t *pool, const server_rec *s,
                           apr_pool_t *p);

/* The same after an error whose line of the log is TEXT, of LEVEL. A server that goes
 * down only says that it ends a session: why there is no other one is said instead.
 * TEXT is logged if it says that itself, or if there is one. */
void crmapi_outage_tell(crmapi_pool_t *pool, const char *text, int level,
                        const server_rec *s, apr_pool_t *p);

/* Warn that the database of POOL gives no more connections than this process has, one
 * of which is CONN, and say why, unless there is no reason any more, or that was logged
 * recently. It takes at most CRMAPI_CHECK_TIME. Scratch memory is in P. */
void crmapi_outage_few(const crmapi_pool_t *pool, const crm_conn_t *conn,
                       const server_rec *s, apr_pool_t *p);

#endif /* MOD_CRMAPI_OUTAGE_H */
