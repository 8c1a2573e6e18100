/* SPDX-License-Identifier: Apache-2.0 */
/* event.c: events (contract 13.4) */
#include "event.h"

#include <string.h>

#include <json-c/json.h>

#include "apr_strings.h"

#include "crm_resources.h"
#include "crm_shape.h"
#include "crm_sql.h"
#include "crm_time.h"
#include "crm_type_list.h"

/* Return the type of event with whose name TEXT begins, or NULL. No name begins
 * with another one. */
static const crm_event_type_t *type_of(const char *text)
{
    const crm_event_type_t *type = crm_event_types;

    while (type->type && strncmp(text, type->type, strlen(type->type)) != 0) {
        type++;
    }
    return type->type ? type : NULL;
}

/* Add a row of RESOURCE to BUF as the API shows it. FIELDS is a JSON object
 * with the texts of its columns. Columns that it lacks are left out, and what is no
 * text: the rows of a dump may be forged. FIELDS may be NULL. */
static void write_fields(crm_buf_t *buf, const crm_resource_t *resource,
                         const char *fields)
{
    const crm_shape_t *shape = crm_shape_of(resource);
    json_object *row = fields ? json_tokener_parse(fields) : NULL, *value;
    int first = 1;

    crm_buf_putc(buf, '{');
    for (int i = 0; i < shape->count; i++) {
        const char *key = shape->keys[i];

        if (!json_object_object_get_ex(row, shape->fields[i]->name, &value)
            || (value && !json_object_is_type(value, json_type_string))) {
            continue;
        }
        key += first && *key == ',';
        crm_buf_puts(buf, key);
        crm_type_write(buf, shape->fields[i],
                       value ? json_object_get_string(value) : NULL,
                       (apr_size_t)json_object_get_string_len(value));
        first = 0;
    }
    crm_buf_putc(buf, '}');
    json_object_put(row);
}

int crm_event_body(crm_buf_t *buf, const char *type, const char *created_at,
                   const char *fields)
{
    const crm_event_type_t *event = type_of(type);
    char time[CRM_TIME_SIZE] = "";

    if (!event) {
        return 0;
    }
    crm_time_from_pg(time, created_at);
    crm_buf_printf(buf, "{\"type\":\"%s\",\"timestamp\":\"%s\",\"data\":", type,
                   time);
    write_fields(buf, event->resource, fields);
    crm_buf_putc(buf, '}');
    return 1;
}

/* ---- the resource -------------------------------------------------------- */

/* The column "data": a body, or a type and fields. */
#define DATA_SQL \
    "coalesce(t.body, t.type || ' ' || t.fields::text)"

/* The text before the data in a body. */
#define BEFORE_DATA ",\"data\":"

/* Write the data of an event: TEXT is a value of DATA_SQL, or of a forged dump. */
static void data_write(crm_buf_t *buf, const char *text, apr_size_t len)
{
    const crm_event_type_t *event = type_of(text);
    const char *data = strstr(text, BEFORE_DATA);

    if (event) {
        write_fields(buf, event->resource, strchr(text, ' '));
    }
    else if (*text == '{' && data && data[strlen(BEFORE_DATA)]) {
        data += strlen(BEFORE_DATA);
        crm_buf_add(buf, data, len - (apr_size_t)(data - text) - 1);
    }
    else {
        crm_buf_puts(buf, "null");
    }
}

/* An event is the body of its webhook with an id. */
static void event_schema(crm_buf_t *buf)
{
    crm_buf_puts(buf, "\"required\":[\"id\"],\"properties\":{\"id\":"
                 "{\"type\":\"string\",\"description\":\"the webhook-id of a"
                 " webhook with this event\"}},\"oneOf\":[");
    for (const crm_event_type_t *type = crm_event_types; type->type; type++) {
        crm_buf_printf(buf, "%s{\"$ref\":\"#/components/schemas/%sEvent\"}",
                       type == crm_event_types ? "" : ",", type->title);
    }
    crm_buf_putc(buf, ']');
}

/* event_schema() describes it. */
static const crm_type_t type_data = {
    .name = "event", .cast = "text", .write = data_write,
};

static const crm_field_t fields[] = {
    {.name = "id", .type = &crm_type_text, .flags = CRM_F_DERIVED,
     .sql = "'msg_' || replace(t.id::text, '-', '')"},
    {.name = "type", .type = &crm_type_text},
    {.name = "timestamp", .type = &crm_type_time, .flags = CRM_F_DERIVED,
     .sql = "t.created_at"},
    {.name = "data", .type = &type_data, .flags = CRM_F_DERIVED,
     .sql = DATA_SQL},
    {.name = NULL}
};

/* ---- the filter by type -------------------------------------------------- */

int crm_event_is_type(const char *text)
{
    const crm_event_type_t *type = type_of(text);

    return type && !strcmp(type->type, text);
}

const char *crm_event_types_rule(apr_pool_t *result_pool)
{
    const char *rule = "must be of ";

    for (const crm_event_type_t *type = crm_event_types; type->type; type++) {
        rule = apr_pstrcat(result_pool, rule, type->type, ", ", NULL);
    }
    return apr_pstrcat(result_pool, rule, "separated by commas", NULL);
}

static const char *types_parse_query(const char **bind_p,
                                     const crm_field_t *field,
                                     const char *text, apr_pool_t *pool)
{
    apr_array_header_t *types = crm_type_parts(text, pool);

    (void)field;
    for (int i = 0; i < types->nelts; i++) {
        if (!crm_event_is_type(APR_ARRAY_IDX(types, i, const char *))) {
            return crm_event_types_rule(pool);
        }
    }
    *bind_p = crm_sql_array(types, pool);
    return types->nelts ? NULL : "must not be empty";
}

/* Add an expression for one type to BUF, in a JSON string. */
static void add_type_pattern(crm_buf_t *buf)
{
    for (const crm_event_type_t *type = crm_event_types; type->type; type++) {
        int resource = (int)strcspn(type->type, ".");

        crm_buf_printf(buf, "%s%.*s[.]%s", type == crm_event_types ? "(?:" : "|",
                       resource, type->type, type->type + resource + 1);
    }
    crm_buf_putc(buf, ')');
}

static void types_schema(crm_buf_t *buf, const crm_field_t *field,
                         crm_side_t side)
{
    (void)field;
    (void)side;
    crm_buf_puts(buf, "\"type\":\"string\",\"pattern\":\"^"
                 CRM_PARTS_AROUND);
    add_type_pattern(buf);
    crm_buf_puts(buf, "(?:" CRM_PARTS_BETWEEN);
    add_type_pattern(buf);
    crm_buf_puts(buf, ")*" CRM_PARTS_AROUND "$\"");
}

static const crm_type_t type_types = {
    .name = "types", .cast = "text[]", .parse_query = types_parse_query,
    .schema = types_schema,
};

static const crm_filter_t filters[] = {
    {.field = {.name = "type", .example = "contact.created",
               .type = &type_types,
               .doc = "comma-separated types of events, for example"
                      " contact.created,contact.updated; a page may be short"
                      " then although has_more is true"},
     .by = CRM_BY_VALUE,
     .sql = "t.type = ANY (?)"},
    {.field = {.name = NULL}}
};

static const crm_sort_t by_id[] = {
    {.name = NULL, .ascending = 1},
    {.name = NULL}
};

static const crm_operation_t operations[] = {
    {.id = "listEvents", .method = "GET", .path = "/events",
     .kind = CRM_OP_LOG,
     .filters = filters,
     .sorts = by_id,
     .feed = "event_feed",
     .waits = 1,
     .doc = "The log of all changes in their order. Keep next_cursor, and "
            "ask again with it.",
     .summary = "Read what has changed, by cursor"},
    {.id = NULL}
};

const crm_resource_t crm_resource_event = {
    .name = "event", .title = "Event", .tag = "Events",
    .doc = "A change of a resource.",
    .fields = fields,
    .operations = operations,
    .schema = event_schema,
    .no_import = 1,
};
