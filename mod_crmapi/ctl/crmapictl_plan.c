/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_plan.c: what plans permit (contract 3.3) */
#include "crmapictl_plan.h"

#include "crm_sql.h"
#include "crmapictl_audit.h"
#include "crmapictl_options.h"
#include "crmapictl_output.h"
#include "crmapictl_workspace.h"

/* A boolean as JSON. Citus takes no to_json() in RETURNING. */
#define SWITCH(column) "CASE WHEN " column " THEN 'true' ELSE 'false' END"
#define FIELDS "name, " SWITCH("api") ", " SWITCH("sequences")

static const ctl_column_t columns[] = {
    {"name", 's'}, {"api", 'n'}, {"sequences", 'n'}, {NULL, 0}
};

crm_error_t *ctl_plan_create(ctl_t *ctl)
{
    const char *values[3] = {ctl->options[CTL_NAME]};
    PGresult *result;

    CRM_ERR(ctl_check_name(ctl, CTL_NAME));
    CRM_ERR(ctl_switch(&values[1], ctl, CTL_API));
    CRM_ERR(ctl_switch(&values[2], ctl, CTL_SEQUENCES));
    CRM_ERR(ctl_query(&result, ctl, "INSERT INTO crmapi.plan (name, api,"
                      " sequences) VALUES ($1::text, $2::boolean, $3::boolean)"
                      " ON CONFLICT (name) DO NOTHING RETURNING " FIELDS, 3,
                      values));
    if (!PQntuples(result)) {
        return ctl_fault(ctl, "there is a plan \"%s\" already", values[0]);
    }
    ctl_audit_object(ctl, NULL, values[0]);
    ctl_print_one(ctl, NULL, result, columns);
    return NULL;
}

crm_error_t *ctl_plan_list(ctl_t *ctl)
{
    PGresult *result;

    CRM_ERR(ctl_query(&result, ctl, "SELECT " FIELDS " FROM crmapi.plan"
                      " ORDER BY api, sequences, name", 0, NULL));
    ctl_print(ctl, result, columns, 0);
    return NULL;
}

/* Change the plan in VALUES, name, api and sequences, in a transaction, and set
 * *RESULT_P to its row. A trigger has the keys follow; in a distributed database
 * that is a call, because keys are on all servers, and the trigger refuses other
 * changes. */
static crm_error_t *change(PGresult **result_p, ctl_t *ctl,
                           const char *const values[3])
{
    PGresult *ignored;

    CRM_ERR(ctl_exec(ctl, CRM_SQL_CITUS "SET LOCAL"
                     " citus.multi_shard_modify_mode = 'sequential';"
                     " SET LOCAL citus.propagate_set_commands = 'local';"
                     " SET LOCAL crmapi.plan_set = 'on'"));
    CRM_ERR(ctl_query(result_p, ctl, "UPDATE crmapi.plan SET"
                      " api = coalesce($2::boolean, api),"
                      " sequences = coalesce($3::boolean, sequences)"
                      " WHERE name = $1::text RETURNING " FIELDS, 3, values));
    return ctl_query(&ignored, ctl, CRM_SQL_CITUS "SELECT"
                     " crmapi.plan_follow($1::text)", 1, values);
}

crm_error_t *ctl_plan_set(ctl_t *ctl)
{
    const char *values[3] = {ctl->args[0]};
    PGresult *result;

    CRM_ERR(ctl_switch(&values[1], ctl, CTL_API));
    CRM_ERR(ctl_switch(&values[2], ctl, CTL_SEQUENCES));
    if (!values[1] && !values[2]) {
        return ctl_misuse(ctl, "plan set needs --api or --sequences");
    }
    CRM_ERR(change(&result, ctl, values));
    if (!PQntuples(result)) {
        return ctl_fault(ctl, "there is no plan \"%s\"", ctl->args[0]);
    }
    ctl_print_one(ctl, NULL, result, columns);
    return NULL;
}
