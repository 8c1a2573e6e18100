/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_export.c: exporting a workspace as JSON Lines */
#include "crmapictl_export.h"

#include <errno.h>
#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_resources.h"
#include "crm_sql_print.h"
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

/* The export of a resource. */
typedef struct writer_t {
    const crm_resource_t *resource;
    crm_buf_t *line;
    FILE *out;
    apr_pool_t *pool;
} writer_t;

/* A crm_db_row_t: write the row of RESULT as a line. BATON is a writer_t. */
static crm_error_t *write_row(void *baton, const PGresult *result)
{
    writer_t *writer = baton;
    crm_buf_t *line = writer->line;
    int column = 0;

    line->len = 0;
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
    crm_buf_add(line, "}\n", 2);
    return ctl_write(writer->out, line->data, line->len)
           ? NULL : crm_error_createf(CRM_E_INTERNAL, writer->pool,
                                      "cannot write: %s", strerror(errno));
}

static crm_error_t *export_resource(crm_conn_t *conn, const char *workspace_id,
                                    const crm_resource_t *resource,
                                    crm_buf_t *line, FILE *out,
                                    apr_pool_t *pool)
{
    writer_t writer = {resource, line, out, pool};
    crm_stmt_t stmt;
    crm_sql_t sql;

    crm_sql_init(&sql, pool);
    crm_sql_adds(&sql, "SELECT ", columns_of(resource, pool), " FROM crmapi.",
                 resource->name, " t", NULL);
    crm_sql_template(&sql, " WHERE t.workspace_id = ? ORDER BY t.id",
                     workspace_id, "uuid");
    crm_sql_stmt(&stmt, &sql);
    return crm_db_each(conn, &stmt, write_row, &writer, pool);
}

/* A crm_db_row_t: write RESULT's only column as a line. BATON is a writer_t. */
static crm_error_t *write_line(void *baton, const PGresult *result)
{
    writer_t *writer = baton;

    return fprintf(writer->out, "%s\n", PQgetvalue(result, 0, 0)) > 0 ? NULL
           : crm_error_createf(CRM_E_INTERNAL, writer->pool, "cannot write: %s",
                               strerror(errno));
}

/* The objects that are no resources: import cannot take them, so they are exported
 * only if they are asked for. $1 is the workspace. */
static const struct extra_t {
    const char *name;
    const char *sql;            /* returns lines */
} extras[] = {
    {"audit", "SELECT json_build_object('object', 'audit')::jsonb ||"
     " (to_jsonb(a) - 'workspace_id') FROM crmapi.audit a WHERE a.workspace_id ="
     " $1::uuid ORDER BY a.at, a.id"},
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

/* Export EXTRA of the workspace WORKSPACE_ID. */
static crm_error_t *export_extra(crm_conn_t *conn, const char *workspace_id,
                                 const struct extra_t *extra, FILE *out,
                                 apr_pool_t *pool)
{
    writer_t writer = {NULL, NULL, out, pool};
    crm_stmt_t stmt = {extra->sql, 1, &workspace_id};

    return crm_db_each(conn, &stmt, write_line, &writer, pool);
}

const char *crm_export_unknown(const char *names, apr_pool_t *result_pool)
{
    char *state, *copy = apr_pstrdup(result_pool, names);

    for (const char *name = apr_strtok(copy, ",", &state); name;
         name = apr_strtok(NULL, ",", &state)) {
        const crm_resource_t *resource = crm_resource_find(name);

        if ((!resource || resource->no_import) && !is_extra(name)) {
            return name;
        }
    }
    return NULL;
}

/* Return whether NAMES, separated by commas, has NAME; NULL has all. */
static int is_chosen(const char *names, const char *name)
{
    size_t len = strlen(name);

    while (names && *names) {
        size_t own = strcspn(names, ",");

        if (own == len && !strncmp(names, name, len)) {
            return 1;
        }
        names += own + (names[own] == ',');
    }
    return !names;
}

crm_error_t *crm_export(crm_conn_t *conn, const char *workspace_id,
                        const char *names, FILE *out,
                        apr_pool_t *result_pool)
{
    crm_error_t *error;
    crm_buf_t line;

    crm_buf_init(&line, 65536, result_pool);
    error = crm_db_exec(conn, "BEGIN ISOLATION LEVEL REPEATABLE READ READ"
                        " ONLY", result_pool);
    for (int i = 0; !error && crm_resources[i]; i++) {
        if (!crm_resources[i]->no_import
            && is_chosen(names, crm_resources[i]->name)) {
            error = export_resource(conn, workspace_id, crm_resources[i],
                                    &line, out, result_pool);
        }
    }
    for (size_t i = 0; !error && names && i < CRM_NELTS(extras); i++) {
        if (is_chosen(names, extras[i].name)) {
            error = export_extra(conn, workspace_id, &extras[i], out,
                                 result_pool);
        }
    }
    crm_db_rollback(conn);
    if (!error && fflush(out)) {
        error = crm_error_createf(CRM_E_INTERNAL, result_pool,
                                  "cannot write: %s", strerror(errno));
    }
    return error;
}
