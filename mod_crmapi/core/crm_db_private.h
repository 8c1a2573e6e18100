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
    apr_interval_time_t timeout; /* for each answer; 0: none */
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

#endif /* CRM_DB_PRIVATE_H */
