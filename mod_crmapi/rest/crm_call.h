/* SPDX-License-Identifier: Apache-2.0 */
/* crm_call.h: an operation under way: what is known, what may be asked */
#ifndef CRM_CALL_H
#define CRM_CALL_H

#include <json-c/json.h>

#include "crm_api.h"
#include "crm_resource.h"
#include "crm_route.h"
#include "crm_sql.h"

/* A parameter of the query as the operation's filter has read it. */
typedef struct crm_param_t {
    const crm_filter_t *filter;
    int given;
    const char *bind;
} crm_param_t;

/* A request whose key is known and whose budget is charged. */
struct crm_call_t {
    const crm_service_t *service;
    const crm_request_t *request;
    crm_response_t *response;
    apr_pool_t *pool;
    crm_limit_key_t key;        /* whose request it is */
    const crm_route_t *route;   /* NULL: no such route */
    const crm_endpoint_t *endpoint; /* NULL: the route lacks the method */
    const char *path_id;        /* the path's {id}, NULL if there is none or
                                   it is no UUID */
    int lenient, strict;        /* Prefer: handling=... */
    crm_param_t *params;        /* one for each filter of the operation */
    apr_int64_t page, page_size;
    const crm_sort_t *sort;
    int ascending;
    crm_conn_t *conn;           /* taken at the first statement */
};

/* Something that must be true in the database for an operation to be done,
 * and what is answered where it is not. */
typedef struct crm_check_t {
    const char *sql;            /* a condition with '?' for BIND */
    const char *bind;
    const char *cast;
    const char *more_sql;       /* its rest with '?' for MORE_BIND */
    const char *more_bind;
    const char *more_cast;
    const char *field;          /* of a 422; NULL: a 404 */
    const char *message;
} crm_check_t;

/* Set *CONN_P to the call's connection, taking one if it has none yet. */
crm_error_t *crm_call_conn(crm_conn_t **conn_p, crm_call_t *call);

/* Give the call's connection back, if it has one. */
void crm_call_release(crm_call_t *call);

/* Run SQL on the call's connection and set *RESULT_P. With the directive
 * CrmApiRequestIdInDatabase the session's application_name goes with it, in
 * the same round trip. Time is added to the response's db_us. */
crm_error_t *crm_call_query(PGresult **result_p, crm_call_t *call,
                            crm_sql_t *sql);

/* Begin SQL for CALL: $1 is the workspace's id, $2 the key's. */
void crm_call_sql(crm_sql_t *sql, crm_call_t *call);

/* Add to SQL the condition that the key of $1, $2 is alive at this moment and
 * may do the call's operation (contract 3.2, 3.3): a one-time filter. */
void crm_call_permit(crm_sql_t *sql, const crm_call_t *call);

/* Add to CHECKS (of crm_check_t) that the resource named in the path exists:
 * a row of RESOURCE with PATH_ID. */
void crm_check_path(apr_array_header_t *checks, const crm_call_t *call,
                    const crm_resource_t *resource);

/* Set CHECK's first half to that row of RESOURCE, called r; MORE_SQL, which
 * closes the bracket, is the caller's. */
void crm_check_path_row(crm_check_t *check, const crm_call_t *call,
                        const crm_resource_t *resource);

/* Add to CHECKS that ID, sent as PATH, is the id of a row of the resource
 * called REF. */
void crm_check_ref(apr_array_header_t *checks, const char *ref,
                   const char *id, const char *path, apr_pool_t *pool);

/* Ask the database, in one statement, why CALL is not done: whether its key
 * is alive and may do this, and which of CHECKS (of crm_check_t; may be NULL)
 * do not hold. Return the error that comes first in the order of contract 2,
 * ERROR (may be NULL) among them, with all details of 422s together; NULL if
 * nothing is found wrong. */
crm_error_t *crm_call_refuse(crm_call_t *call, crm_error_t *error,
                             const apr_array_header_t *checks);

/* Read the query's parameters into CALL and set *BODY_P to the body, a JSON
 * object (contract 5.3, 6.1). Begin INPUT, with what is wrong in the query:
 * that is no error yet, since 415, 413 and 400 go before it (contract 2). */
crm_error_t *crm_call_body(json_object **body_p, crm_input_t *input,
                           crm_call_t *call);

/* Return the bind of the query parameter NAME, NULL if it was not sent. */
const char *crm_call_param(const crm_call_t *call, const char *name);

/* Read the query's parameters into CALL, whose request has no body that is
 * wanted. Return the 422 or NULL. */
crm_error_t *crm_call_params(crm_call_t *call);

/* Finish CALL with STATUS and the body {"data": row ROW of RESULT}, whose
 * columns from FIRST_COLUMN on are the shape's. */
void crm_call_answer(crm_call_t *call, int status, const PGresult *result,
                     int row, int first_column);

#endif /* CRM_CALL_H */
