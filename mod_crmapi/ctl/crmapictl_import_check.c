/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_import_check.c: ids, references and addresses of an import */
#include "crmapictl_import_check.h"

#include "apr_strings.h"

#include "crm_sql_print.h"
#include "crmapictl_address.h"

/* The first invalid line found so far. */
typedef struct fault_t {
    apr_int64_t line;
    const char *field;
    const char *rule;
} fault_t;

/* Run SQL, which returns the first line where FIELD breaks RULE, or null, and
 * update FAULT. */
static crm_error_t *ask(fault_t *fault, ctl_import_t *import, crm_sql_t *sql,
                        const char *field, const char *rule)
{
    PGresult *result;
    const char *value;

    CRM_ERR(ctl_import_run(&result, import, sql));
    value = crm_db_value(result, 0, 0);
    if (value && (!fault->line || apr_atoi64(value) < fault->line)) {
        fault->line = apr_atoi64(value);
        fault->field = field;
        fault->rule = rule;
    }
    return NULL;
}

/* Add the condition that a row r of the resource NAME has an id that is COLUMN,
 * or with NOT that none has. Citus joins no local table with others: there the
 * ids of the workspace are collected first. */
static void add_exists(crm_sql_t *sql, const ctl_import_t *import,
                       const char *not, const char *name, const char *column)
{
    crm_sql_adds(sql, CRM_SQL_PLAIN, not, "EXISTS (SELECT FROM crmapi.", name,
                 " r WHERE r.id = ", column, CRM_SQL_CITUS, column, " ", not,
                 "IN (SELECT r.id FROM crmapi.", name, " r WHERE true",
                 CRM_SQL_BOTH, NULL);
    crm_sql_template(sql, " AND r.workspace_id = ?)", import->workspace_id,
                     "uuid");
}

static crm_error_t *check_ids(fault_t *fault, ctl_import_t *import,
                              const ctl_stage_t *stage)
{
    const char *name = stage->resource->name;
    crm_sql_t sql;

    crm_sql_init(&sql, import->line_pool);
    crm_sql_adds(&sql, "SELECT min(line) FROM (SELECT line, row_number() OVER"
                 " (PARTITION BY id ORDER BY line) AS n FROM stage_", name,
                 ") s WHERE n > 1", NULL);
    CRM_ERR(ask(fault, import, &sql, "id", "occurs twice"));
    crm_sql_init(&sql, import->line_pool);
    crm_sql_adds(&sql, "SELECT min(s.line) FROM stage_", name, " s WHERE ",
                 NULL);
    add_exists(&sql, import, "", name, "s.id");
    return ask(fault, import, &sql, "id", "exists already");
}

/* Check that FIELD, a unique one, has each value once. */
static crm_error_t *check_unique(fault_t *fault, ctl_import_t *import,
                                 const ctl_stage_t *stage,
                                 const crm_field_t *field)
{
    const char *name = stage->resource->name;
    crm_sql_t sql;

    crm_sql_init(&sql, import->line_pool);
    crm_sql_adds(&sql, "SELECT min(line) FROM (SELECT line, row_number() OVER"
                 " (PARTITION BY ", field->name, " ORDER BY line) AS n FROM"
                 " stage_", name, " WHERE ", field->name, " IS NOT NULL) s"
                 " WHERE n > 1", NULL);
    CRM_ERR(ask(fault, import, &sql, field->name, "occurs twice"));
    crm_sql_init(&sql, import->line_pool);
    crm_sql_adds(&sql, "SELECT min(s.line) FROM stage_", name, " s WHERE s.",
                 field->name, " IN (SELECT r.", field->name, " FROM crmapi.",
                 name, NULL);
    crm_sql_template(&sql, " r WHERE r.workspace_id = ?)",
                     import->workspace_id, "uuid");
    return ask(fault, import, &sql, field->name, "exists already");
}

static crm_error_t *check_reference(fault_t *fault, ctl_import_t *import,
                                    const ctl_stage_t *stage,
                                    const crm_field_t *field)
{
    const ctl_stage_t *referred = ctl_stage_find(import, field->ref);
    crm_sql_t sql;

    crm_sql_init(&sql, import->line_pool);
    crm_sql_adds(&sql, "SELECT min(s.line) FROM stage_",
                 stage->resource->name, " s WHERE s.", field->name,
                 " IS NOT NULL AND ", NULL);
    if (referred && referred->count) {
        crm_sql_adds(&sql, CRM_SQL_PLAIN "NOT EXISTS (SELECT FROM stage_",
                     field->ref, " r WHERE r.id = s.", field->name, ")"
                     CRM_SQL_CITUS "s.", field->name, " NOT IN (SELECT r.id"
                     " FROM stage_", field->ref, " r)" CRM_SQL_BOTH " AND ",
                     NULL);
    }
    add_exists(&sql, import, "NOT ", field->ref,
               apr_pstrcat(import->line_pool, "s.", field->name, NULL));
    return ask(fault, import, &sql, field->name,
               crm_ref_rule(field->ref, import->pool));
}

/* Make statistics of those columns of STAGE that the checks use. Statistics of
 * all columns would take a fifth of the time of the import. */
static crm_error_t *analyze_stage(ctl_import_t *import,
                                  const ctl_stage_t *stage)
{
    crm_sql_t sql;
    crm_stmt_t stmt;

    crm_sql_init(&sql, import->line_pool);
    crm_sql_adds(&sql, "ANALYZE stage_", stage->resource->name, " (id", NULL);
    for (const crm_field_t *field = stage->resource->fields; field->name;
         field++) {
        if (field->ref && ctl_stage_has(field)) {
            crm_sql_adds(&sql, ", ", field->name, NULL);
        }
    }
    crm_sql_add(&sql, ")");
    crm_sql_stmt(&stmt, &sql);
    return crm_db_exec(import->conn, stmt.sql, import->line_pool);
}

/* Check that the addresses of agents are nobody else's. */
static crm_error_t *check_addresses(fault_t *fault, ctl_import_t *import)
{
    fault_t found;

    if (!ctl_stage_find(import, "agent")->count) {
        return NULL;
    }
    CRM_ERR(ctl_address_check(&found.line, &found.field, &found.rule,
                              import->conn, import->workspace_id,
                              import->pool));
    if (found.line && (!fault->line || found.line < fault->line)) {
        *fault = found;
    }
    return NULL;
}

crm_error_t *ctl_import_check(ctl_import_t *import)
{
    fault_t fault = {0, NULL, NULL};

    for (int i = 0; i < import->stage_count; i++) {
        if (import->stages[i].count) {
            CRM_ERR(analyze_stage(import, &import->stages[i]));
        }
    }
    for (int i = 0; i < import->stage_count; i++) {
        const ctl_stage_t *stage = &import->stages[i];

        if (!stage->count) {
            continue;
        }
        CRM_ERR(check_ids(&fault, import, stage));
        for (const crm_field_t *field = stage->resource->fields; field->name;
             field++) {
            if (field->ref && ctl_stage_has(field)) {
                CRM_ERR(check_reference(&fault, import, stage, field));
            }
            if (field->flags & CRM_F_UNIQUE) {
                CRM_ERR(check_unique(&fault, import, stage, field));
            }
        }
    }
    CRM_ERR(check_addresses(&fault, import));
    return fault.line ? ctl_import_refuse(import, fault.line, fault.field,
                                          fault.rule) : NULL;
}
