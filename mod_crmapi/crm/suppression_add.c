/* SPDX-License-Identifier: Apache-2.0 */
/* suppression_add.c: POST /suppressions (contract 20.1) */

#include "apr_strings.h"

#include "crm_body.h"
#include "crm_operations.h"
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

/* Return what the id of a suppression follows in its address. */
static const char *folder_of(const crm_call_t *call)
{
    return apr_pstrcat(call->pool, CRM_API_BASE,
                       crm_rest(call)->endpoint->operation->path, "/", NULL);
}

/* Make the statement that suppresses the address in VALUES, if CALL's key
 * permits it, and stores the answer. Its row has the resource's columns, and
 * whether the address is new. */
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
    crm_idempotency_keep_new(sql, call, folder_of(call));
}

/* Respond to CALL with RESULT, that of make_add(). */
static void answer(crm_call_t *call, const PGresult *result)
{
    int created = *crm_db_value(result, 0, PQnfields(result) - 1) == 't';

    if (created) {
        apr_table_setn(call->response->headers, "Location",
                       apr_pstrcat(call->pool, folder_of(call),
                                   crm_db_value(result, 0, 0), NULL));
    }
    crm_rest_answer(call, created ? 201 : 200, result, 0);
}

crm_error_t *crm_suppression_add(crm_call_t *call)
{
    crm_values_t values;
    crm_sql_t sql;
    PGresult *result;
    crm_error_t *error = read_body(&values, call);

    if (error) {
        return crm_rest_refuse(call, error, NULL);
    }
    make_add(&sql, call, &values);
    CRM_ERR(crm_idempotency_query(&result, call, &sql));
    if (PQntuples(result)) {
        answer(call, result);
        return NULL;
    }
    error = crm_rest_refuse(call, NULL, NULL);
    return error ? error
           : crm_error_create(CRM_E_UNAVAILABLE, NULL, call->pool);
}
