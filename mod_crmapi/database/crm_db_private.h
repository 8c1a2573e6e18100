/* SPDX-License-Identifier: Apache-2.0 */
/* crm_db_private.h: what the files of crm_db.h share */
#ifndef CRM_DB_PRIVATE_H
#define CRM_DB_PRIVATE_H

#include "apr_hash.h"

#include "crm_db.h"

/* How many prepared statements a connection keeps; the least recently used
 * goes when another one comes. */
#define CRM_DB_PREPARED_MAX 256

/* A prepared statement of the server's session, or a place for one. */
typedef struct crm_prepared_t {
    char *sql;                  /* malloc()ed; NULL: the place is empty */
    apr_uint32_t number;        /* part of its name */
    apr_uint32_t old_number;    /* of one whose end was asked for; 0: none */
    int prepared;               /* the server has it under that name */
    int outdated;               /* it has to be prepared anew */
    apr_uint64_t used;          /* the connection's clock when last used */
} crm_prepared_t;

struct crm_conn_t {
    PGconn *pg;
    crm_conn_t *next;           /* another connection of the same pool */
    int named;                  /* crm_conn_options_t.named_statements */
    int adopted;                /* somebody else's: crm_conn_adopt() */
    int ready;                  /* was found so, and nothing was sent since */
    apr_interval_time_t timeout; /* of each call of crm_db.h; 0: none */
    apr_time_t until;           /* when the present one times out; 0: never */
    int cancelled;              /* it did, and the server was asked to cancel:
                                   it signals the session twice, perhaps only
                                   in the next statement, so the connection is
                                   not used again */
    int silent;                 /* which did not end the statement either */
    int pid;                    /* of the backend all this is true for */
    int broken;                 /* must be opened anew before its next use */
    int lost;                   /* died in a transaction: no statement may run
                                   as if nothing had happened */
    apr_uint32_t epoch;         /* keeps names apart from those of others */
    apr_uint32_t last_number;   /* of a prepared statement */
    apr_uint64_t clock;         /* counts uses of prepared statements */
    apr_hash_t *by_sql;         /* text → crm_prepared_t */
    crm_prepared_t prepared[CRM_DB_PREPARED_MAX];
};

/* Make CONN usable: notice a connection that has died, open it anew, forget
 * what was true for another backend, set the session. No transaction may be
 * open. Errors: CRM_E_UNAVAILABLE. */
crm_error_t *crm_conn_ready(crm_conn_t *conn, apr_pool_t *result_pool);

/* Forget every prepared statement of CONN, as those of a new session. */
void crm_conn_forget(crm_conn_t *conn);

/* Return TEXT, a message of libpq or of a server, as one line in
 * RESULT_POOL. */
const char *crm_db_line(const char *text, apr_pool_t *result_pool);

/* Start CONN's timeout: what follows must end within it. */
void crm_db_deadline(crm_conn_t *conn);

/* Wait until PQgetResult() has an answer on CONN, or its connection is known
 * to be dead. At the deadline the server is asked to cancel the statement, and
 * has a moment to say that it did. Return 0 if it does not: SILENT is set, and
 * the connection must be given up. */
int crm_db_await(crm_conn_t *conn);

/* Send what CONN has not sent yet. Return 0 if it fails or takes too long. */
int crm_db_flush(crm_conn_t *conn);

/* Receive all answers on CONN and return the last, or the first that failed,
 * or one that begins a COPY. NULL if there is none in time, and CONN is marked
 * as broken then. */
PGresult *crm_db_results(crm_conn_t *conn);

/* Send SQL, which has no parameters, and return crm_db_results(). */
PGresult *crm_db_command(crm_conn_t *conn, const char *sql);

/* Open CONN anew. Return 0 if that fails or takes too long. */
int crm_db_reset(crm_conn_t *conn);

/* Return the error for RESULT (NULL: CONN failed): crm_db_error(), or
 * CRM_E_UNAVAILABLE where CONN's timeout was the reason. */
crm_error_t *crm_db_failure(const crm_conn_t *conn, const PGresult *result,
                            apr_pool_t *result_pool);

#endif /* CRM_DB_PRIVATE_H */
