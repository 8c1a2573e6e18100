/* SPDX-License-Identifier: Apache-2.0 */
/* crm_rest.h: an operation under way: its parameters, checks and answer */
#ifndef CRM_REST_H
#define CRM_REST_H

#include "crm_call.h"
#include "crm_endpoint.h"

/* Where the API lives below the host's root. */
#define CRM_API_BASE "/api/v1"

/* A parameter of the query as the operation's filter has read it. */
typedef struct crm_param_t {
    const crm_filter_t *filter;
    int given;
    const char *bind;
} crm_param_t;

/* The state of a call that an operation serves. */
typedef struct crm_rest_t {
    const crm_endpoint_t *endpoint;
    const char *path_id;        /* the path's {id}; NULL if there is none or
                                   it is no UUID */
    int lenient, strict;        /* Prefer: handling=... */
    crm_param_t *params;        /* one for each filter of the operation */
    apr_int64_t page, page_size;
    const crm_sort_t *sort;
    int ascending;
} crm_rest_t;

/* Return the state of CALL. */
static inline crm_rest_t *crm_rest(const crm_call_t *call)
{
    return call->state;
}

/* A crm_route_t.serve: serve CALL, whose route's data is a crm_endpoint_t. */
crm_error_t *crm_rest_serve(crm_call_t *call);

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

/* Begin SQL for CALL: $1 is the workspace's id, $2 the key's. */
void crm_rest_sql(crm_sql_t *sql, const crm_call_t *call);

/* Add to SQL the condition that the key of $1, $2 is alive at this moment and
 * may do the call's operation (contract 3.2, 3.3): a one-time filter. */
void crm_rest_permit(crm_sql_t *sql, const crm_call_t *call);

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
crm_error_t *crm_rest_refuse(crm_call_t *call, crm_error_t *error,
                             const apr_array_header_t *checks);

/* Read the query's parameters into CALL and set *BODY_P to the body, a JSON
 * object (contract 5.3, 6.1). Begin INPUT, with what is wrong in the query:
 * that is no error yet, since 415, 413 and 400 go before it (contract 2). */
crm_error_t *crm_rest_body(json_object **body_p, crm_input_t *input,
                           crm_call_t *call);

/* Return the bind of the query parameter NAME, NULL if it was not sent. */
const char *crm_rest_param(const crm_call_t *call, const char *name);

/* Read the query's parameters into CALL, whose request has no body that is
 * wanted. Return the 422 or NULL. */
crm_error_t *crm_rest_params(crm_call_t *call);

/* Finish CALL with STATUS and the body {"data": row ROW of RESULT}, whose
 * columns from FIRST_COLUMN on are the shape's. */
void crm_rest_answer(crm_call_t *call, int status, const PGresult *result,
                     int row, int first_column);

#endif /* CRM_REST_H */
