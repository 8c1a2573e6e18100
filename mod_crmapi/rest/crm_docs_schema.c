/* SPDX-License-Identifier: Apache-2.0 */
/* crm_docs_schema.c: schemas of the OpenAPI document as HTML */
#include "crm_docs_schema.h"

#include <string.h>

#include "crm_array.h"
#include "crm_html.h"
#include "crm_json.h"

json_object *crm_docs_at(json_object *object, const char *name)
{
    return json_object_object_get(object, name);
}

const char *crm_docs_text(json_object *object, const char *name)
{
    return crm_json_text(crm_docs_at(object, name));
}

const char *crm_docs_ref(json_object *object)
{
    const char *ref = crm_docs_text(object, "$ref");

    return ref ? strrchr(ref, '/') + 1 : NULL;
}

/* Return the alternatives of SCHEMA, if it is nothing but these. */
static json_object *alternatives(json_object *schema)
{
    json_object *any = crm_docs_at(schema, "anyOf");

    if (!any) {
        any = crm_docs_at(schema, "oneOf");
    }
    return crm_docs_at(schema, "properties") ? NULL : any;
}

/* Add VALUES, those of an enumeration. */
static void add_values(crm_buf_t *buf, json_object *values)
{
    size_t n = crm_json_count(values);

    for (size_t i = 0; i < n; i++) {
        crm_html_put(buf, i ? " | <code>" : "<code>", json_object_get_string(
                         json_object_array_get_idx(values, i)), "</code>",
                     NULL);
    }
}

/* Add the type NAME of SCHEMA: an array's is that of its items. */
static void add_type_name(crm_buf_t *buf, json_object *schema,
                          const char *name)
{
    if (!strcmp(name, "array") && crm_docs_at(schema, "items")) {
        crm_buf_puts(buf, "array of ");
        crm_docs_type(buf, crm_docs_at(schema, "items"));
        return;
    }
    if (!strcmp(name, "string") && crm_docs_text(schema, "format")) {
        name = crm_docs_text(schema, "format");
    }
    crm_html_text(buf, name);
}

/* Add the values of SCHEMA, or the names of its types. */
static void add_types(crm_buf_t *buf, json_object *schema)
{
    json_object *types = crm_docs_at(schema, "type");
    size_t n = crm_json_count(types);

    if (crm_docs_at(schema, "const")) {
        crm_html_put(buf, "<code>", json_object_get_string(
                         crm_docs_at(schema, "const")), "</code>", NULL);
    }
    else if (crm_docs_at(schema, "enum")) {
        add_values(buf, crm_docs_at(schema, "enum"));
    }
    else if (!n) {
        add_type_name(buf, schema, types ? json_object_get_string(types)
                      : "any");
    }
    else {
        for (size_t i = 0; i < n; i++) {
            crm_buf_puts(buf, i ? " or " : "");
            add_type_name(buf, schema, json_object_get_string(
                              json_object_array_get_idx(types, i)));
        }
    }
}

void crm_docs_type(crm_buf_t *buf, json_object *schema)
{
    const char *name = crm_docs_ref(schema);
    json_object *any = alternatives(schema);

    if (name) {
        crm_html_put(buf, "<a href=\"#", name, "\">", name, "</a>", NULL);
    }
    else if (any) {
        for (size_t i = 0; i < crm_json_count(any); i++) {
            crm_buf_puts(buf, i ? " or " : "");
            crm_docs_type(buf, json_object_array_get_idx(any, i));
        }
    }
    else {
        add_types(buf, schema);
    }
}

/* The limits of a schema that are shown, and how. */
static const struct { const char *name, *before, *after; } limits[] = {
    {"default", "by default ", ""},
    {"minLength", "characters: at least ", ""},
    {"maxLength", "characters: at most ", ""},
    {"minItems", "items: at least ", ""},
    {"maxItems", "items: at most ", ""},
    {"minimum", "from ", ""},
    {"maximum", "to ", ""},
    {"exclusiveMinimum", "above ", ""},
    {"exclusiveMaximum", "below ", ""},
};

/* Add the limits of SCHEMA, after what is there already if LATER. */
static void add_limits(crm_buf_t *buf, json_object *schema, int later)
{
    for (size_t i = 0; i < CRM_NELTS(limits); i++) {
        json_object *limit = crm_docs_at(schema, limits[i].name);

        if (limit) {
            crm_html_put(buf, later ? "; " : "", limits[i].before, "",
                         json_object_get_string(limit), "", limits[i].after,
                         NULL);
            later = 1;
        }
    }
}

void crm_docs_field(crm_buf_t *buf, const char *name, json_object *schema,
                    const char *description, int required)
{
    json_object *items = crm_docs_at(schema, "items");

    if (!description) {
        description = crm_docs_text(schema, "description");
    }
    crm_html_put(buf, "<dt><code>", name, "</code> ", NULL);
    crm_docs_type(buf, schema);
    crm_buf_puts(buf, required ? ", <b>required</b></dt><dd>" : "</dt><dd>");
    crm_html_text(buf, description);
    add_limits(buf, schema, description != NULL);
    crm_docs_fields(buf, schema);
    if (items) {
        crm_docs_fields(buf, items);
    }
    crm_buf_puts(buf, "</dd>");
}

/* Return whether NAME is in SCHEMA's list of what is required. */
static int is_required(json_object *schema, const char *name)
{
    json_object *names = crm_docs_at(schema, "required");

    for (size_t i = 0; i < crm_json_count(names); i++) {
        if (!strcmp(name, json_object_get_string(
                        json_object_array_get_idx(names, i)))) {
            return 1;
        }
    }
    return 0;
}

void crm_docs_fields(crm_buf_t *buf, json_object *schema)
{
    json_object *properties = crm_docs_at(schema, "properties");
    /* what a response shows is always there; only a body leaves something out */
    int body = crm_docs_at(schema, "additionalProperties") != NULL;

    if (!properties) {
        return;
    }
    crm_buf_puts(buf, "<dl>");
    json_object_object_foreach(properties, name, value) {
        crm_docs_field(buf, name, value, NULL,
                       body && is_required(schema, name));
    }
    crm_buf_puts(buf, "</dl>");
}
