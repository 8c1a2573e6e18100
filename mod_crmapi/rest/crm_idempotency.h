/* SPDX-License-Identifier: Apache-2.0 */
/* crm_idempotency.h: the header Idempotency-Key (contract 13.1)
 *
 * A write with a key is a transaction of two statements, in one round trip. The
 * first claims the key, and makes CRM_IDEMPOTENCY_OPEN true if the write may be
 * done. The second does the write on that condition (crm_rest_permit()) and
 * stores its answer. If an answer was stored before, the response is made from
 * it. */
#ifndef CRM_IDEMPOTENCY_H
#define CRM_IDEMPOTENCY_H

#include "crm_call.h"
#include "crm_endpoint.h"

/* The maximum length of a stored body; crmapi.idempotent_answer checks it. */
#define CRM_IDEMPOTENCY_MAX 8388608

/* A condition in SQL: the key is claimed by this transaction, and the write was
 * not done before. */
#define CRM_IDEMPOTENCY_OPEN \
    "current_setting('crmapi.idempotency', true) = 'open'"

/* The key of a write. */
typedef struct crm_idempotency_t {
    const char *key;            /* its SHA-256, as a bind for bytea */
    const char *lock;           /* number of its advisory lock, as a bind */
    const char *request;        /* SHA-256 of method, path and body, as a bind;
                                   NULL: the body has not been read */
    const PGresult *answer;     /* the stored answer to respond with, or NULL */
} crm_idempotency_t;

/* Set *KEY_P to the key of CALL, a write, in CALL's pool; NULL if it has none.
 * If BODY, read the body for the request's hash, because the operation itself
 * reads none. Errors: a 422 that names the header, those of crm_call_body(). */
crm_error_t *crm_idempotency_read(crm_idempotency_t **key_p, crm_call_t *call,
                                  int body);

/* Add the body that CALL has read to the hash of its key's request. */
void crm_idempotency_seal(crm_call_t *call);

/* Make the statement that claims CALL's key, if the API key permits the
 * operation. It is the first statement of the transaction. It tries the
 * advisory lock of the key and never waits for it. */
void crm_idempotency_claim(crm_sql_t *sql, const crm_call_t *call);

/* Run SQL and set *RESULT_P to its result. If CALL has a key and its body was
 * read, run the claim first, in the same transaction and round trip, and set
 * *CLAIM_P to its result. Otherwise set *CLAIM_P to NULL. */
crm_error_t *crm_idempotency_claim_and(PGresult **result_p, PGresult **claim_p,
                                       crm_call_t *call, crm_sql_t *sql);

/* Check RESULT, the claim's (NULL: there was no claim). Return NULL if the
 * write may be done, or if RESULT has no row, because the API key does not
 * permit the operation. Otherwise return an error: CRM_E_CONFLICT if another
 * request holds the key, CRM_E_VALIDATION if the key belongs to a different
 * request. If the write was done before, return an error only to stop the
 * caller: crm_rest_serve() then responds with the stored answer. */
crm_error_t *crm_idempotency_outcome(crm_call_t *call, const PGresult *result);

/* Run SQL, a write, as crm_idempotency_claim_and() does. Errors: those of
 * crm_idempotency_outcome(). */
crm_error_t *crm_idempotency_query(PGresult **result_p, crm_call_t *call,
                                   crm_sql_t *sql);

/* The same for ROWS. Without a key, other requests may share the statement
 * (crm_call_write()). */
crm_error_t *crm_idempotency_write(crm_rows_t *rows, crm_call_t *call,
                                   crm_sql_t *sql);

/* If CALL has a key, extend SQL, a write that returns at most one row, so that
 * it also stores the answer: STATUS, LOCATION (NULL: none), and the row with
 * the row_columns of SHAPE (NULL: no body). SQL returns the same rows as
 * before. */
void crm_idempotency_keep_row(crm_sql_t *sql, crm_call_t *call, int status,
                              const char *location, const crm_shape_t *shape);

/* The same for a row that has, behind the row_columns of CALL's shape, whether it
 * is new. Then the answer is 201, with FOLDER and the first column as Location;
 * otherwise 200. */
void crm_idempotency_keep_new(crm_sql_t *sql, crm_call_t *call,
                              const char *folder);

/* Make the statement that stores CALL's response, for a transaction that has
 * claimed the key. Errors: CRM_E_VALIDATION if the body is too large. */
crm_error_t *crm_idempotency_keep_response(crm_sql_t *sql, crm_call_t *call);

/* Return ERROR of a transaction that stores an answer. If another request used
 * the key between the snapshot and the lock of the claim, return
 * CRM_E_CONFLICT instead, as if that request were still running: nothing was
 * done, and the client may retry. */
crm_error_t *crm_idempotency_raced(crm_call_t *call, crm_error_t *error);

/* Respond to CALL with the stored answer of its key. */
crm_error_t *crm_idempotency_replay(crm_call_t *call);

#endif /* CRM_IDEMPOTENCY_H */
