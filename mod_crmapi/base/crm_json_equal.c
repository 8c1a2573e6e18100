/* SPDX-License-Identifier: Apache-2.0 */
/* crm_json_equal.c: comparing JSON values exactly. json-c has numbers as doubles and
 * clamped integers, for which 1e1 is not 10, and 0.1 is 0.10000000000000000001 */
#include "crm_json_equal.h"

#include <string.h>

#include <json-c/json.h>

#include "crm_buf.h"
#include "crm_json_slice.h"
#include "crm_number.h"

/* What a number is in a string that no other string begins with. */
#define MARK "\\u0000"

/* Add the number of LEN bytes at TEXT to BUF, as a string. */
static void add_number(crm_buf_t *buf, const char *text, apr_size_t len)
{
    char *out = apr_palloc(buf->pool, len + CRM_NUMBER_EXACT);

    crm_buf_puts(buf, "\"" MARK);
    crm_buf_add(buf, out, crm_number_exact(out, text, len));
    crm_buf_putc(buf, '"');
}

/* Return the JSON text TEXT as a tree, in which numbers are strings. */
static json_object *tree_of(const char *text, apr_pool_t *pool)
{
    const char *end = text + strlen(text);
    crm_buf_t buf;
    apr_size_t len;

    crm_buf_init(&buf, (apr_size_t)(end - text) + 64, pool);
    for (; *text; text += len) {
        len = strspn(text, "+-.0123456789eE");
        if (*text == '"') {
            len = (apr_size_t)(crm_json_string_end(text, end) - text);
        }
        else if (strchr("-0123456789", *text)) {
            add_number(&buf, text, len);
            continue;
        }
        else {
            len = 1;
        }
        crm_buf_add(&buf, text, len);
    }
    crm_buf_putc(&buf, '\0');
    return json_tokener_parse(buf.data);
}

/* Return whether TEXT is a JSON string without escapes, and nothing else. */
static int is_plain(const char *text)
{
    return *text == '"' && !strchr(text, '\\')
           && text[strlen(text) - 1] == '"';
}

int crm_json_equal(const char *a, const char *b, apr_pool_t *scratch_pool)
{
    json_object *left, *right;
    int equal;

    if (!strcmp(a, b)) {
        return 1;
    }
    if (is_plain(a) && is_plain(b)) {
        return 0;
    }
    left = tree_of(a, scratch_pool);
    right = tree_of(b, scratch_pool);
    equal = json_object_equal(left, right);
    json_object_put(left);
    json_object_put(right);
    return equal;
}
