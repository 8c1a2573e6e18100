/* SPDX-License-Identifier: Apache-2.0 */
/* crm_call.h: a request under way: its connection, statements and body */
#ifndef CRM_CALL_H
#define CRM_CALL_H

#include <json-c/json.h>

#include "crm_request.h"
#include "crm_route.h"
#include "crm_sql.h"

/* A request under way. */
struct crm_call_t {
    const crm_service_t *service;
    const struct crm_mount_t *mount;
    const crm_request_t *request;
    crm_response_t *response;   /* status 200 until a handler changes it */
    apr_pool_t *pool;           /* the request's */
    const crm_path_t *path;     /* NULL: there is no such path */
    const crm_route_t *route;   /* NULL: the path lacks the method */
    crm_arg_t args[CRM_ROUTE_ARGS]; /* the path's parameters */
    const struct crm_credential_t *credential; /* what KEY is, or NULL */
    crm_limit_key_t key;        /* the API key or intake token, when admitted */
    int confirm;                /* a refusal from memory must be confirmed by
                                   the database now (contract 2.3) */
    crm_conn_t *conn;           /* from the first statement on */
    void *state;                /* the handler's own */
};

/* Set *CONN_P to CALL's connection; take one if it has none. */
crm_error_t *crm_call_conn(crm_conn_t **conn_p, crm_call_t *call);

/* Give CALL's connection back, if it has one. The pipeline does it at the end
 * of each request; a handler that waits does it before. */
void crm_call_release(crm_call_t *call);

/* Run SQL on CALL's connection and set *RESULT_P, which lives as long as the
 * call's pool. With CrmApiRequestIdInDatabase On the session's
 * application_name is set in the same round trip. */
crm_error_t *crm_call_query(PGresult **result_p, crm_call_t *call,
                            crm_sql_t *sql);

/* The same for the statement SQL with its COUNT VALUES. */
crm_error_t *crm_call_run(PGresult **result_p, crm_call_t *call,
                          const char *sql, int count,
                          const char *const *values);

/* Count the time since BEGAN as time that CALL spent on the database. */
void crm_call_count(crm_call_t *call, apr_time_t began);

/* Set *DATA_P, *LEN_P to CALL's body, at most as long as its route allows. No
 * connection is held meanwhile: a slow client costs none. Errors: those of
 * crm_service_t.read_body. */
crm_error_t *crm_call_body(const char **data_p, apr_size_t *len_p,
                           crm_call_t *call);

/* Set *VALUE_P to the JSON value of CALL's body, freed with the call's pool.
 * Errors: CRM_E_UNSUPPORTED_MEDIA_TYPE, CRM_E_BAD_REQUEST, those of
 * crm_call_body(). */
crm_error_t *crm_call_json(json_object **value_p, crm_call_t *call);

/* Set *FIELDS_P (of crm_query_param_t) to the form of CALL's body, which has
 * at most MAX fields, in the call's pool. Errors: those of crm_form_parse() and
 * crm_call_body(). */
crm_error_t *crm_call_form(apr_array_header_t **fields_p, int max,
                           crm_call_t *call);

#endif /* CRM_CALL_H */
