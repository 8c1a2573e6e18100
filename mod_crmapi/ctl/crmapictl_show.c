/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_show.c: the document that makes a workspace (contract 14.1) */
#include "crmapictl_show.h"

#include <stdio.h>
#include <string.h>

#include "crm_buf.h"
#include "crm_sql_print.h"
#include "crmapictl_kind.h"
#include "crmapictl_output.h"
#include "crmapictl_workspace.h"

/* Return whether show has FIELD of KIND. The id of the workspace is not in the
 * document: elsewhere it is another one. */
static int is_shown(const ctl_kind_t *kind, const crm_field_t *field)
{
    return ctl_kind_has(field) && !ctl_kind_is_stamp(field)
           && (kind != ctl_kinds || strcmp(field->name, "id"));
}

/* Add the LEN bytes at JSON to BUF; apply replaces variables in strings, so "${"
 * becomes "$${". */
static void add_escaped(crm_buf_t *buf, const char *json, apr_size_t len)
{
    for (apr_size_t i = 0; i < len; i++) {
        if (json[i] == '$' && i + 1 < len && json[i + 1] == '{') {
            crm_buf_putc(buf, '$');
        }
        crm_buf_putc(buf, json[i]);
    }
}

/* Add ROW of RESULT, a row of KIND, to BUF as an object. */
static void add_row(crm_buf_t *buf, const ctl_kind_t *kind,
                    const PGresult *result, int row)
{
    const char *separator = "{";
    crm_buf_t value;
    int column = 0;

    crm_buf_init(&value, 256, buf->pool);
    for (const crm_field_t *field = kind->resource->fields; field->name;
         field++) {
        if (is_shown(kind, field)) {
            crm_buf_printf(buf, "%s\"%s\":", separator, field->name);
            value.len = 0;
            crm_type_write(&value, field, crm_db_value(result, row, column),
                           (apr_size_t)PQgetlength(result, row, column));
            add_escaped(buf, value.data, value.len);
            separator = ",";
        }
        column += ctl_kind_has(field);
    }
    crm_buf_putc(buf, '}');
}

/* Add the rows of KIND of WORKSPACE to BUF: a member of the document, a line for
 * each row. */
static crm_error_t *add_kind(crm_buf_t *buf, ctl_t *ctl,
                             const ctl_kind_t *kind, const char *workspace)
{
    PGresult *result;
    crm_stmt_t stmt;
    crm_sql_t sql;

    crm_sql_init(&sql, ctl->pool);
    ctl_kind_select(&sql, kind, workspace);
    crm_sql_stmt(&stmt, &sql);
    CRM_ERR(crm_db_query(&result, ctl->conn, &stmt, ctl->pool));
    crm_buf_printf(buf, "%s\"%s\":", kind == ctl_kinds ? "{" : ",\n",
                   kind->resource->name);
    if (kind == ctl_kinds) {
        add_row(buf, kind, result, 0);
        return NULL;
    }
    crm_buf_putc(buf, '[');
    for (int row = 0; row < PQntuples(result); row++) {
        crm_buf_puts(buf, row ? ",\n  " : "\n  ");
        add_row(buf, kind, result, row);
    }
    crm_buf_putc(buf, ']');
    return NULL;
}

crm_error_t *ctl_show(ctl_t *ctl)
{
    const char *workspace;
    crm_error_t *error = NULL;
    crm_buf_t buf;

    crm_buf_init(&buf, 65536, ctl->pool);
    CRM_ERR(ctl_workspace_id(&workspace, ctl, ctl->args[0]));
    CRM_ERR(crm_db_exec(ctl->conn, "BEGIN ISOLATION LEVEL REPEATABLE READ READ"
                        " ONLY", ctl->pool));
    for (const ctl_kind_t *kind = ctl_kinds; !error && kind->resource; kind++) {
        error = add_kind(&buf, ctl, kind, workspace);
    }
    crm_db_exec(ctl->conn, "ROLLBACK", ctl->pool);
    if (!error) {
        crm_buf_puts(&buf, "}\n");
        ctl_write(stdout, buf.data, buf.len);
    }
    return error;
}
