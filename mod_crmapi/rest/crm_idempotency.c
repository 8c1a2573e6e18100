/* SPDX-License-Identifier: Apache-2.0 */
/* crm_idempotency.c: the header Idempotency-Key (contract 13.1) */
#include "crm_idempotency.h"

#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "apr_strings.h"

#include "crm_json.h"
#include "crm_key.h"
#include "crm_rest.h"
#include "crm_sql_print.h"

#define HEADER "Idempotency-Key"
#define KEY_MAX 255

/* SQL condition: the stored answer a has expired. */
#define EXPIRED "a.created_at <= now() - interval '24 hours'"

/* ON CONFLICT clause of the INSERT of an answer. An expired answer is
 * replaced. Any other answer makes the statement fail (23502): it was committed
 * after the snapshot of the claim and before the claim got the lock. Citus
 * takes only immutable functions here, so now() is not one of them. */
#define ON_CONFLICT \
    " ON CONFLICT (workspace_id, key) DO UPDATE SET request = CASE WHEN" \
    " excluded.created_at - a.created_at >= interval '24 hours'" \
    " THEN excluded.request END, status = excluded.status," \
    " location = excluded.location, fields = excluded.fields," \
    " body = excluded.body, created_at = excluded.created_at"

/* Columns of the claim's result. */
enum {
    COLUMN_STATE, COLUMN_STATUS, COLUMN_LOCATION, COLUMN_FIELDS, COLUMN_BODY
};

/* ---- the request --------------------------------------------------------- */

/* Return the SHA-256 of the LEN bytes at DATA as a bind for bytea, in POOL. */
static const char *hash_bind(const char *data, apr_size_t len,
                             apr_pool_t *pool)
{
    char *bind = apr_palloc(pool, CRM_KEY_BIND_SIZE);

    crm_key_bind(bind, data, len);
    return bind;
}

/* Return whether TEXT has 1 to KEY_MAX visible ASCII characters. Two header
 * lines arrive as one value with ", " in between. */
static int is_key(const char *text)
{
    apr_size_t len = 0;

    while (text[len] >= '!' && text[len] <= '~') {
        len++;
    }
    return !text[len] && len >= 1 && len <= KEY_MAX;
}

/* Return the number of the advisory lock of KEY, a bind, in the workspace of
 * CALL. */
static const char *lock_bind(const crm_call_t *call, const char *key)
{
    const char *text = apr_pstrcat(call->pool, call->key.workspace_id, ":",
                                   key, NULL);
    unsigned char hash[CRM_KEY_HASH_LEN];
    apr_int64_t number;

    crm_key_hash(hash, text, strlen(text));
    memcpy(&number, hash, sizeof(number));
    return apr_psprintf(call->pool, "%" APR_INT64_T_FMT, number);
}

static crm_error_t *header_error(const char *rule, apr_pool_t *pool)
{
    crm_error_t *error = NULL;

    crm_error_detail(&error, HEADER, rule, pool);
    return error;
}

void crm_idempotency_seal(crm_call_t *call)
{
    crm_idempotency_t *key = crm_rest(call)->idempotency;
    const char *path = call->request->path, *text;
    apr_size_t len = strlen(path);

    if (!key) {
        return;
    }
    if (len > 1 && path[len - 1] == '/') {
        len--;                  /* the same resource (contract 5.2) */
    }
    text = apr_pstrcat(call->pool, call->request->method, " ",
                       apr_pstrmemdup(call->pool, path, len), "\n",
                       hash_bind(call->body, call->body_len, call->pool),
                       NULL);
    key->request = hash_bind(text, strlen(text), call->pool);
}

crm_error_t *crm_idempotency_read(crm_idempotency_t **key_p, crm_call_t *call,
                                  int body)
{
    const char *text = crm_request_header(call->request, HEADER);
    crm_idempotency_t *key;
    const char *data;
    apr_size_t len;

    *key_p = NULL;
    if (!text) {
        return NULL;
    }
    if (!is_key(text)) {
        return header_error("must have 1 to 255 visible ASCII characters",
                            call->pool);
    }
    key = apr_pcalloc(call->pool, sizeof(*key));
    key->key = hash_bind(text, strlen(text), call->pool);
    key->lock = lock_bind(call, key->key);
    *key_p = key;
    if (body) {
        CRM_ERR(crm_call_body(&data, &len, call));
        crm_idempotency_seal(call);
    }
    return NULL;
}

/* ---- the claim ----------------------------------------------------------- */

void crm_idempotency_claim(crm_sql_t *sql, const crm_call_t *call)
{
    const crm_idempotency_t *key = crm_rest(call)->idempotency;

    crm_rest_sql(sql, call);
    crm_sql_template(sql, "SELECT c.*, set_config('crmapi.idempotency',"
                     " c.state, true) FROM (SELECT CASE WHEN NOT l.mine THEN"
                     " 'busy' WHEN a.key IS NULL OR " EXPIRED " THEN 'open'"
                     " WHEN a.request = ? THEN 'same' ELSE 'other' END AS"
                     " state, a.status, a.location, a.fields, a.body",
                     key->request, "bytea");
    crm_sql_template(sql, " FROM (SELECT pg_try_advisory_xact_lock(?) AS mine)"
                     " l", key->lock, "bigint");
    crm_sql_template(sql, " LEFT JOIN crmapi.idempotent_answer a ON"
                     " " CRM_SQL_OWN("a") " AND a.key = ?) c WHERE ",
                     key->key, "bytea");
    crm_rest_permit(sql, call, CRM_PERMIT_KEY);
}

crm_error_t *crm_idempotency_claim_and(PGresult **result_p, PGresult **claim_p,
                                       crm_call_t *call, crm_sql_t *sql)
{
    const crm_idempotency_t *key = crm_rest(call)->idempotency;
    crm_sql_t claim;
    crm_sql_t *sqls[2] = {&claim, sql};
    PGresult *results[2];

    *claim_p = NULL;
    if (!key || !key->request) {
        return crm_call_query(result_p, call, sql);
    }
    crm_idempotency_claim(&claim, call);
    CRM_ERR(crm_call_pipeline(results, call, sqls, 2));
    *claim_p = results[0];
    *result_p = results[1];
    return NULL;
}

static crm_error_t *busy_error(apr_pool_t *pool)
{
    crm_error_t *error = crm_error_create(CRM_E_CONFLICT, "A request with this"
                                          " Idempotency-Key is under way",
                                          pool);

    error->retry_after = 1;
    return error;
}

crm_error_t *crm_idempotency_outcome(crm_call_t *call, const PGresult *result)
{
    const char *state = result && PQntuples(result)
                        ? PQgetvalue(result, 0, COLUMN_STATE) : "open";

    if (!strcmp(state, "open")) {
        return NULL;
    }
    if (!strcmp(state, "other")) {
        return header_error("was used for a different request", call->pool);
    }
    if (!strcmp(state, "same")) {
        crm_rest(call)->idempotency->answer = result;
    }
    return busy_error(call->pool);
}

/* Begin a transaction, claim CALL's key and set *CLAIM_P to the result. Roll back
 * if the write may not be done. */
static crm_error_t *begin_and_claim(PGresult **claim_p, crm_call_t *call)
{
    crm_sql_t begin, claim;
    crm_sql_t *sqls[2] = {&begin, &claim};
    crm_error_t *error;
    PGresult *results[2];

    crm_sql_init(&begin, call->pool);
    crm_sql_add(&begin, "BEGIN");
    crm_idempotency_claim(&claim, call);
    CRM_ERR(crm_call_pipeline(results, call, sqls, 2));
    *claim_p = results[1];
    error = crm_idempotency_outcome(call, results[1]);
    if (error) {
        crm_db_rollback(call->conn);
    }
    return error;
}

/* crm_idempotency_query() for an SQL that cannot ask for the outcome of the claim:
 * they are two round trips. */
static crm_error_t *query_apart(PGresult **result_p, crm_call_t *call,
                                crm_sql_t *sql)
{
    PGresult *ignored;
    crm_error_t *error = NULL;

    CRM_ERR(begin_and_claim(result_p, call));
    if (PQntuples(*result_p)) {
        error = crm_call_pipeline(result_p, call, &sql, 1);
    }
    if (!error) {
        error = crm_call_run(&ignored, call, "COMMIT", 0, NULL);
    }
    if (error) {
        crm_db_rollback(call->conn);
    }
    return crm_idempotency_raced(call, error);
}

crm_error_t *crm_idempotency_query(PGresult **result_p, crm_call_t *call,
                                   crm_sql_t *sql)
{
    PGresult *claim;

    if (crm_rest(call)->idempotency && !crm_sql_sees_settings(sql)) {
        return query_apart(result_p, call, sql);
    }
    CRM_ERR(crm_idempotency_raced(call, crm_idempotency_claim_and(
                result_p, &claim, call, sql)));
    return crm_idempotency_outcome(call, claim);
}

crm_error_t *crm_idempotency_write(crm_rows_t *rows, crm_call_t *call,
                                   crm_sql_t *sql)
{
    if (!crm_rest(call)->idempotency) {
        return crm_call_write(rows, call, sql);
    }
    memset(rows, 0, sizeof(*rows));
    rows->pool = call->pool;
    CRM_ERR(crm_idempotency_query(&rows->result, call, sql));
    rows->count = PQntuples(rows->result);
    return NULL;
}

/* ---- storing ------------------------------------------------------------- */

/* Add an INSERT of the answer to CALL up to its status and LOCATION. */
static void add_insert(crm_sql_t *sql, const crm_call_t *call,
                       const char *column)
{
    const crm_idempotency_t *key = crm_rest(call)->idempotency;

    crm_sql_adds(sql, "INSERT INTO crmapi.idempotent_answer AS a ("
                 "workspace_id, key, request, status, location, ", column,
                 ") SELECT " CRM_SQL_WORKSPACE ", ", NULL);
    crm_sql_bind(sql, key->key, "bytea");
    crm_sql_template(sql, ", ?, ", key->request, "bytea");
}

/* Add STATUS and LOCATION (NULL: none), the values of add_insert(). */
static void add_status(crm_sql_t *sql, const crm_call_t *call, int status,
                       const char *location)
{
    crm_sql_template(sql, "?", apr_itoa(call->pool, status), "smallint");
    crm_sql_template(sql, ", ?, ", location, "text");
}

/* Return the number of SHAPE's row_columns. */
static int row_columns(const crm_shape_t *shape)
{
    return shape->count + (shape->updated_at == shape->count);
}

/* Return the name of column I of SHAPE's row_columns. */
static const char *column_name(const crm_shape_t *shape, int i)
{
    return i < shape->count ? shape->fields[i]->name : "updated_at";
}

/* Add the object of the columns c1, c2 ... of the row w, which are SHAPE's
 * row_columns. */
static void add_object(crm_sql_t *sql, const crm_shape_t *shape,
                       apr_pool_t *pool)
{
    int count = row_columns(shape);
    apr_array_header_t *names = apr_array_make(pool, count,
                                               sizeof(const char *));

    for (int i = 0; i < count; i++) {
        APR_ARRAY_PUSH(names, const char *) = column_name(shape, i);
    }
    crm_sql_template(sql, "json_object(?, ARRAY[", crm_sql_array(names, pool),
                     "text[]");
    for (int i = 0; i < count; i++) {
        crm_sql_adds(sql, i ? "," : "", "w.c", apr_itoa(pool, i + 1), "::text",
                     NULL);
    }
    crm_sql_add(sql, "])");
}

/* Begin to make SQL, a write whose rows have COUNT columns, one that also stores the
 * answer's fields: call the rows w. */
static void begin_keep(crm_sql_t *sql, const crm_call_t *call, int count)
{
    const char *write = crm_sql_cut(sql);

    crm_sql_add(sql, "WITH w (");
    for (int i = 0; i < count; i++) {
        crm_sql_adds(sql, i ? ",c" : "c", apr_itoa(call->pool, i + 1), NULL);
    }
    crm_sql_adds(sql, ") AS (", write, "), kept AS (", NULL);
    add_insert(sql, call, "fields");
}

static void end_keep(crm_sql_t *sql)
{
    crm_sql_add(sql, " FROM w" ON_CONFLICT ") SELECT * FROM w");
}

void crm_idempotency_keep_row(crm_sql_t *sql, crm_call_t *call, int status,
                              const char *location, const crm_shape_t *shape)
{
    if (!crm_rest(call)->idempotency) {
        return;
    }
    begin_keep(sql, call, shape ? row_columns(shape) : 1);
    add_status(sql, call, status, location);
    if (shape) {
        add_object(sql, shape, call->pool);
    }
    else {
        crm_sql_add(sql, "NULL");
    }
    end_keep(sql);
}

void crm_idempotency_keep_new(crm_sql_t *sql, crm_call_t *call,
                              const char *folder)
{
    const crm_shape_t *shape = crm_rest_shape(call);
    const char *is_new = apr_psprintf(call->pool, "w.c%d",
                                      row_columns(shape) + 1);

    if (!crm_rest(call)->idempotency) {
        return;
    }
    begin_keep(sql, call, row_columns(shape) + 1);
    crm_sql_adds(sql, "CASE WHEN ", is_new, " THEN 201 ELSE 200 END, CASE WHEN ",
                 is_new, NULL);
    crm_sql_template(sql, " THEN ? || w.c1::text END, ", folder, "text");
    add_object(sql, shape, call->pool);
    end_keep(sql);
}

crm_error_t *crm_idempotency_keep_response(crm_sql_t *sql, crm_call_t *call)
{
    const crm_response_t *response = call->response;
    const crm_buf_t *body = &response->body;

    if (body->len > CRM_IDEMPOTENCY_MAX) {
        return header_error("cannot be used: the answer would have more than"
                            " 8 MiB", call->pool);
    }
    crm_rest_sql(sql, call);
    add_insert(sql, call, "body");
    add_status(sql, call, response->status,
               apr_table_get(response->headers, "Location"));
    crm_sql_bind(sql, body->len
                 ? apr_pstrmemdup(call->pool, body->data, body->len) : NULL,
                 "text");
    crm_sql_add(sql, " WHERE ");
    crm_rest_permit(sql, call, CRM_PERMIT);
    crm_sql_add(sql, ON_CONFLICT);
    return NULL;
}

crm_error_t *crm_idempotency_raced(crm_call_t *call, crm_error_t *error)
{
    return crm_error_is(error, "23502")
           && crm_rest(call)->idempotency ? busy_error(call->pool) : error;
}

/* ---- the replay ---------------------------------------------------------- */

/* Add to BODY the field NAME of CALL's resource with VALUE, a stored text or
 * null, if the API shows the field. Return 0 if the resource has no such
 * field. */
static int write_field(crm_buf_t *body, const crm_call_t *call,
                       const char *name, json_object *value)
{
    const crm_field_t *field =
        crm_resource_field(crm_rest(call)->endpoint->resource, name);

    if (!field || field->flags & CRM_F_HIDDEN) {
        return field != NULL;
    }
    crm_buf_puts(body, body->data[body->len - 1] == '{' ? "" : ",");
    crm_buf_json_text(body, name);
    crm_buf_putc(body, ':');
    crm_type_write(body, field, value ? json_object_get_string(value) : NULL,
                   (apr_size_t)json_object_get_string_len(value));
    return 1;
}

/* Write {"data": ...} with the members of FIELDS, the stored text of a row, as
 * crm_rest_answer() writes the row. */
static crm_error_t *write_fields(crm_call_t *call, const char *fields)
{
    crm_buf_t *body = &call->response->body;
    json_object *row = NULL, *updated_at = NULL;
    apr_size_t offset;
    int known = !crm_json_parse(&row, &offset, fields, strlen(fields),
                                call->pool)
                && json_object_is_type(row, json_type_object);

    crm_buf_puts(body, "{\"data\":{");
    if (known) {
        json_object_object_foreach(row, name, value) {
            known &= write_field(body, call, name, value);
        }
    }
    crm_buf_puts(body, "}}");
    json_object_object_get_ex(row, "updated_at", &updated_at);
    crm_rest_tag(call, updated_at ? json_object_get_string(updated_at) : NULL);
    return known ? NULL
           : crm_error_logf(CRM_E_INTERNAL, call->pool, "CRM1006: the stored"
                            " answer to an Idempotency-Key is not one of %s",
                            crm_rest(call)->endpoint->resource->name);
}

crm_error_t *crm_idempotency_replay(crm_call_t *call)
{
    const PGresult *answer = crm_rest(call)->idempotency->answer;
    const char *location = crm_db_value(answer, 0, COLUMN_LOCATION);
    const char *fields = crm_db_value(answer, 0, COLUMN_FIELDS);
    crm_response_t *response = call->response;

    response->body.len = 0;
    if (fields) {
        CRM_ERR(write_fields(call, fields));
    }
    else {
        crm_buf_add(&response->body, PQgetvalue(answer, 0, COLUMN_BODY),
                    (apr_size_t)PQgetlength(answer, 0, COLUMN_BODY));
    }
    response->status = atoi(PQgetvalue(answer, 0, COLUMN_STATUS));
    if (location) {
        apr_table_setn(response->headers, "Location", location);
    }
    apr_table_setn(response->headers, "Idempotent-Replayed", "true");
    return NULL;
}
