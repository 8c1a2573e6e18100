/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_fields.c: the argument "fields": only these fields of rows (contract
 * 21.3) */
#include "mcp_fields.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_near.h"
#include "crm_type.h"

#define FIELDS_MAX 100
#define GUESSES 10              /* names that are asked for, of so many */

/* Return whether NAME, a string, is a field that RESOURCE shows. */
static int is_field(crm_slice_t name, const crm_resource_t *resource)
{
    const crm_field_t *field = resource->fields;

    for (; field->name; field++) {
        if (crm_slice_is(name, field->name)) {
            return crm_field_is_public(field);
        }
    }
    return 0;
}

/* Return, in POOL, the rule that NAME breaks, which is no field of RESOURCE. ASKS: it
 * asks for the field that is meant. */
static const char *unknown_rule(crm_slice_t name,
                                const crm_resource_t *resource, int asks,
                                apr_pool_t *pool)
{
    const char *rule = apr_pstrcat(pool, "is not a field of ",
                                   resource->title, NULL);

    return asks && crm_slice_type(name) == '"'
           ? crm_near_ask(rule, crm_field_near(crm_slice_text(
                                                   name, NULL, pool),
                                               resource->fields, NULL), pool)
           : rule;
}

void mcp_fields_check(crm_error_t **error_p, crm_slice_t fields,
                      const crm_resource_t *resource, apr_pool_t *pool)
{
    crm_json_walk_t walk;
    crm_slice_t name;

    crm_json_walk(&walk, fields, '[');
    for (int i = 0; crm_json_item(&name, &walk); i++) {
        if (i == FIELDS_MAX) {
            crm_error_detail(error_p, "fields", "must have at most 100 names",
                             pool);
            return;
        }
        if (!is_field(name, resource)) {
            crm_error_detail(error_p, apr_psprintf(pool, "fields[%d]", i),
                             unknown_rule(name, resource, i < GUESSES, pool),
                             pool);
        }
    }
}

/* Return whether NAME, the name of a member, is in FIELDS. */
static int is_wanted(crm_slice_t name, crm_slice_t fields)
{
    crm_json_walk_t walk;
    crm_slice_t one;

    if (crm_slice_is(name, "id")) {
        return 1;
    }
    crm_json_walk(&walk, fields, '[');
    while (crm_json_item(&one, &walk)) {
        if (one.len == name.len && !memcmp(one.text, name.text, one.len)) {
            return 1;
        }
    }
    return 0;
}

static void add_member(crm_buf_t *out, int first, crm_slice_t name,
                       crm_slice_t value)
{
    crm_buf_puts(out, first ? "" : ",");
    crm_buf_add(out, name.text, name.len);
    crm_buf_putc(out, ':');
    crm_buf_add(out, value.text, value.len);
}

/* Add ROW with FIELDS only. */
static void add_row(crm_buf_t *out, crm_slice_t row, crm_slice_t fields)
{
    crm_slice_t name, value;
    crm_json_walk_t walk;
    int first = 1;

    crm_buf_putc(out, '{');
    crm_json_walk(&walk, row, '{');
    while (crm_json_member(&name, &value, &walk)) {
        if (is_wanted(name, fields)) {
            add_member(out, first, name, value);
            first = 0;
        }
    }
    crm_buf_putc(out, '}');
}

/* Add DATA, a row or an array of them. */
static void add_rows(crm_buf_t *out, crm_slice_t data, crm_slice_t fields)
{
    crm_json_walk_t walk;
    crm_slice_t row;
    int first = 1;

    if (!crm_json_walk(&walk, data, '[')) {
        add_row(out, data, fields);
        return;
    }
    crm_buf_putc(out, '[');
    while (crm_json_item(&row, &walk)) {
        crm_buf_puts(out, first ? "" : ",");
        add_row(out, row, fields);
        first = 0;
    }
    crm_buf_putc(out, ']');
}

void mcp_fields_trim(crm_buf_t *out, const char *body, apr_size_t len,
                     crm_slice_t fields)
{
    crm_slice_t name, value;
    crm_json_walk_t walk;
    int first = 1;

    crm_buf_putc(out, '{');
    crm_json_walk(&walk, crm_json_slice(body, len), '{');
    while (crm_json_member(&name, &value, &walk)) {
        if (crm_slice_is(name, "data")) {
            crm_buf_puts(out, first ? "\"data\":" : ",\"data\":");
            add_rows(out, value, fields);
        }
        else {
            add_member(out, first, name, value);
        }
        first = 0;
    }
    crm_buf_putc(out, '}');
}
