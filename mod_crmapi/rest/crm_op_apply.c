/* SPDX-License-Identifier: Apache-2.0 */
/* crm_op_apply.c: operations that are a function of the database */
#include "crm_op_apply.h"

#include <string.h>

#include "crm_op.h"
#include "crm_rest.h"
#include "crm_sql_print.h"

/* A call that is being served, with what it applies. */
typedef struct applied_t {
    crm_call_t *call;
    const crm_apply_t *apply;
    const void *baton;
    const apr_array_header_t *checks; /* that the row exists */
} applied_t;

/* Make the statement that calls the function, if the key permits it. */
static void make_call(crm_sql_t *sql, const applied_t *applied)
{
    crm_rest_sql(sql, applied->call);
    crm_sql_add(sql, "SELECT ");
    applied->apply->add_call(sql, applied->call, applied->baton);
    crm_sql_add(sql, " WHERE ");
    crm_rest_permit(sql, applied->call, CRM_PERMIT_BEFORE);
}

/* Return the error of RESULT, that of make_call(), or NULL. If there is no row,
 * checks find the cause. */
static crm_error_t *check(const applied_t *applied, const PGresult *result)
{
    crm_call_t *call = applied->call;
    const char *outcome = PQntuples(result) ? crm_db_value(result, 0, 0)
                          : NULL;

    if (!outcome || !strcmp(outcome, "missing")) {
        CRM_ERR(crm_rest_refuse(call, NULL, applied->checks));
        return crm_rest_no_row(call, crm_rest(call)->endpoint->resource, "id");
    }
    return applied->apply->check
           ? applied->apply->check(call, outcome, applied->baton) : NULL;
}

/* Make the statement that reads the row afterwards and stores the answer. */
static void make_read(crm_sql_t *sql, crm_call_t *call)
{
    const crm_endpoint_t *endpoint = crm_rest(call)->endpoint;

    crm_rest_sql(sql, call);
    crm_sql_adds(sql, "SELECT ", endpoint->shape->row_columns, " FROM crmapi.",
                 endpoint->resource->name, " t WHERE "
                 CRM_SQL_OWN("t"), NULL);
    crm_sql_template(sql, " AND t.id = ? AND ", crm_rest(call)->path_id,
                     "uuid");
    crm_rest_permit(sql, call, CRM_PERMIT);
    crm_idempotency_keep_row(sql, call, crm_kind_of(endpoint->operation)->status,
                             NULL, endpoint->shape);
}

/* Claim the call's key, call the function and read the row, unless the response
 * does not show it, in a transaction that stays open. Set *CALLED_P to the result of
 * make_call(), *READ_P to that of make_read(). */
static crm_error_t *apply_once(PGresult **called_p, PGresult **read_p,
                               const applied_t *applied)
{
    enum { BEGIN, CLAIM, CALL, READ, COUNT };
    crm_call_t *call = applied->call;
    crm_sql_t sqls[COUNT];
    crm_sql_t *all[COUNT] = {&sqls[BEGIN], &sqls[CLAIM], &sqls[CALL],
                             &sqls[READ]};
    int count = applied->apply->write ? READ : COUNT, first;
    PGresult *results[COUNT] = {NULL, NULL, NULL, NULL};

    crm_sql_init(&sqls[BEGIN], call->pool);
    crm_sql_add(&sqls[BEGIN], "BEGIN");
    crm_idempotency_claim(&sqls[CLAIM], call);
    make_call(&sqls[CALL], applied);
    if (count > READ) {
        make_read(&sqls[READ], call);
    }
    /* what cannot ask for the outcome of the claim is sent after it */
    first = crm_sql_sees_settings(&sqls[CALL]) ? count : CALL;
    CRM_ERR(crm_call_pipeline(results, call, all, first));
    CRM_ERR(crm_idempotency_outcome(call, results[CLAIM]));
    if (first < count && PQntuples(results[CLAIM])) {
        CRM_ERR(crm_call_pipeline(results + first, call, all + first,
                                  count - first));
    }
    *called_p = results[CALL] ? results[CALL] : results[CLAIM];
    *read_p = results[READ];
    return NULL;
}

/* Respond with what the function returned: the row of CALLED. */
static void write_outcome(const applied_t *applied, const PGresult *called)
{
    crm_call_t *call = applied->call;

    call->response->status = crm_kind_of(crm_rest(call)->endpoint->operation)->status;
    applied->apply->write(call, crm_db_value(called, 0, 0));
}

/* The same, and store the response. */
static crm_error_t *keep_outcome(const applied_t *applied,
                                 const PGresult *called)
{
    PGresult *kept;
    crm_sql_t sql;

    write_outcome(applied, called);
    CRM_ERR(crm_idempotency_keep_response(&sql, applied->call));
    return crm_idempotency_raced(applied->call, crm_call_query(
                                     &kept, applied->call, &sql));
}

/* Apply it and store the answer in one transaction, which is committed if there is
 * no error. */
static crm_error_t *serve_once(const applied_t *applied)
{
    crm_call_t *call = applied->call;
    PGresult *called, *read, *committed;
    crm_error_t *error;

    error = crm_idempotency_raced(call, apply_once(&called, &read, applied));
    error = error ? error : check(applied, called);
    if (!error && applied->apply->write) {
        error = keep_outcome(applied, called);
    }
    if (error) {
        if (call->conn) {
            crm_db_rollback(call->conn);
        }
        return error;
    }
    CRM_ERR(crm_call_run(&committed, call, "COMMIT", 0, NULL));
    if (applied->apply->write) {
        return NULL;
    }
    crm_rest_answer(call, crm_kind_of(crm_rest(call)->endpoint->operation)->status,
                    read, 0);
    return NULL;
}

/* Apply it in one statement. A second one reads the row, if the response shows
 * it. */
static crm_error_t *serve_plain(const applied_t *applied)
{
    PGresult *result;
    crm_sql_t sql;

    make_call(&sql, applied);
    CRM_ERR(crm_call_query(&result, applied->call, &sql));
    CRM_ERR(check(applied, result));
    if (applied->apply->write) {
        write_outcome(applied, result);
        return NULL;
    }
    return crm_op_get(applied->call);
}

crm_error_t *crm_op_apply(crm_call_t *call, const crm_apply_t *apply,
                          const void *baton, crm_error_t *error)
{
    apr_array_header_t *checks = apr_array_make(call->pool, 1,
                                                sizeof(crm_check_t));
    applied_t applied = {call, apply, baton, checks};

    crm_check_path(checks, call, crm_rest(call)->endpoint->resource);
    if (error || !crm_rest(call)->path_id) {
        return crm_rest_refuse(call, error, checks);
    }
    return crm_rest(call)->idempotency ? serve_once(&applied)
           : serve_plain(&applied);
}
