/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_import_rows.c: inserting the rows of an import */
#include "crmapictl_import_rows.h"

#include "apr_strings.h"

/* SQL: the default of a time that is NOT NULL. */
#define NOW "date_trunc('milliseconds', now())"

crm_error_t *ctl_import_follow(ctl_import_t *import)
{
    static const char latest[] = " ORDER BY m.created_at DESC, m.line DESC)";
    crm_sql_t sql;
    PGresult *result;

    if (!ctl_stage_find(import, "conversation")->count
        || !ctl_stage_find(import, "message")->count) {
        return NULL;
    }
    crm_sql_init(&sql, import->line_pool);
    crm_sql_adds(&sql, "UPDATE stage_conversation s SET last_message_at = f.at,"
                 " last_active_at = coalesce(s.last_active_at, f.at),"
                 " last_message = coalesce(s.last_message, f.said),"
                 " unanswered = s.unanswered OR s.type <> 2"
                 " AND f.role IS NOT DISTINCT FROM 'user'"
                 " FROM (SELECT m.conversation_id, max(coalesce(m.created_at,"
                 " " NOW ")) AS at,"
                 " (array_agg(left(m.content, 255)", latest, " FILTER (WHERE"
                 " m.content <> ''))[1] AS said, (array_agg(m.role", latest,
                 " FILTER (WHERE m.role IN ('user', 'human') OR m.role ="
                 " 'assistant' AND m.tool_used IS NULL))[1] AS role"
                 " FROM stage_message m GROUP BY m.conversation_id) f"
                 " WHERE f.conversation_id = s.id"
                 " AND s.last_message_at IS NULL", NULL);
    return ctl_import_run(&result, import, &sql);
}

/* Insert the rows of STAGE up to LAST, a line. */
static crm_error_t *insert_up_to(ctl_import_t *import, const ctl_stage_t *stage,
                                 apr_int64_t last)
{
    const crm_field_t *fields = stage->resource->fields;
    PGresult *result;
    crm_sql_t sql;

    crm_sql_init(&sql, import->line_pool);
    crm_sql_adds(&sql, "INSERT INTO crmapi.", stage->resource->name,
                 " (workspace_id", NULL);
    for (int i = 0; fields[i].name; i++) {
        if (ctl_stage_has(&fields[i])) {
            crm_sql_adds(&sql, ", ", fields[i].name, NULL);
        }
    }
    crm_sql_template(&sql, ") SELECT ?", import->workspace_id, "uuid");
    for (int i = 0; fields[i].name; i++) {
        /* a time that is NOT NULL defaults to now */
        int now = fields[i].type == &crm_type_time
                  && !(fields[i].flags & CRM_F_NULLABLE);

        if (ctl_stage_has(&fields[i])) {
            crm_sql_adds(&sql, now ? ", coalesce(s." : ", s.", fields[i].name,
                         now ? ", " NOW ")" : "",
                         NULL);
        }
    }
    crm_sql_adds(&sql, " FROM stage_", stage->resource->name, " s", NULL);
    crm_sql_template(&sql, " WHERE s.line <= ? ORDER BY s.line",
                     apr_psprintf(import->line_pool, "%" APR_INT64_T_FMT,
                                  last), "bigint");
    return ctl_import_run(&result, import, &sql);
}

/* Find the first line of STAGE that the database refuses, by bisection, because
 * its error does not name the line. Return the error for that line, with the
 * database's message as the rule. */
static crm_error_t *locate(ctl_import_t *import, const ctl_stage_t *stage)
{
    apr_int64_t low = 1, high = import->line;
    const char *rule = "is refused by the database";

    while (low <= high) {
        apr_int64_t middle = low + (high - low) / 2;
        crm_error_t *error;

        CRM_ERR(crm_db_exec(import->conn, "ROLLBACK TO SAVEPOINT rows",
                            import->pool));
        error = insert_up_to(import, stage, middle);
        if (error && !crm_error_refuses(error)) {
            return error;
        }
        if (error) {
            rule = crm_error_is(error, "23505")
                   ? "exists already, or occurs twice" : error->log;
            high = middle - 1;
        }
        else {
            low = middle + 1;
        }
    }
    return ctl_import_refuse(import, low, NULL, rule);
}

crm_error_t *ctl_import_insert(ctl_import_t *import, const ctl_stage_t *stage)
{
    crm_error_t *error;

    CRM_ERR(crm_db_exec(import->conn, "SAVEPOINT rows", import->pool));
    error = insert_up_to(import, stage, import->line);
    if (crm_error_refuses(error)) {
        return locate(import, stage);
    }
    CRM_ERR(error);
    return crm_db_exec(import->conn, "RELEASE SAVEPOINT rows", import->pool);
}
