/* SPDX-License-Identifier: Apache-2.0 */
/* crm_db_prepared.h: the prepared statements of a connection */
#ifndef CRM_DB_PREPARED_H
#define CRM_DB_PREPARED_H

#include "apr_hash.h"

#include "crm_key.h"

#include "crm_db_conn.h"

/* The maximum number of prepared statements per connection. The least recently
 * used is replaced. */
#define CRM_DB_PREPARED_MAX 256

/* The maximum number of statements of a connection with shared names, which are
 * never deallocated. A statement gets one when it is used for the
 * CRM_DB_SHARED_FROMth time. */
#define CRM_DB_SHARED_MAX 128
#define CRM_DB_SHARED_FROM 3

/* An entry for a prepared statement of the session. */
typedef struct crm_prepared_t {
    char *sql;                  /* from malloc(); NULL: unused entry */
    apr_uint32_t number;        /* part of its name */
    apr_uint32_t old_number;    /* a statement to deallocate; 0: none */
    int prepared;               /* the server has it under that name */
    int outdated;               /* must be prepared again */
    apr_uint64_t used;          /* the connection's clock when last used */
    /* For CRM_NAMES_SHARED: */
    int uses;                   /* number of uses without a name */
    int named;                  /* its name is made from HASH */
    unsigned char hash[CRM_KEY_HASH_LEN];
} crm_prepared_t;

/* The messages sent for a statement. Each has an answer. */
#define CRM_STEP_DEALLOCATE 1
#define CRM_STEP_PREPARE 2
#define CRM_STEP_EXECUTE 4

/* The name of a prepared statement. */
typedef char crm_prepared_name_t[80];

/* Return, in POOL, an empty table from texts to entries. */
apr_hash_t *crm_prepared_table(apr_pool_t *pool);

/* Set NAME to the name of PREPARED, an entry of CONN, and return it. */
const char *crm_prepared_name(crm_prepared_name_t name, const crm_conn_t *conn,
                              const crm_prepared_t *prepared);

/* Return CONN's entry for SQL, a new one if there is none. Entries used after
 * AFTER are not replaced. Return NULL if no entry is left. */
crm_prepared_t *crm_prepared_find(crm_conn_t *conn, const char *sql,
                                  apr_uint64_t after);

/* Count a use of SQL and return CONN's entry for it, as crm_prepared_find()
 * does, if SQL has a shared name; otherwise NULL. */
crm_prepared_t *crm_prepared_shared(crm_conn_t *conn, const char *sql,
                                    apr_uint64_t after);

/* Update PREPARED after STEP succeeded (OK) or failed. */
void crm_prepared_note(crm_prepared_t *prepared, int step, int ok);

/* Forget all prepared statements of CONN. */
void crm_prepared_forget(crm_conn_t *conn);

#endif /* CRM_DB_PREPARED_H */
