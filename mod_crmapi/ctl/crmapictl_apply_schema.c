/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_apply_schema.c: the JSON Schema of documents (contract 14.1) */
#include "crmapictl_apply_schema.h"

#include <stdio.h>

#include "crmapictl_kind.h"

/* A string that is one variable, which any field may be. */
#define VARIABLE "{\"type\":\"string\",\"pattern\":" \
    "\"^\\\\$\\\\{[A-Za-z_][A-Za-z0-9_]*\\\\}$\"}"

/* Add the schema of FIELD of a kind to BUF. A reference may be a slug or a name. A
 * null in a new object counts as absent. */
static void add_field(crm_buf_t *buf, const crm_field_t *field)
{
    crm_buf_puts(buf, "{\"anyOf\":[{");
    if (field->ref) {
        crm_buf_puts(buf, "\"type\":\"string\"");
    }
    else {
        crm_field_schema(buf, field, CRM_SIDE_INPUT);
    }
    crm_buf_puts(buf, "}," VARIABLE);
    crm_buf_puts(buf, field->flags & CRM_F_REQUIRED ? "]"
                 : ",{\"type\":\"null\"}]");
    if (field->doc) {
        crm_buf_puts(buf, ",\"description\":");
        crm_buf_json_text(buf, field->doc);
    }
    crm_buf_putc(buf, '}');
}

/* Add the definition of KIND to BUF. */
static void add_kind(crm_buf_t *buf, const ctl_kind_t *kind)
{
    const crm_resource_t *resource = kind->resource;

    crm_buf_printf(buf, ",\n\"%s\":{\"type\":\"object\",\"description\":",
                   resource->name);
    crm_buf_json_text(buf, resource->doc);
    crm_buf_printf(buf, ",\"additionalProperties\":false,\"properties\":{"
                   "\"object\":{\"const\":\"%s\"}", resource->name);
    for (const crm_field_t *field = resource->fields; field->name; field++) {
        crm_buf_printf(buf, ",\n  \"%s\":", field->name);
        add_field(buf, field);
    }
    if (kind->secret) {
        crm_buf_printf(buf, ",\n  \"%s\":{\"type\":\"string\",\"description\":"
                       "\"file with the secret, which is made otherwise\"}",
                       kind->secret);
    }
    crm_buf_puts(buf, "}");
    if (kind != ctl_kinds) {
        crm_buf_printf(buf, ",\n  \"anyOf\":[{\"required\":[\"id\"]},"
                       "{\"required\":[\"%s\"]}", kind->name);
        crm_buf_printf(buf, kind->handle ? ",{\"required\":[\"%s\"]}]" : "]",
                       kind->handle);
    }
    crm_buf_putc(buf, '}');
}

void ctl_apply_schema(apr_pool_t *scratch_pool)
{
    const ctl_kind_t *kind;
    crm_buf_t buf;

    crm_buf_init(&buf, 65536, scratch_pool);
    crm_buf_puts(&buf, "{\"$schema\":"
                 "\"https://json-schema.org/draft/2020-12/schema\",\n"
                 "\"title\":\"Document of crmapictl apply\",\n"
                 "\"anyOf\":[{\"$ref\":\"#/$defs/document\"},"
                 "{\"$ref\":\"#/$defs/object\"},{\"type\":\"array\","
                 "\"items\":{\"$ref\":\"#/$defs/object\"}}],\n"
                 "\"$defs\":{\n\"document\":{\"type\":\"object\","
                 "\"not\":{\"required\":[\"object\"]},"
                 "\"additionalProperties\":false,\"properties\":{"
                 "\"$schema\":{\"type\":\"string\"}");
    for (kind = ctl_kinds; kind->resource; kind++) {
        const char *name = kind->resource->name;

        crm_buf_printf(&buf, ",\n  \"%s\":{\"anyOf\":[{\"$ref\":\"#/$defs/%s\"},"
                       "{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/%s\"}"
                       "}]}", name, name, name);
    }
    crm_buf_puts(&buf, "}},\n\"object\":{\"required\":[\"object\"],"
                 "\"anyOf\":[");
    for (kind = ctl_kinds; kind->resource; kind++) {
        crm_buf_printf(&buf, "%s{\"$ref\":\"#/$defs/%s\"}",
                       kind == ctl_kinds ? "" : ",", kind->resource->name);
    }
    crm_buf_puts(&buf, "]}");
    for (kind = ctl_kinds; kind->resource; kind++) {
        add_kind(&buf, kind);
    }
    crm_buf_puts(&buf, "}}\n");
    fwrite(buf.data, 1, buf.len, stdout);
}
