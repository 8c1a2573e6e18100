/* SPDX-License-Identifier: Apache-2.0 */
/* crm_json_big.c: integers that json-c would clamp. jsonb writes 1e300 without an
 * exponent, so what was stored comes back as such a number. */
#include "crm_json_big.h"

#include <string.h>

#include "apr_lib.h"

#include "crm_buf.h"
#include "crm_json_slice.h"

/* The first integer that json-c does not tell from the next ones. */
static const char first[] = "9223372036854775807";
#define DIGITS (sizeof(first) - 1)

#define MARK "e0"

/* Return the number of digits at TEXT, before END. */
static apr_size_t digits_at(const char *text, const char *end)
{
    const char *at = text;

    while (at < end && apr_isdigit(*at)) {
        at++;
    }
    return (apr_size_t)(at - text);
}

/* Return whether TEXT has DIGITS digits in a row: one of them is at a multiple. */
static int may_have(const char *text, apr_size_t len)
{
    for (apr_size_t i = DIGITS - 1; i < len; i += DIGITS) {
        apr_size_t from = i;

        while (from && apr_isdigit(text[from]) && apr_isdigit(text[from - 1])) {
            from--;
        }
        if (digits_at(text + from, text + len) >= DIGITS) {
            return 1;
        }
    }
    return 0;
}

/* Return whether json-c would clamp the integer of LEN digits at TEXT, which has no
 * sign. */
static int is_clamped(const char *text, apr_size_t len)
{
    return len > DIGITS
           || (len == DIGITS && memcmp(text, first, DIGITS) >= 0);
}

/* Return the length of the number or of anything else at TEXT, before END. *IS_BIG_P:
 * it is an integer that json-c would clamp. */
static apr_size_t token_len(int *is_big_p, const char *text, const char *end)
{
    apr_size_t digits = digits_at(text, end), len = digits;

    if (!digits) {
        return *text == '"' ? (apr_size_t)(crm_json_string_end(text, end) - text)
                            : 1;
    }
    while (text + len < end && strchr("0123456789+-.eE", text[len])) {
        len++;
    }
    *is_big_p = len == digits && is_clamped(text, digits);
    return len;
}

const char *crm_json_big_mark(apr_size_t *len_p, const char *text,
                              apr_pool_t *result_pool)
{
    const char *end = text + *len_p;
    apr_size_t len;
    crm_buf_t buf;

    if (!may_have(text, *len_p)) {
        return text;
    }
    crm_buf_init(&buf, *len_p + 64, result_pool);
    for (; text < end; text += len) {
        int is_big = 0;

        len = token_len(&is_big, text, end);
        crm_buf_add(&buf, text, len);
        if (is_big) {
            crm_buf_puts(&buf, MARK);
        }
    }
    *len_p = buf.len;
    return buf.data;
}

/* Take the mark from the number VALUE. */
static void restore(json_object *value)
{
    const char *text = json_object_to_json_string(value);
    size_t sign = *text == '-', digits = strspn(text + sign, "0123456789");

    if (is_clamped(text + sign, digits)
        && !strcmp(text + sign + digits, MARK)) {
        json_object_set_serializer(value, json_object_userdata_to_json_string,
                                   strndup(text, sign + digits),
                                   json_object_free_userdata);
    }
}

/* The recursion is bounded: the parser has checked the depth before. */
void crm_json_big_restore(json_object *value)
{
    switch (json_object_get_type(value)) {
    case json_type_double:
        restore(value);
        break;
    case json_type_array:
        for (size_t i = 0; i < json_object_array_length(value); i++) {
            crm_json_big_restore(json_object_array_get_idx(value, i));
        }
        break;
    case json_type_object: {
        json_object_object_foreach(value, name, member) {
            (void)name;
            crm_json_big_restore(member);
        }
        break;
    }
    default:
        break;
    }
}
