/* SPDX-License-Identifier: Apache-2.0 */
/* suppression_add.c: POST /suppressions (contract 20.1) */
#include <string.h>

#include "apr_strings.h"

#include "crm_body.h"
#include "crm_op.h"
#include "crm_operations.h"
#include "crm_params.h"
#include "crm_resources.h"
#include "crm_rest.h"

/* The reason that crmapictl suppress has, too, if none is given. */
#define DEFAULT_REASON "suppressed"

/* Read the parameters and the body of CALL into *VALUES. */
static crm_error_t *read_body(crm_values_t *values, crm_call_t *call)
{
    json_object *body;
    crm_input_t input;

    CRM_ERR(crm_rest_body(&body, &input, call));
    crm_body_read(values, &input, crm_rest(call)->endpoint->resource, body,
                  CRM_BODY_CREATE, "");
    return input.error;
}

/* Return the bind of the field NAME in VALUES. */
static const char *value_of(const crm_call_t *call, const crm_values_t *values,
                            const char *name)
{
    const crm_resource_t *resource = crm_rest(call)->endpoint->resource;

    return values->binds[crm_resource_field(resource, name)
                         - resource->fields];
}

/* Make the statement that suppresses the address in VALUES, if CALL's key
 * permits it. Its row has the resource's columns, and whether the address is
 * new. */
static void make_add(crm_sql_t *sql, crm_call_t *call,
                     const crm_values_t *values)
{
    const char *reason = value_of(call, values, "reason");

    crm_rest_sql(sql, call);
    crm_sql_add(sql, "SELECT t.* FROM (SELECT WHERE ");
    crm_rest_permit(sql, call, CRM_PERMIT_BEFORE);
    crm_sql_add(sql, " OFFSET 0) k CROSS JOIN LATERAL"
                " crmapi.suppression_add(" CRM_SQL_WORKSPACE);
    crm_sql_template(sql, ", ?", value_of(call, values, "email"), "text");
    crm_sql_template(sql, ", ?", value_of(call, values, "phone_number"),
                     "text");
    crm_sql_template(sql, ", ?) t", reason ? reason : DEFAULT_REASON, "text");
}

/* Respond to CALL with RESULT, that of make_add(). */
static void answer(crm_call_t *call, const PGresult *result)
{
    int created = *crm_db_value(result, 0, PQnfields(result) - 1) == 't';

    if (created) {
        apr_table_setn(call->response->headers, "Location",
                       apr_pstrcat(call->pool, CRM_API_BASE,
                                   crm_rest(call)->endpoint->operation->path,
                                   "/", crm_db_value(result, 0, 0), NULL));
    }
    crm_rest_answer(call, created ? 201 : 200, result, 0);
}

/* Run ADD, and store and send the answer to CALL, in a transaction that has
 * claimed its key and stays open if there is an error. */
static crm_error_t *add_once(int *added_p, crm_call_t *call, crm_sql_t *add)
{
    crm_sql_t begin, claim, keep;
    crm_sql_t *sqls[] = {&begin, &claim};
    PGresult *results[2] = {NULL, NULL}, *result;

    crm_sql_init(&begin, call->pool);
    crm_sql_add(&begin, "BEGIN");
    crm_idempotency_claim(&claim, call);
    CRM_ERR(crm_call_pipeline(results, call, sqls, 2));
    CRM_ERR(crm_idempotency_outcome(call, results[1]));
    *added_p = PQntuples(results[1]);
    if (*added_p) {
        CRM_ERR(crm_call_pipeline(&result, call, &add, 1));
        *added_p = PQntuples(result);
    }
    if (*added_p) {
        answer(call, result);
        crm_idempotency_keep_fields(&keep, call, result);
        CRM_ERR(crm_call_query(&result, call, &keep));
    }
    return crm_call_run(&result, call, "COMMIT", 0, NULL);
}

/* The same for CALL with an Idempotency-Key. */
static crm_error_t *serve_once(int *added_p, crm_call_t *call, crm_sql_t *add)
{
    crm_error_t *error = crm_idempotency_raced(call, add_once(added_p, call,
                                                              add));

    if (error && call->conn) {
        crm_db_rollback(call->conn);
    }
    return error;
}

/* Run ADD and answer CALL, which has no Idempotency-Key. */
static crm_error_t *serve_plain(int *added_p, crm_call_t *call, crm_sql_t *add)
{
    PGresult *result;

    CRM_ERR(crm_call_query(&result, call, add));
    *added_p = PQntuples(result);
    if (*added_p) {
        answer(call, result);
    }
    return NULL;
}

crm_error_t *crm_suppression_add(crm_call_t *call)
{
    crm_values_t values;
    crm_sql_t sql;
    crm_error_t *error = read_body(&values, call);
    int added;

    if (error) {
        return crm_rest_refuse(call, error, NULL);
    }
    make_add(&sql, call, &values);
    CRM_ERR((crm_rest(call)->idempotency ? serve_once : serve_plain)(
                &added, call, &sql));
    if (added) {
        return NULL;
    }
    error = crm_rest_refuse(call, NULL, NULL);
    return error ? error
           : crm_error_create(CRM_E_UNAVAILABLE, NULL, call->pool);
}
