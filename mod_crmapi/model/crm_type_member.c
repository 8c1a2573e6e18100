/* SPDX-License-Identifier: Apache-2.0 */
/* crm_type_member.c: the value of custom_fields.NAME=value (contract 20.3) */
#include "crm_type_member.h"

#include <string.h>

#include "crm_buf.h"
#include "crm_sql.h"

/* The longest text that is tried as a number: it holds every number that a row
 * can have. */
#define NUMBER_MAX 40

/* Return whether TEXT is what stands for itself in JSON: true, false, null or a
 * number (RFC 8259, 6) with an exponent of at most two digits. */
static int is_literal(const char *text)
{
    const char *at = text + (*text == '-');
    size_t whole = strspn(at, "0123456789"), part;

    if (!strcmp(text, "true") || !strcmp(text, "false")
        || !strcmp(text, "null")) {
        return 1;
    }
    if (!whole || (whole > 1 && *at == '0') || strlen(text) > NUMBER_MAX) {
        return 0;
    }
    at += whole;
    if (*at == '.') {
        part = strspn(at + 1, "0123456789");
        at += part ? part + 1 : 0;
    }
    if (*at == 'e' || *at == 'E') {
        size_t sign = at[1] == '-' || at[1] == '+';

        part = strspn(at + 1 + sign, "0123456789");
        at += part && part <= 2 ? part + sign + 1 : 0;
    }
    return !*at;
}

/* Return the JSON object {NAME: VALUE} in POOL. QUOTED: VALUE is a string. */
static const char *object_of(const char *name, const char *value, int quoted,
                             apr_pool_t *pool)
{
    crm_buf_t buf;

    crm_buf_init(&buf, strlen(name) + strlen(value) + 16, pool);
    crm_buf_putc(&buf, '{');
    crm_buf_json_text(&buf, name);
    crm_buf_putc(&buf, ':');
    if (quoted) {
        crm_buf_json_text(&buf, value);
    }
    else {
        crm_buf_puts(&buf, value);
    }
    crm_buf_add(&buf, "}", 2);
    return buf.data;
}

/* The bind is an array of what a row's object may contain: TEXT as a string, and
 * what it is without quotes. */
static const char *member_parse_query(const char **bind_p,
                                      const crm_field_t *field,
                                      const char *text, apr_pool_t *pool)
{
    apr_array_header_t *objects = apr_array_make(pool, 2, sizeof(const char *));

    APR_ARRAY_PUSH(objects, const char *) = object_of(field->name, text, 1,
                                                      pool);
    if (is_literal(text)) {
        APR_ARRAY_PUSH(objects, const char *) = object_of(field->name, text, 0,
                                                          pool);
    }
    *bind_p = crm_sql_array(objects, pool);
    return NULL;
}

const crm_type_t crm_type_member = {
    .name = "member", .cast = "jsonb[]", .parse_query = member_parse_query,
    .fixed_schema = "\"type\":\"string\",\"minLength\":1",
};
