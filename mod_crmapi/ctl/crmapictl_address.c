/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_address.c: addresses that belong to others (contract 14.2) */
#include "crmapictl_address.h"

#include "apr_strings.h"

/* SQL: the lines whose KEY of the agent is that of an earlier line. */
#define TWICE(field, key) \
    "SELECT d.line, '" field "', $1::uuid FROM (SELECT s.line, row_number()" \
    "  OVER (PARTITION BY " key " ORDER BY s.line) AS n FROM stage_agent s" \
    "  WHERE " key " <> '') d WHERE d.n > 1"

/* The first line, its field, and the workspace that has it. $1: the workspace.
 * What a held one has is nobody's concern. */
static const char check_sql[] =
    "SELECT t.* FROM (SELECT s.line, a.field, a.taken_by FROM stage_agent s"
    "  CROSS JOIN LATERAL crmapi.address_taken(jsonb_populate_record("
    "  NULL::crmapi.agent, jsonb_build_object('workspace_id', $1::uuid, 'id',"
    "  s.id, 'agent_email', s.agent_email, 'email_outbound_email',"
    "  s.email_outbound_email, 'agent_phone', s.agent_phone))) a"
    " UNION ALL " TWICE("agent_email", "crmapi.email_key(s.agent_email)")
    " UNION ALL " TWICE("agent_phone", "crmapi.phone_key(s.agent_phone)")
    ") t WHERE t.taken_by IS NOT NULL AND NOT crmapi.is_held($1::uuid)"
    " ORDER BY 1 LIMIT 1";

/* Its text. $1: as above, $2: whose it is. */
static const char rule_sql[] =
    "SELECT CASE WHEN w.id = $1::uuid THEN 'belongs to another agent'"
    " ELSE format('belongs to another workspace: \"%s\" (%s)', w.slug, w.id) END"
    " FROM crmapi.workspace w WHERE w.id = $2::uuid";

crm_error_t *ctl_address_check(apr_int64_t *line_p, const char **field_p,
                               const char **rule_p, crm_conn_t *conn,
                               const char *workspace_id,
                               apr_pool_t *result_pool)
{
    const char *values[2] = {workspace_id};
    crm_stmt_t stmt = {check_sql, 1, values};
    PGresult *result;

    *line_p = 0;
    CRM_ERR(crm_db_query(&result, conn, &stmt, result_pool));
    if (!PQntuples(result)) {
        return NULL;
    }
    *line_p = apr_atoi64(PQgetvalue(result, 0, 0));
    *field_p = crm_db_value(result, 0, 1);
    values[1] = crm_db_value(result, 0, 2);
    stmt.sql = rule_sql;
    stmt.count = 2;
    CRM_ERR(crm_db_query(&result, conn, &stmt, result_pool));
    *rule_p = PQntuples(result) ? crm_db_value(result, 0, 0)
                                : "belongs to another agent";
    return NULL;
}
