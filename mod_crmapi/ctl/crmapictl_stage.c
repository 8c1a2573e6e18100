/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_stage.c: the lines of an import in temporary tables */
#include "crmapictl_stage.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_db_copy.h"
#include "crm_pointer.h"
#include "crm_sql_print.h"

#define SEND_BYTES 65536        /* of a table's rows at once */

crm_error_t *ctl_import_refuse(ctl_import_t *import, apr_int64_t line,
                               const char *field, const char *rule)
{
    const char *where = field ? crm_pointer_path(field, import->pool) : "";

    return crm_error_createf(CRM_E_VALIDATION, import->pool,
                             "line %" APR_INT64_T_FMT ": %s%s%s", line, where,
                             *where ? ": " : "", rule);
}

crm_error_t *ctl_import_run(PGresult **result_p, ctl_import_t *import,
                            crm_sql_t *sql)
{
    crm_stmt_t stmt;

    sql->distributed = import->distributed;
    crm_sql_stmt(&stmt, sql);
    return crm_db_query(result_p, import->conn, &stmt, import->line_pool);
}

int ctl_stage_has(const crm_field_t *field)
{
    return !(field->flags & CRM_F_DERIVED)
           && strcmp(field->name, "workspace_id");
}

ctl_stage_t *ctl_stage_find(ctl_import_t *import, const char *name)
{
    for (int i = 0; name && i < import->stage_count; i++) {
        if (!strcmp(import->stages[i].resource->name, name)) {
            return &import->stages[i];
        }
    }
    return NULL;
}

static crm_error_t *create_stage(ctl_import_t *import, ctl_stage_t *stage)
{
    crm_sql_t sql;
    crm_stmt_t stmt;

    crm_sql_init(&sql, import->line_pool);
    crm_sql_adds(&sql, "CREATE TEMPORARY TABLE stage_", stage->resource->name,
                 " (line bigint NOT NULL", NULL);
    for (const crm_field_t *field = stage->resource->fields; field->name;
         field++) {
        if (ctl_stage_has(field)) {
            crm_sql_adds(&sql, ", ", field->name, " ", field->type->cast,
                         NULL);
        }
    }
    crm_sql_add(&sql, ") ON COMMIT DROP");
    crm_sql_stmt(&stmt, &sql);
    stage->made = 1;
    return crm_db_exec(import->conn, stmt.sql, import->line_pool);
}

/* Add VALUE (NULL: null) to ROWS in COPY's text format. */
static void add_copy_value(crm_buf_t *rows, const char *value)
{
    if (!value) {
        crm_buf_add(rows, "\\N", 2);
        return;
    }
    for (; *value; value++) {
        switch (*value) {
        case '\\':
            crm_buf_add(rows, "\\\\", 2);
            break;
        case '\n':
            crm_buf_add(rows, "\\n", 2);
            break;
        case '\r':
            crm_buf_add(rows, "\\r", 2);
            break;
        case '\t':
            crm_buf_add(rows, "\\t", 2);
            break;
        default:
            crm_buf_putc(rows, *value);
        }
    }
}

crm_error_t *ctl_stage_end(ctl_import_t *import)
{
    apr_int64_t rows;
    int copied = import->copied != NULL;

    import->copied = NULL;
    return copied ? crm_db_copy_end(&rows, import->conn, import->pool) : NULL;
}

static crm_error_t *begin_copy(ctl_import_t *import, ctl_stage_t *stage)
{
    CRM_ERR(ctl_stage_end(import));
    if (!stage->made) {
        CRM_ERR(create_stage(import, stage));
    }
    CRM_ERR(crm_db_copy_begin(import->conn,
                              apr_pstrcat(import->line_pool, "COPY stage_",
                                          stage->resource->name,
                                          " FROM STDIN", NULL),
                              import->pool));
    import->copied = stage;
    return NULL;
}

crm_error_t *ctl_stage_send(ctl_import_t *import, ctl_stage_t *stage)
{
    crm_error_t *error;

    if (!stage->rows.len) {
        return NULL;
    }
    if (import->copied != stage) {
        CRM_ERR(begin_copy(import, stage));
    }
    error = crm_db_copy_put(import->conn, stage->rows.data, stage->rows.len,
                            import->pool);
    stage->rows.len = 0;
    if (error) {                /* the COPY has ended */
        import->copied = NULL;
    }
    return error;
}

crm_error_t *ctl_stage_add(ctl_import_t *import, ctl_stage_t *stage,
                           const char *const *binds)
{
    const crm_field_t *fields = stage->resource->fields;

    if (!stage->count++) {
        crm_buf_init(&stage->rows, SEND_BYTES, import->pool);
    }
    crm_buf_printf(&stage->rows, "%" APR_INT64_T_FMT, import->line);
    for (int i = 0; fields[i].name; i++) {
        if (ctl_stage_has(&fields[i])) {
            crm_buf_putc(&stage->rows, '\t');
            add_copy_value(&stage->rows, binds[i]);
        }
    }
    crm_buf_putc(&stage->rows, '\n');
    return stage->rows.len > SEND_BYTES ? ctl_stage_send(import, stage) : NULL;
}
