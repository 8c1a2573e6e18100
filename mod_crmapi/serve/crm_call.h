/* SPDX-License-Identifier: Apache-2.0 */
/* crm_call.h: a request being served: its connection, statements and body */
#ifndef CRM_CALL_H
#define CRM_CALL_H

#include <json-c/json.h>

#include "crm_batch.h"
#include "crm_budget.h"
#include "crm_request.h"
#include "crm_route.h"
#include "crm_sql.h"

/* A request being served. */
struct crm_call_t {
    const crm_service_t *service;
    const struct crm_mount_t *mount;
    const crm_request_t *request;
    crm_response_t *response;   /* status 200 until a handler changes it */
    apr_pool_t *pool;           /* the request's */
    const crm_path_t *path;     /* NULL: the path is unknown */
    const crm_route_t *route;   /* NULL: no route for path and method */
    crm_arg_t args[CRM_ROUTE_ARGS]; /* the path's parameters */
    const struct crm_credential_t *credential; /* the kind of KEY, or NULL */
    crm_limit_key_t key;        /* the API key or intake token, once admitted */
    crm_budget_t budget;        /* of KEY */
    int charged;                /* the call was charged, to BUDGET or as a poll */
    int renewed;                /* the terms of KEY in shared memory were
                                   outdated, nothing was done, and they are
                                   renewed: the call must be served again */
    int confirm;                /* a refusal decided from shared memory must now
                                   be confirmed by the database (contract
                                   2.3) */
    int distributed;            /* the database is: crm_call_dialect() */
    crm_conn_t *conn;           /* taken for the first statement */
    apr_interval_time_t waited; /* for a connection in crm_call_read(), part of
                                   the limit of the next wait */
    const char *body;           /* the body; NULL: it was not read */
    apr_size_t body_len;
    int body_checked;           /* it is valid JSON, as crm_json_check() has it */
    void *state;                /* the handler's state */
    /* Make CALL's response of ROWS, which crm_call_read() is asked for, in any
     * thread, and return 1; or return 0 if these rows need more than that. NULL:
     * only this thread makes the response. It is for the next statement only. */
    int (*answer)(crm_call_t *call, const crm_rows_t *rows);
    int inner;                  /* the response that the route makes is a part of
                                   another one: it is never sent by itself */
};

/* Return whether CALL is a GET or HEAD, which change nothing. */
int crm_call_reads(const crm_call_t *call);

/* Set *CONN_P to CALL's connection. Take one from the pool if it has none. */
crm_error_t *crm_call_conn(crm_conn_t **conn_p, crm_call_t *call);

/* Set CALL's DISTRIBUTED. A connection is taken if this process has never had
 * one. */
crm_error_t *crm_call_dialect(crm_call_t *call);

/* Return CALL's connection to the pool, if it has one. The pipeline does this
 * at the end of each request. A handler that is going to wait does it
 * earlier. */
void crm_call_release(crm_call_t *call);

/* Begin SQL for CALL's database. */
void crm_call_sql(crm_sql_t *sql, const crm_call_t *call);

/* Run SQL on CALL's connection and set *RESULT_P to its result, in CALL's pool. If
 * another statement must return a row before (crm_sql_before()) and returns none,
 * that is the result.
 * In the same round trip, set application_name with CrmApiRequestIdInDatabase
 * On, and for a write the trace that its events get. */
crm_error_t *crm_call_query(PGresult **result_p, crm_call_t *call,
                            crm_sql_t *sql);

/* Run SQL, a SELECT that only reads, and set *ROWS to its rows. If SHARES,
 * concurrent requests may share the statement (crm_batch_run()). Its cost
 * should not depend much on its values then, because each request waits for the
 * rows of all. If CALL->answer is set, another thread may have answered CALL: then
 * CALL->response->sent is set, and ROWS has none. Call crm_rows_drop() when the
 * rows have been written. */
crm_error_t *crm_call_read(crm_rows_t *rows, crm_call_t *call, crm_sql_t *sql,
                           int shares);

/* Run SQL, an INSERT, UPDATE or DELETE of at most one row outside a
 * transaction, and set *ROWS to the row that it returns. If crm_sql_write() was
 * called for SQL, concurrent requests may share the statement
 * (crm_batch_run()). ROWS is the same as for a statement of its own. A request
 * with a trace shares none, because the trace is set for a whole statement. For
 * CALL->answer see crm_call_read().
 * Call crm_rows_drop() when the row has been written. */
crm_error_t *crm_call_write(crm_rows_t *rows, crm_call_t *call, crm_sql_t *sql);

/* Run the statement SQL as crm_call_query() does, with COUNT VALUES. */
crm_error_t *crm_call_run(PGresult **result_p, crm_call_t *call,
                          const char *sql, int count,
                          const char *const *values);

/* Run the COUNT statements SQLS of CALL in order, in one round trip, and set
 * RESULTS[0..COUNT-1] to their results, as crm_db_pipeline() does. They are one
 * transaction, unless BEGIN or COMMIT are among them. */
crm_error_t *crm_call_pipeline(PGresult **results, crm_call_t *call,
                               crm_sql_t *const *sqls, int count);

/* Add the time since BEGAN to the time that CALL spent on the database. */
void crm_call_count(crm_call_t *call, apr_time_t began);

/* Note what has happened in WORKSPACE_ID so far, if CALL's client waits for SECONDS
 * (0: it does not) for messages of VISITOR's chats, or for anything (NULL). Call
 * this before the query for news. */
void crm_call_watch(crm_call_t *call, const char *workspace_id,
                    const char *visitor, int seconds);

/* There is nothing new: let CALL be served again when something has happened, or
 * when its client's time is over, unless it is. */
void crm_call_wait(crm_call_t *call);

/* Set *DATA_P and *LEN_P to CALL's body, limited to the route's MAX_BODY. No
 * connection is held while it is read, so that a slow client does not occupy
 * one. Errors: CRM_E_UNSUPPORTED_MEDIA_TYPE if its Content-Encoding is other
 * than identity (contract 5.3), those of crm_service_t.read_body. */
crm_error_t *crm_call_body(const char **data_p, apr_size_t *len_p,
                           crm_call_t *call);

/* Return whether the body of CALL may have its Content-Type: JSON, or a JSON
 * Merge Patch if it is a PATCH (contract 5.3, 20.4). */
int crm_call_is_json(const crm_call_t *call);

/* Return whether CALL is a PATCH with a JSON Merge Patch. */
int crm_call_merges(const crm_call_t *call);

/* Set *VALUE_P to the JSON value of CALL's body, freed with CALL's pool.
 * Errors: CRM_E_UNSUPPORTED_MEDIA_TYPE, CRM_E_BAD_REQUEST, those of
 * crm_call_body(). */
crm_error_t *crm_call_json(json_object **value_p, crm_call_t *call);

/* Set *FIELDS_P (of crm_query_param_t) to the form in CALL's body, at most MAX
 * fields, in CALL's pool. Errors: those of crm_form_parse() and
 * crm_call_body(). */
crm_error_t *crm_call_form(apr_array_header_t **fields_p, int max,
                           crm_call_t *call);

#endif /* CRM_CALL_H */
