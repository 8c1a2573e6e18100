/* SPDX-License-Identifier: Apache-2.0 */
/* crm_call.c: a request being served: its connection, statements and body */
#include "crm_call.h"

#include <string.h>

#include "apr_strings.h"
#include "apr_time.h"

#include "crm_form.h"
#include "crm_json.h"
#include "crm_media.h"
#include "crm_serve.h"
#include "crm_sql_print.h"
#include "crm_time.h"

/* The maximum size of the values of a write that shares a statement, in
 * bytes. */
#define SHARED_MAX 16384

void crm_call_count(crm_call_t *call, apr_time_t began)
{
    call->response->db_us += crm_time_monotonic() - began;
}

int crm_call_reads(const crm_call_t *call)
{
    const char *method = call->request->method;

    return !strcmp(method, "GET") || !strcmp(method, "HEAD");
}

/* Set *CONN_P to CALL's connection. The rate limit store is asked first, so that
 * both answer at the same time. The time limit of the wait for a connection
 * counts from SINCE. */
static crm_error_t *acquire(crm_conn_t **conn_p, apr_time_t since,
                            crm_call_t *call)
{
    if (!call->conn) {
        apr_time_t began = crm_time_monotonic();
        crm_error_t *error = call->service->acquire(&call->conn, since,
                                                    call->request->baton,
                                                    call->pool);

        crm_call_count(call, began);
        CRM_ERR(error);
        if (crm_call_reads(call)) {     /* else it must not be cancelled */
            crm_conn_watch(call->conn, call->service->aborted,
                           call->request->baton);
        }
        if (call->budget.undecided) {
            crm_store_send(call->budget.store);
        }
    }
    *conn_p = call->conn;
    return NULL;
}

crm_error_t *crm_call_conn(crm_conn_t **conn_p, crm_call_t *call)
{
    return acquire(conn_p, crm_time_monotonic() - call->waited, call);
}

crm_error_t *crm_call_dialect(crm_call_t *call)
{
    int (*ask)(void *) = call->service->distributed;
    int known = ask ? ask(call->request->baton) : 0;
    crm_conn_t *conn;

    if (known < 0) {
        CRM_ERR(crm_call_conn(&conn, call));
        known = ask(call->request->baton);
        crm_call_release(call);
    }
    call->distributed = known > 0;
    return NULL;
}

void crm_call_release(crm_call_t *call)
{
    if (call->conn) {
        call->service->release(call->conn, call->request->baton);
        call->conn = NULL;
    }
}

/* A setting that a request makes for its statements: SQL with VALUE as $1. */
typedef struct setting_t {
    const char *sql;
    const char *value;
} setting_t;

enum { SETTINGS = 2 };

/* Return the trace for the events of CALL, NULL if CALL has none or only
 * reads. */
static const char *trace_of(const crm_call_t *call)
{
    return crm_call_reads(call) ? NULL : call->request->trace;
}

/* Set SETTINGS to those of CALL and return their number. The trace is set for
 * the transaction only, so that the next request has none. */
static int settings_of(setting_t *settings, crm_call_t *call)
{
    const char *trace = trace_of(call);
    int n = 0;

    if (call->service->settings.request_id_in_database) {
        settings[n].sql = "SELECT set_config('application_name', $1, false)";
        settings[n++].value = apr_pstrcat(call->pool, "crmapi ",
                                          call->request->request_id, NULL);
    }
    if (trace) {
        settings[n].sql = "SELECT set_config('crmapi.trace', $1, true)";
        settings[n++].value = trace;
    }
    return n;
}

/* Make the N SETTINGS and run the COUNT statements STMTS, in one round trip. */
static crm_error_t *pipeline_with(PGresult **results, crm_call_t *call,
                                  crm_conn_t *conn, const setting_t *settings,
                                  int n, const crm_stmt_t *stmts, int count)
{
    apr_size_t sum = (apr_size_t)(n + count);
    crm_stmt_t *all = apr_palloc(call->pool, sum * sizeof(*all));
    PGresult **received = apr_palloc(call->pool, sum * sizeof(*received));

    for (int i = 0; i < n; i++) {
        all[i].sql = settings[i].sql;
        all[i].count = 1;
        all[i].values = &settings[i].value;
    }
    memcpy(all + n, stmts, (apr_size_t)count * sizeof(*all));
    CRM_ERR(crm_db_pipeline(received, conn, all, n + count, call->pool));
    memcpy(results, received + n, (apr_size_t)count * sizeof(*results));
    return NULL;
}

static crm_error_t *run(PGresult **results, crm_call_t *call,
                        const crm_stmt_t *stmts, int count)
{
    setting_t settings[SETTINGS];
    int n = settings_of(settings, call);
    crm_error_t *error;
    crm_conn_t *conn;
    apr_time_t began;

    CRM_ERR(crm_call_conn(&conn, call));
    began = crm_time_monotonic();
    error = n ? pipeline_with(results, call, conn, settings, n, stmts, count)
            : count == 1 ? crm_db_query(results, conn, stmts, call->pool)
            : crm_db_pipeline(results, conn, stmts, count, call->pool);
    crm_call_count(call, began);
    return error;
}

crm_error_t *crm_call_pipeline(PGresult **results, crm_call_t *call,
                               crm_sql_t *const *sqls, int count)
{
    crm_stmt_t *stmts = apr_palloc(call->pool,
                                   (apr_size_t)count * sizeof(*stmts));

    for (int i = 0; i < count; i++) {
        crm_sql_stmt(&stmts[i], sqls[i]);
    }
    return run(results, call, stmts, count);
}

void crm_call_sql(crm_sql_t *sql, const crm_call_t *call)
{
    crm_sql_init(sql, call->pool);
    sql->distributed = call->distributed;
}

crm_error_t *crm_call_query(PGresult **result_p, crm_call_t *call,
                            crm_sql_t *sql)
{
    crm_stmt_t stmt;

    if (crm_sql_before(&stmt, sql)) {
        CRM_ERR(run(result_p, call, &stmt, 1));
        if (!PQntuples(*result_p)) {
            return NULL;
        }
    }
    crm_sql_stmt(&stmt, sql);
    return run(result_p, call, &stmt, 1);
}

crm_error_t *crm_call_run(PGresult **result_p, crm_call_t *call,
                          const char *sql, int count,
                          const char *const *values)
{
    crm_stmt_t stmt = {sql, count, values};

    return run(result_p, call, &stmt, 1);
}

/* A call that shares a statement. */
typedef struct sharer_t {
    crm_call_t *call;
    apr_int64_t db_us;          /* before */
    apr_time_t began;
} sharer_t;

/* Set the time that SHARER's call has spent on the database. */
static void count_shared(const sharer_t *sharer)
{
    sharer->call->response->db_us = sharer->db_us;
    crm_call_count(sharer->call, sharer->began);
}

/* The functions of a crm_conn_source_t whose baton is a sharer_t. */

static crm_error_t *source_acquire(crm_conn_t **conn_p, apr_time_t since,
                                   void *baton)
{
    return acquire(conn_p, since, ((sharer_t *)baton)->call);
}

/* The thread has the result of a statement, and wakes those who share it. Each
 * of them needs the rate limit store's answer next. */
static void source_release(void *baton)
{
    crm_call_t *call = ((sharer_t *)baton)->call;

    crm_call_release(call);
    if (call->budget.undecided) {
        crm_store_take(call->budget.store);
    }
}

static int source_add_waiting(int change, void *baton)
{
    const crm_call_t *call = ((sharer_t *)baton)->call;

    return call->service->add_waiting(change, call->request->baton);
}

/* Return whether CALL is admitted. If the rate limit store does not admit it, CALL's
 * own thread refuses it, or finds out whether the store is still away. */
static int is_admitted(crm_call_t *call)
{
    crm_budget_t *budget = &call->budget;

    return !budget->undecided
           || (crm_store_admits(budget->store, &budget->check)
               && !crm_budget_settle(budget, call->pool));
}

static crm_answered_t source_answer(const crm_rows_t *rows, void *baton)
{
    crm_call_t *call = ((sharer_t *)baton)->call;
    crm_response_t *response = call->response;
    crm_answered_t answered = CRM_ANSWERED_NOT;

    count_shared(baton);
    if (is_admitted(call) && call->answer(call, rows)) {
        answered = call->service->send(call->request->baton);
    }
    if (answered == CRM_ANSWERED_NOT) {
        response->body.len = 0;
    }
    response->sent = answered != CRM_ANSWERED_NOT;
    return answered;
}

/* Return the connection of CALL's client if another thread may answer CALL. */
static int client_of(const crm_call_t *call)
{
    return call->answer && !call->inner && call->service->client
           ? call->service->client(call->request->baton) : -1;
}

/* Try to run SQL together with other requests. */
static crm_error_t *share(crm_rows_t *rows, crm_call_t *call, crm_sql_t *sql)
{
    sharer_t sharer = {call, call->response->db_us, crm_time_monotonic()};
    const crm_conn_source_t source = {
        source_acquire, source_release, source_add_waiting,
        call->service->settings.database_wait, &sharer, client_of(call),
        call->service->settings.clients_max, source_answer
    };
    crm_batch_part_t part;
    crm_error_t *error;

    error = crm_batch_run(rows, &part, call->service->batcher, sql, &source,
                          call->pool);
    if (!part.answered) {
        count_shared(&sharer);
    }
    call->response->idle = part.idle;
    call->response->batched = part.sent > 1 ? part.sent : 0;
    call->waited = part.waited;
    return error;
}

/* Run SQL in a statement of its own. */
static crm_error_t *run_alone(crm_rows_t *rows, crm_call_t *call,
                              crm_sql_t *sql)
{
    CRM_ERR(crm_call_query(&rows->result, call, sql));
    rows->first = 0;
    rows->count = PQntuples(rows->result);
    return NULL;
}

crm_error_t *crm_call_read(crm_rows_t *rows, crm_call_t *call, crm_sql_t *sql,
                           int shares)
{
    memset(rows, 0, sizeof(*rows));
    rows->pool = call->pool;
    if (shares && call->service->batcher && !call->conn
        && crm_sql_is_shared(sql)) {
        CRM_ERR(share(rows, call, sql));
    }
    call->answer = NULL;
    return rows->result || call->response->sent ? NULL
           : run_alone(rows, call, sql);
}

/* Return whether the values of SQL are small enough to share a statement. */
static int is_small(const crm_sql_t *sql)
{
    apr_size_t len = 0;

    for (int i = 0; i < sql->binds->nelts && len <= SHARED_MAX; i++) {
        const char *value = APR_ARRAY_IDX(sql->binds, i, const char *);

        len += value ? strlen(value) : 0;
    }
    return len <= SHARED_MAX;
}

crm_error_t *crm_call_write(crm_rows_t *rows, crm_call_t *call, crm_sql_t *sql)
{
    memset(rows, 0, sizeof(*rows));
    rows->pool = call->pool;
    if (sql->row && call->service->batcher && !call->conn && !trace_of(call)
        && crm_sql_is_shared(sql) && is_small(sql)) {
        CRM_ERR(share(rows, call, sql));
    }
    call->answer = NULL;
    if (rows->shared && !rows->count) {
        crm_rows_drop(rows);
    }
    return rows->result || call->response->sent ? NULL
           : run_alone(rows, call, sql);
}

/* Return whether the body of REQUEST is encoded (RFC 9110, section 8.4). */
static int is_encoded(const crm_request_t *request)
{
    static const char identity[] = "identity";
    const char *at = crm_request_header(request, "Content-Encoding");

    for (at = at ? at + strspn(at, ", \t") : ""; *at;
         at += strspn(at, ", \t")) {
        size_t len = strcspn(at, ", \t");

        if (len != sizeof(identity) - 1 || strncasecmp(at, identity, len)) {
            return 1;
        }
        at += len;
    }
    return 0;
}

void crm_call_watch(crm_call_t *call, const char *workspace_id,
                    const char *visitor, int seconds)
{
    crm_response_t *response = call->response;

    if (!seconds || !call->service->watch
        || !call->service->watch(workspace_id, visitor,
                                 call->request->baton)) {
        response->wait_until = 0;
    }
    else if (!response->wait_until) {
        response->wait_until = crm_time_monotonic()
                               + apr_time_from_sec(seconds);
    }
}

void crm_call_wait(crm_call_t *call)
{
    crm_response_t *response = call->response;

    response->waits = response->wait_until > crm_time_monotonic();
}

static crm_error_t *refuse_coding(const crm_call_t *call)
{
    return crm_error_create(CRM_E_UNSUPPORTED_MEDIA_TYPE, "The body must not be "
                            "encoded (Content-Encoding)", call->pool);
}

crm_error_t *crm_call_body(const char **data_p, apr_size_t *len_p,
                           crm_call_t *call)
{
    if (is_encoded(call->request)
        && !call->service->decodes(call->request->baton)) {
        return refuse_coding(call);
    }
    crm_call_release(call);
    if (call->body) {           /* the call is served again */
        *data_p = call->body;
        *len_p = call->body_len;
        return NULL;
    }
    CRM_ERR(call->service->read_body(data_p, len_p, call->route->max_body,
                                     call->request->baton, call->pool));
    if (is_encoded(call->request)) {
        return refuse_coding(call);     /* the header has what is left */
    }
    call->body = *data_p;
    call->body_len = *len_p;
    return NULL;
}

static int is_patch(const crm_call_t *call)
{
    return !strcmp(call->request->method, "PATCH");
}

int crm_call_merges(const crm_call_t *call)
{
    return is_patch(call)
           && crm_media_is_utf8(crm_request_header(call->request,
                                                   "Content-Type"),
                                "application/merge-patch+json");
}

int crm_call_is_json(const crm_call_t *call)
{
    const char *type = crm_request_header(call->request, "Content-Type");

    return !type || crm_media_is_json(type) || crm_call_merges(call);
}

/* Return the error that the body of CALL is of no type that it may have. To a
 * PATCH, say which these are (RFC 5789, 2.2). */
static crm_error_t *refuse_type(const crm_call_t *call)
{
    const char *message = NULL;

    if (is_patch(call)) {
        message = "The body must be application/json or"
            " application/merge-patch+json, in UTF-8";
        apr_table_setn(call->response->headers, "Accept-Patch",
                       "application/json, application/merge-patch+json");
    }
    return crm_error_create(CRM_E_UNSUPPORTED_MEDIA_TYPE, message, call->pool);
}

crm_error_t *crm_call_json(json_object **value_p, crm_call_t *call)
{
    const char *data;
    apr_size_t len;

    if (!crm_call_is_json(call)) {
        return refuse_type(call);
    }
    CRM_ERR(crm_call_body(&data, &len, call));
    if (call->body_checked) {
        return crm_json_tree(value_p, data, len, call->pool)
               ? crm_error_create(CRM_E_BAD_REQUEST, NULL, call->pool) : NULL;
    }
    return crm_json_body(value_p, data, len, call->pool);
}

crm_error_t *crm_call_form(apr_array_header_t **fields_p, int max,
                           crm_call_t *call)
{
    const char *data;
    apr_size_t len;

    CRM_ERR(crm_call_body(&data, &len, call));
    return crm_form_parse(fields_p, data, len,
                          crm_request_header(call->request, "Content-Type"),
                          max, call->pool);
}
