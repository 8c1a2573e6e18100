/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_export.c: exporting a workspace as JSON Lines */
#include "crmapictl_export.h"

#include <errno.h>
#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_resources.h"
#include "crm_sql_print.h"
#include "crm_text.h"
#include "crmapictl_output.h"

/* Return the stored columns of RESOURCE, in POOL. Derived columns are left
 * out. */
static const char *columns_of(const crm_resource_t *resource,
                              apr_pool_t *pool)
{
    const char *columns = "";

    for (const crm_field_t *field = resource->fields; field->name; field++) {
        if (!(field->flags & CRM_F_DERIVED)) {
            columns = apr_pstrcat(pool, columns, *columns ? ", t." : "t.",
                                  field->name, NULL);
        }
    }
    return columns;
}

/* An export. */
typedef struct writer_t {
    crm_conn_t *conn;
    const char *workspace_id;
    const crm_resource_t *resource; /* that is being exported */
    crm_buf_t line;
    FILE *out;
    apr_pool_t *pool;
} writer_t;

static crm_error_t *cannot_write(const writer_t *writer)
{
    return crm_error_createf(CRM_E_INTERNAL, writer->pool, "cannot write: %s",
                             strerror(errno));
}

/* Write WRITER's line, and empty it. */
static crm_error_t *put_line(writer_t *writer)
{
    crm_buf_t *line = &writer->line;

    crm_buf_putc(line, '\n');
    if (!ctl_write(writer->out, line->data, line->len)) {
        return cannot_write(writer);
    }
    line->len = 0;
    return NULL;
}

/* A crm_db_row_t: write the row of RESULT as a line. BATON is a writer_t. */
static crm_error_t *write_row(void *baton, const PGresult *result)
{
    writer_t *writer = baton;
    crm_buf_t *line = &writer->line;
    int column = 0;

    crm_buf_printf(line, "{\"object\":\"%s\"", writer->resource->name);
    for (const crm_field_t *field = writer->resource->fields; field->name;
         field++) {
        if (field->flags & CRM_F_DERIVED) {
            continue;
        }
        crm_buf_printf(line, ",\"%s\":", field->name);
        crm_type_write(line, field, crm_db_value(result, 0, column),
                       (apr_size_t)PQgetlength(result, 0, column));
        column++;
    }
    crm_buf_putc(line, '}');
    return put_line(writer);
}

static crm_error_t *export_resource(writer_t *writer,
                                    const crm_resource_t *resource)
{
    crm_stmt_t stmt;
    crm_sql_t sql;

    writer->resource = resource;
    crm_sql_init(&sql, writer->pool);
    crm_sql_adds(&sql, "SELECT ", columns_of(resource, writer->pool),
                 " FROM crmapi.", resource->name, " t", NULL);
    crm_sql_template(&sql, " WHERE t.workspace_id = ? ORDER BY t.id",
                     writer->workspace_id, "uuid");
    crm_sql_stmt(&stmt, &sql);
    return crm_db_each(writer->conn, &stmt, write_row, writer, writer->pool);
}

/* A crm_db_row_t: write RESULT's only column as a line. BATON is a writer_t. */
static crm_error_t *write_line(void *baton, const PGresult *result)
{
    writer_t *writer = baton;

    crm_buf_puts(&writer->line, PQgetvalue(result, 0, 0));
    return put_line(writer);
}

/* The objects that are no resources: import cannot take them, so they are exported
 * only if they are asked for. $1 is the workspace. */
static const struct extra_t {
    const char *name;
    const char *sql;            /* returns lines */
} extras[] = {
    {"audit", "SELECT json_build_object('object', 'audit')::jsonb ||"
     " (to_jsonb(a) - 'workspace_id') || jsonb_build_object('at', to_char(a.at"
     " AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'))"
     " FROM crmapi.audit a WHERE a.workspace_id = $1::uuid ORDER BY a.at, a.id"},
    {"usage", "SELECT json_build_object('object', 'usage')::jsonb ||"
     " (to_jsonb(u) - 'workspace_id') FROM crmapi.usage u WHERE u.workspace_id ="
     " $1::uuid ORDER BY u.day"},
};

/* Return whether NAME is one of them. */
static int is_extra(const char *name)
{
    for (size_t i = 0; i < CRM_NELTS(extras); i++) {
        if (!strcmp(name, extras[i].name)) {
            return 1;
        }
    }
    return 0;
}

static crm_error_t *export_extra(writer_t *writer, const struct extra_t *extra)
{
    crm_stmt_t stmt = {extra->sql, 1, &writer->workspace_id};

    return crm_db_each(writer->conn, &stmt, write_line, writer, writer->pool);
}

const char *crm_export_rule(const apr_array_header_t *names, apr_pool_t *result_pool)
{
    const char *unknown = NULL, *list = NULL;

    for (int i = 0; i < names->nelts && !unknown; i++) {
        const char *name = APR_ARRAY_IDX(names, i, const char *);
        const crm_resource_t *resource = crm_resource_find(name);

        unknown = (!resource || resource->no_import) && !is_extra(name) ? name : NULL;
    }
    if (!unknown) {
        return NULL;
    }
    for (int i = 0; crm_resources[i]; i++) {
        if (!crm_resources[i]->no_import) {
            list = crm_text_listed(list, crm_resources[i]->name, result_pool);
        }
    }
    for (size_t i = 0; i < CRM_NELTS(extras); i++) {
        list = crm_text_listed(list, extras[i].name, result_pool);
    }
    return apr_pstrcat(result_pool, "\"", unknown, "\" must be one of ", list, NULL);
}

crm_error_t *crm_export(crm_conn_t *conn, const char *workspace_id,
                        const apr_array_header_t *names, FILE *out,
                        apr_pool_t *result_pool)
{
    writer_t writer = {.conn = conn, .workspace_id = workspace_id, .out = out,
                       .pool = result_pool};
    crm_error_t *error;

    crm_buf_init(&writer.line, 65536, result_pool);
    error = crm_db_exec(conn, "BEGIN ISOLATION LEVEL REPEATABLE READ READ"
                        " ONLY", result_pool);
    for (int i = 0; !error && crm_resources[i]; i++) {
        if (!crm_resources[i]->no_import
            && (!names || crm_array_has(names, crm_resources[i]->name))) {
            error = export_resource(&writer, crm_resources[i]);
        }
    }
    for (size_t i = 0; !error && names && i < CRM_NELTS(extras); i++) {
        if (crm_array_has(names, extras[i].name)) {
            error = export_extra(&writer, &extras[i]);
        }
    }
    crm_db_rollback(conn);
    return !error && fflush(out) ? cannot_write(&writer) : error;
}
