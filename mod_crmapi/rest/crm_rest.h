/* SPDX-License-Identifier: Apache-2.0 */
/* crm_rest.h: serving an operation: its parameters, checks and response */
#ifndef CRM_REST_H
#define CRM_REST_H

#include "crm_call.h"
#include "crm_cursor.h"
#include "crm_endpoint.h"
#include "crm_etag.h"
#include "crm_idempotency.h"
#include "crm_params.h"

/* The state of a call to an operation. */
typedef struct crm_rest_t {
    const crm_endpoint_t *endpoint;
    const char *path_id;        /* the path's {id}; NULL if the path has none or
                                   it is not a UUID */
    const char *row_id;         /* the second id of the path of a row below
                                   another; as PATH_ID */
    int lenient;                /* Prefer: handling=lenient */
    int strict;                 /* unknown parameters are refused: Prefer:
                                   handling=strict, or the vhost does it */
    crm_idempotency_t *idempotency; /* the key of a write, or NULL */
    const char *location;       /* of the row that is created, or NULL */
    crm_param_t *params;        /* one for each filter of the operation */
    apr_int64_t page, page_size;
    int wait;                   /* seconds for which an empty page may wait */
    const crm_sort_t *sort;
    int ascending;
    const char *cursor;         /* the parameter; NULL: pages have numbers */
    const crm_cursor_t *after;  /* its content; NULL: the beginning */
    apr_uint64_t list;          /* hash of the list, for crm_cursor_write() */
    const crm_etags_t *match;   /* If-Match; NULL: it was not sent, or the kind
                                   does not read it */
    const crm_etags_t *none_match; /* the same of If-None-Match */
} crm_rest_t;

/* Return the state of CALL. */
static inline crm_rest_t *crm_rest(const crm_call_t *call)
{
    return call->state;
}

/* A crm_route_t.serve: serve CALL, whose route's data is a crm_endpoint_t. */
crm_error_t *crm_rest_serve(crm_call_t *call);

/* A condition that must hold in the database for an operation to be done, and
 * the error if it does not. */
typedef struct crm_check_t {
    const char *row;            /* a table: its row r has the id BIND */
    const char *sql;            /* without ROW: a condition with '?' for BIND */
    const char *bind;
    const char *cast;
    const char *more_sql;       /* its second part with '?' for MORE_BIND */
    const char *more_bind;
    const char *more_cast;
    const char *field;          /* field of a 422; NULL: respond with 404 */
    const crm_resource_t *missing; /* what the 404 is about */
    int precondition;           /* respond with 412 */
    const char *message;        /* NULL: crm_ref_rule() of ROW */
} crm_check_t;

/* Begin SQL for CALL. Its first values are the workspace's id
 * (CRM_SQL_WORKSPACE) and that of the key's terms (CRM_SQL_TERMS). */
void crm_rest_sql(crm_sql_t *sql, const crm_call_t *call);

/* Add to SQL, which crm_rest_sql() has begun for CALL, what it needs at PLACE to
 * ask whether the key permits the operation. */
void crm_rest_permit(crm_sql_t *sql, const crm_call_t *call,
                     crm_permit_t place);

/* Return the 503 of CALL, in its pool, with a Retry-After: the API of its workspace is
 * closed while that moves (contract 14.3). */
crm_error_t *crm_rest_closed(const crm_call_t *call);

/* Return the 404 of CALL that there is no RESOURCE with this WHAT ("id"). It is the
 * same for a row of another workspace (contract 2.1). */
crm_error_t *crm_rest_no_row(const crm_call_t *call,
                             const crm_resource_t *resource, const char *what);

/* Set *MESSAGE_P, in CALL's pool, to what is wrong with a field that refers to the row
 * ID of the table ROW, which does not exist: into which one it was merged (contract
 * 20.5), else crm_ref_rule(). */
crm_error_t *crm_rest_no_ref(const char **message_p, crm_call_t *call,
                             const char *row, const char *id);

/* Add to CHECKS (of crm_check_t) that the row of RESOURCE that the path names
 * exists. */
void crm_check_path(apr_array_header_t *checks, const crm_call_t *call,
                    const crm_resource_t *resource);

/* The same for a row below another: both ids of the path. */
void crm_check_path_below(apr_array_header_t *checks, const crm_call_t *call);

/* Set the first part of CHECK to the condition of crm_check_path(), in which the row is
 * called r. The caller sets MORE_SQL, which must close the parenthesis. */
void crm_check_path_row(crm_check_t *check, const crm_call_t *call,
                        const crm_resource_t *resource);

/* Add to CHECKS that the resource REF has a row with the id ID. The error names
 * the field PATH. */
void crm_check_ref(apr_array_header_t *checks, const char *ref,
                   const char *id, const char *path);

/* Find out with one statement why CALL is refused: whether its key is alive and
 * may do the operation, and which of CHECKS (of crm_check_t, may be NULL) fail.
 * Of these errors and ERROR (may be NULL), return the one that comes first in
 * contract 2, or NULL if there is none. The details of all 422s are combined.
 * The error or stored answer of an Idempotency-Key precedes the CHECKS:
 * crm_idempotency_outcome(). */
crm_error_t *crm_rest_refuse(crm_call_t *call, crm_error_t *error,
                             const apr_array_header_t *checks);

/* Read the query's parameters into CALL and set *BODY_P to the body, a JSON
 * object (contract 5.3, 6.1). Initialise INPUT with the errors of the
 * parameters. They are not returned, since 415, 413 and 400 precede them
 * (contract 2). */
crm_error_t *crm_rest_body(json_object **body_p, crm_input_t *input,
                           crm_call_t *call);

/* The same for an operation that has no fields: the body is empty or an object
 * without any. Unlike crm_rest_body(), return the errors of the parameters,
 * too. */
crm_error_t *crm_rest_no_body(crm_call_t *call);

/* Add to INPUT that the fields of BODY, an object, are not known, but KNOWN (may
 * be NULL), unless INPUT is lenient (contract 6.2). */
void crm_rest_unknown(crm_input_t *input, json_object *body,
                      const char *known);

/* Return the bind of the query parameter NAME, NULL if it was not sent. */
const char *crm_rest_param(const crm_call_t *call, const char *name);

/* Return the shape of CALL's rows, with what its parameter "include" names. */
const crm_shape_t *crm_rest_shape(const crm_call_t *call);

/* If CALL's endpoint is tagged, add the ETag of the response, whose body is
 * complete and shows a row with UPDATED_AT. If the request is a read whose If-Match
 * has not the same tag, make the response a 412; if its If-None-Match has it, a 304
 * without a body (contract 13.2; RFC 9110, 13.2.2). */
void crm_rest_tag(crm_call_t *call, const char *updated_at);

/* Respond to CALL with STATUS and the body {"data": row ROW of RESULT}, whose
 * columns are the row_columns of crm_rest_shape(), and crm_rest_tag(). */
void crm_rest_answer(crm_call_t *call, int status, const PGresult *result,
                     int row);

#endif /* CRM_REST_H */
