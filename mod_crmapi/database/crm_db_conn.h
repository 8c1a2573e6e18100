/* SPDX-License-Identifier: Apache-2.0 */
/* crm_db_conn.h: connections to PostgreSQL */
#ifndef CRM_DB_CONN_H
#define CRM_DB_CONN_H

#include <libpq-fe.h>

#include "apr_pools.h"

#include "crm_error.h"

/* A connection with its prepared statements, session settings and the backend's
 * pid. Used by one thread at a time. */
typedef struct crm_conn_t crm_conn_t;

/* The names of prepared statements. */
typedef enum crm_names_t {
    CRM_NAMES_OFF,              /* none: each statement is planned anew */
    CRM_NAMES_OWN,              /* the connection has a session of its own */
    CRM_NAMES_SHARED            /* a pooler lends sessions to connections. A
                                   statement has the same name for all of them,
                                   and a session may have it or not */
} crm_names_t;

/* Options of a connection. */
typedef struct crm_conn_options_t {
    crm_names_t named_statements;
    int generic_plans;          /* plan a statement once for all values, and do
                                   not scan a table if an index can be used; 0
                                   for statements that run once */
    apr_interval_time_t timeout; /* of each call, including its retries, in
                                   microseconds; 0: no limit */
    int (*unwanted)(void *baton); /* of crm_conn_open(): for crm_conn_watch(),
                                   from the first connect on; NULL: not */
    void *unwanted_baton;
} crm_conn_options_t;

/* Set *CONN_P to the crm_conn_t of PG, a connection that another component
 * (mod_dbd, a tool) opens and closes. It is created in OWNER_POOL, which must
 * live as long as the connection, and found there by the next call for the same
 * PG.
 * A broken connection, or one whose socket is at end of file, is reset. A
 * transaction that was left open is rolled back. After each connect or reset,
 * prepared statements are forgotten, and the session is set to UTF-8, UTC, ISO
 * dates (only where the server reports another value), no JIT, and what OPTIONS
 * says. Errors: CRM_E_UNAVAILABLE if the reset fails. */
crm_error_t *crm_conn_adopt(crm_conn_t **conn_p, PGconn *pg,
                            const crm_conn_options_t *options,
                            apr_pool_t *owner_pool, apr_pool_t *scratch_pool);

/* Return whether CONN is alive, as far as is known without a round trip. */
int crm_conn_alive(const crm_conn_t *conn);

/* Open a connection to CONNINFO (libpq's syntax). It is closed with
 * RESULT_POOL. Errors: CRM_E_UNAVAILABLE. LOG has libpq's reason without
 * passwords.
 *
 * If a statement takes longer than the timeout of OPTIONS, a cancel request is
 * sent, and the server has two seconds to confirm it. The statement's error is
 * CRM_E_UNAVAILABLE (CRM2005), and the connection is reset before its next
 * use. */
crm_error_t *crm_conn_open(crm_conn_t **conn_p, const char *conninfo,
                           const crm_conn_options_t *options,
                           apr_pool_t *result_pool, apr_pool_t *scratch_pool);

/* Set *NAMES_P and *VALUES_P, arrays in PostgreSQL's text format in
 * RESULT_POOL, to the settings of a session with generic plans. Set for a
 * login, they apply to the sessions of a pooler, too. */
void crm_conn_settings(const char **names_p, const char **values_p,
                       apr_pool_t *result_pool);

/* Let the statements that CONN runs from now on be cancelled when UNWANTED
 * returns nonzero for BATON, because nobody wants their result any more. It is
 * called every 50 milliseconds while a statement runs, and while a connection of
 * crm_conn_open() is opened again, which is then given up. The error of such a
 * statement is CRM_E_REQUEST_TIMEOUT (CRM2008), and the connection is reset
 * before its next use. NULL, or the next crm_conn_adopt(), ends this. Not for
 * writes that somebody waits for: they would be done or not, depending on the
 * moment. */
void crm_conn_watch(crm_conn_t *conn, int (*unwanted)(void *baton),
                    void *baton);

/* Return whether CONN is watched and UNWANTED returns nonzero now. */
int crm_conn_unwanted(const crm_conn_t *conn);

/* KEEP: the statements that CONN runs from now on need what its session has, such
 * as advisory locks. If the session ends, it is not replaced: their error is
 * CRM_E_UNAVAILABLE (CRM2009). 0 ends this. */
void crm_conn_keep(crm_conn_t *conn, int keep);

/* Return the libpq connection of CONN, for LISTEN. */
PGconn *crm_conn_pg(crm_conn_t *conn);

/* Return the number of CONN's session, from 1. It grows with each reset. 0: the
 * connection is known to be dead. */
unsigned crm_conn_session(const crm_conn_t *conn);

#endif /* CRM_DB_CONN_H */
