/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_dump_line.c: the lines of a dump that are not rows */
#include "crmapictl_dump_line.h"

#include "apr_strings.h"

#include "crm_json.h"
#include "crm_schema.h"

/* The last version before the first release. Its dumps have the same rows, and
 * another count of schemas. */
#define FORMAT_BEFORE 1
#define SCHEMA_BEFORE 27

/* Set *OBJECT_P to LINE, a JSON object with the member NAME, in POOL. */
static const char *parse(json_object **object_p, const crm_buf_t *line,
                         const char *name, apr_pool_t *pool)
{
    json_object *object = NULL;
    apr_size_t offset;

    if (crm_json_parse(&object, &offset, line->data, line->len - 1, pool)
        || !json_object_is_type(object, json_type_object)
        || !json_object_object_get_ex(object, name, NULL)) {
        return apr_psprintf(pool, "the line of a dump is missing here that has"
                            " \"%s\"", name);
    }
    *object_p = object;
    return NULL;
}

/* Return the member NAME of OBJECT if it is a string, else "". */
static const char *text_of(json_object *object, const char *name)
{
    const char *text = crm_json_text(json_object_object_get(object, name));

    return text ? text : "";
}

/* Return the member NAME of OBJECT if it is an integer, else -1. */
static apr_int64_t number_of(json_object *object, const char *name)
{
    json_object *value = NULL;

    json_object_object_get_ex(object, name, &value);
    return json_object_is_type(value, json_type_int)
           ? json_object_get_int64(value) : -1;
}

const char *ctl_dump_read_head(char workspace[CRM_UUID_LEN + 1],
                               const char **since_p, const crm_buf_t *line,
                               apr_pool_t *pool)
{
    json_object *head = NULL;
    const char *fault = parse(&head, line, "dump", pool), *id;
    apr_int64_t format, schema;

    if (fault || strcmp(text_of(head, "dump"), CTL_DUMP_NAME)) {
        return "this is not a dump of a workspace";
    }
    format = number_of(head, "format");
    schema = number_of(head, "schema");
    id = text_of(head, "workspace");
    *since_p = apr_pstrdup(pool, text_of(head, "since"));
    if (format == FORMAT_BEFORE && schema == SCHEMA_BEFORE) {
        format = CTL_DUMP_FORMAT;
        schema = CRM_SCHEMA_VERSION;
    }
    if (format != CTL_DUMP_FORMAT) {
        return apr_psprintf(pool, "the dump has format %" APR_INT64_T_FMT ", and"
                            " this crmapictl reads format %d", format,
                            CTL_DUMP_FORMAT);
    }
    if (schema < 1 || schema > CRM_SCHEMA_VERSION) {
        return apr_psprintf(pool, "the dump has schema version %"
                            APR_INT64_T_FMT ", and this crmapictl knows those"
                            " up to %d", schema, CRM_SCHEMA_VERSION);
    }
    return crm_uuid_parse(workspace, id, strlen(id)) ? NULL
           : "\"workspace\" must be a UUID";
}

/* Return whether the array LIST has the string NAME. */
static int has(json_object *list, const char *name)
{
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        const char *item = crm_json_text(json_object_array_get_idx(list, i));

        if (item && !strcmp(item, name)) {
            return 1;
        }
    }
    return 0;
}

/* Return the first item of LIST, as text, that OTHER lacks, or NULL. */
static const char *lacks(json_object *other, json_object *list)
{
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *item = json_object_array_get_idx(list, i);
        const char *name = item ? json_object_get_string(item) : "null";

        if (!has(other, name)) {
            return name;
        }
    }
    return NULL;
}

/* Check that the list THERE, of the dump, has the columns of TABLE. */
static const char *check_columns(json_object *there, const ctl_table_t *table,
                                 apr_pool_t *pool)
{
    json_object *here = NULL;
    apr_size_t offset;
    const char *name;

    crm_json_parse(&here, &offset, table->columns, strlen(table->columns),
                   pool);
    if (!json_object_is_type(there, json_type_array)) {
        return "\"columns\" must be a list";
    }
    name = lacks(here, there);
    if (name) {
        return apr_psprintf(pool, "the table %s of the dump has the column"
                            " \"%.64s\", which this database does not have",
                            table->name, name);
    }
    name = lacks(there, here);
    if (name) {
        return apr_psprintf(pool, "the table %s of this database has the column"
                            " \"%s\", which the dump does not have",
                            table->name, name);
    }
    return json_object_equal(here, there) ? NULL
           : apr_psprintf(pool, "the columns of the table %s have another order"
                          " than in this database", table->name);
}

const char *ctl_dump_read_table(apr_int64_t *rows_p, const crm_buf_t *line,
                                const ctl_table_t *table, apr_pool_t *pool)
{
    json_object *object = NULL, *columns = NULL;
    const char *fault = parse(&object, line, "table", pool), *name;

    if (fault) {
        return fault;
    }
    name = text_of(object, "table");
    if (strcmp(name, table->name)) {
        return apr_psprintf(pool, "the dump has the table \"%.64s\" where this"
                            " database has %s", name, table->name);
    }
    json_object_object_get_ex(object, "columns", &columns);
    fault = check_columns(columns, table, pool);
    if (fault || !rows_p) {
        return fault;
    }
    *rows_p = number_of(object, "rows");
    return *rows_p < 0 ? "\"rows\" must be a number" : NULL;
}

const char *ctl_dump_read_end(const crm_buf_t *line, const char *sum,
                              apr_pool_t *pool)
{
    json_object *object = NULL;
    const char *fault = parse(&object, line, "sha256", pool);

    return fault ? fault : strcmp(text_of(object, "sha256"), sum)
           ? "the checksum does not match: the dump is not as it was written"
           : NULL;
}
