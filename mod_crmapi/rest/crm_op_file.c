/* SPDX-License-Identifier: Apache-2.0 */
/* crm_op_file.c: an operation that responds with the bytes of a file */
#include "crm_op_file.h"

#include <string.h>

#include "apr_escape.h"
#include "apr_strings.h"

#include "crm_disposition.h"
#include "crm_op.h"
#include "crm_range.h"
#include "crm_rest.h"
#include "crm_uuid.h"

/* The columns of make_first(). */
enum { NAME, TYPE, SIZE, ID, BYTES };

/* A file that is being sent. */
typedef struct sent_t {
    crm_call_t call;            /* its own: the request's is over */
    const char *workspace_id;
    const char *sql;            /* reads a piece */
    const char *id;
    int number;                 /* of the last piece that was read */
    apr_size_t skip;            /* bytes of the next one that are not sent */
} sent_t;

/* Set *DATA_P and *LEN_P to the bytes of HEX, PostgreSQL's output of a bytea, in
 * POOL. */
static void decode(const char **data_p, apr_size_t *len_p, const char *hex,
                   apr_pool_t *pool)
{
    apr_size_t len = strlen(hex);
    char *data = apr_palloc(pool, len / 2 + 1);

    *len_p = 0;
    *data_p = data;
    if (len > 2) {              /* "\x" */
        apr_unescape_hex(data, hex + 2, (apr_ssize_t)(len - 2), 0, len_p);
    }
}

/* A crm_stream_t.read(): read the next piece. It is missing if the file was
 * deleted meanwhile. */
static crm_error_t *read_piece(const char **data_p, apr_size_t *len_p,
                               crm_stream_t *stream, apr_pool_t *pool)
{
    sent_t *sent = stream->baton;
    const char *values[3];
    PGresult *result;
    crm_error_t *error;

    sent->call.pool = pool;
    values[0] = sent->workspace_id;
    values[1] = sent->id;
    values[2] = apr_itoa(pool, ++sent->number);
    error = crm_call_run(&result, &sent->call, sent->sql, 3, values);
    crm_call_release(&sent->call);
    CRM_ERR(error);
    if (!PQntuples(result)) {
        return crm_error_create(CRM_E_NOT_FOUND, NULL, pool);
    }
    decode(data_p, len_p, PQgetvalue(result, 0, 0), pool);
    crm_db_clear(result, pool);
    if (*len_p <= sent->skip) {
        return crm_error_create(CRM_E_NOT_FOUND, NULL, pool);
    }
    *data_p += sent->skip;
    *len_p -= sent->skip;
    sent->skip = 0;
    if ((apr_off_t)*len_p > stream->left) {
        *len_p = (apr_size_t)stream->left;
    }
    stream->left -= (apr_off_t)*len_p;
    return NULL;
}

/* Make the statement that reads what the file is, and its first piece. */
static void make_first(crm_sql_t *sql, crm_call_t *call)
{
    const crm_endpoint_t *endpoint = crm_rest(call)->endpoint;
    const crm_file_t *file = endpoint->operation->file;

    crm_rest_sql(sql, call);
    crm_sql_adds(sql, "SELECT ", file->name, ", ", file->type, ", ",
                 file->size, ", t.id, (SELECT p.bytes FROM crmapi.",
                 file->pieces, " p WHERE " CRM_SQL_OWN("p") " AND p.",
                 file->key, " = t.id AND p.number = 1) FROM crmapi.",
                 endpoint->resource->name,
                 " t WHERE " CRM_SQL_OWN("t"), NULL);
    crm_op_path(sql, call);
    crm_sql_add(sql, " AND ");
    crm_rest_permit(sql, call, CRM_PERMIT);
}

/* Have the LEFT bytes from FIRST on of SENT's file read when they are sent. */
static void add_stream(crm_call_t *call, sent_t *sent, apr_off_t first,
                       apr_off_t left)
{
    crm_stream_t *stream = apr_pcalloc(call->pool, sizeof(*stream));

    sent->call = *call;
    sent->call.conn = NULL;
    sent->number = (int)(first / CRM_FILE_PIECE);
    sent->skip = (apr_size_t)(first % CRM_FILE_PIECE);
    stream->left = left;
    stream->read = read_piece;
    stream->baton = sent;
    call->response->stream = stream;
}

/* Return whether the If-Range of CALL's request, if it has one, is the tag of the
 * response. A time is not: files have none. */
static int is_same(const crm_call_t *call)
{
    const char *header = crm_request_header(call->request, "If-Range");
    const char *tag = apr_table_get(call->response->headers, "ETag");

    return !header || (tag && !strcmp(header, tag));
}

/* Set *RANGE to the part of a file of SIZE bytes that CALL's response has, and its
 * headers and status. HEAD has no ranges. Errors: CRM_E_RANGE. */
static crm_error_t *find_range(crm_range_t *range, crm_call_t *call,
                               apr_off_t size)
{
    crm_response_t *response = call->response;
    crm_ranged_t ranged = CRM_RANGED_NOT;

    apr_table_setn(response->headers, "Accept-Ranges", "bytes");
    if (!strcmp(call->request->method, "GET") && is_same(call)) {
        ranged = crm_range_read(range, crm_request_header(call->request,
                                                          "Range"), size);
    }
    if (ranged == CRM_RANGED_NEVER) {
        apr_table_setn(response->headers, "Content-Range", apr_psprintf(
                           call->pool, "bytes */%" APR_OFF_T_FMT, size));
        return crm_error_create(CRM_E_RANGE, NULL, call->pool);
    }
    if (ranged == CRM_RANGED_NOT) {
        range->first = 0;
        range->last = size - 1;
        return NULL;
    }
    response->status = 206;
    apr_table_setn(response->headers, "Content-Range", apr_psprintf(
                       call->pool, "bytes %" APR_OFF_T_FMT "-%" APR_OFF_T_FMT
                       "/%" APR_OFF_T_FMT, range->first, range->last, size));
    return NULL;
}

/* Add RANGE of the file in RESULT to CALL's response: what the first piece has of
 * it, and a stream of what follows. Others as of crm_op_file_respond(). */
static void add_bytes(crm_call_t *call, const crm_range_t *range,
                      const char *workspace_id, const char *sql,
                      const PGresult *result)
{
    apr_off_t first = range->first, left = range->last + 1 - first;
    const char *data = "";
    apr_size_t len = 0;
    sent_t *sent;

    if (!PQgetisnull(result, 0, BYTES)) {
        decode(&data, &len, PQgetvalue(result, 0, BYTES), call->pool);
    }
    if (first < (apr_off_t)len) {
        apr_off_t here = (apr_off_t)len - first;

        here = here < left ? here : left;
        crm_buf_add(&call->response->body, data + first, (apr_size_t)here);
        first += here;
        left -= here;
    }
    if (left) {
        sent = apr_pcalloc(call->pool, sizeof(*sent));
        sent->workspace_id = workspace_id;
        sent->sql = sql;
        sent->id = apr_pstrdup(call->pool, PQgetvalue(result, 0, ID));
        add_stream(call, sent, first, left);
    }
}

crm_error_t *crm_op_file_respond(crm_call_t *call, const char *workspace_id,
                                 const char *sql, const PGresult *result)
{
    crm_response_t *response = call->response;
    crm_range_t range;

    CRM_ERR(find_range(&range, call, apr_atoi64(PQgetvalue(result, 0, SIZE))));
    response->content_type = crm_disposition_type(
        crm_db_value(result, 0, TYPE), call->pool);
    apr_table_setn(response->headers, "Content-Disposition", crm_disposition(
                       crm_db_value(result, 0, NAME), call->pool));
    apr_table_setn(response->headers, "Content-Security-Policy", "sandbox");
    add_bytes(call, &range, workspace_id, sql, result);
    return NULL;
}

/* Fill CALL's response from RESULT of make_first(). */
static crm_error_t *respond(crm_call_t *call, const PGresult *result)
{
    const crm_file_t *file = crm_rest(call)->endpoint->operation->file;
    crm_response_t *response = call->response;

    crm_buf_add(&response->body, PQgetvalue(result, 0, ID), CRM_UUID_LEN);
    crm_rest_tag(call, NULL);   /* a file never changes */
    if (response->status != 200) {
        return NULL;
    }
    response->body.len = 0;
    return crm_op_file_respond(call, call->key.workspace_id, apr_pstrcat(
        call->pool, "SELECT p.bytes FROM crmapi.", file->pieces,
        " p WHERE p.workspace_id = $1::uuid AND p.", file->key,
        " = $2::uuid AND p.number = $3::integer", NULL), result);
}

crm_error_t *crm_op_file(crm_call_t *call)
{
    apr_array_header_t *checks = apr_array_make(call->pool, 1,
                                                sizeof(crm_check_t));
    crm_error_t *error = crm_rest_params(call);
    crm_rows_t rows;
    crm_sql_t sql;

    crm_op_check(checks, call);
    if (error) {
        return crm_rest_refuse(call, error, checks);
    }
    make_first(&sql, call);
    CRM_ERR(crm_call_read(&rows, call, &sql, 0));
    if (!rows.count) {
        error = crm_rest_refuse(call, NULL, checks);
        return error ? error
               : crm_rest_no_row(call, crm_rest(call)->endpoint->resource,
                                 "id");
    }
    if (PQgetisnull(rows.result, rows.first, SIZE)) {
        return crm_error_create(CRM_E_NOT_FOUND, "The file was not kept, or is kept"
                                " no longer", call->pool);
    }
    error = respond(call, rows.result);
    crm_rows_drop(&rows);
    return error;
}
