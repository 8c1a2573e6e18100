/* SPDX-License-Identifier: Apache-2.0 */
/* crm_json_slice.c: JSON texts in place: members and items as parts of a text,
 * without a tree */
#include "crm_json_slice.h"

#include <string.h>

#include <unicode/utf16.h>
#include <unicode/utf8.h>

#include "apr_lib.h"

#include "crm_block.h"

/* What ends a run of bytes: of white space, between strings of an array or object,
 * of a number or word. */
enum {SPACE = 1, NESTED = 2, WORD = 4};

static const unsigned char ends[256] = {
    [0] = WORD, [' '] = SPACE | WORD, ['\t'] = SPACE | WORD,
    ['\n'] = SPACE | WORD, ['\r'] = SPACE | WORD, [','] = WORD,
    ['"'] = NESTED, ['{'] = NESTED, ['['] = NESTED, ['}'] = NESTED | WORD,
    [']'] = NESTED | WORD,
};

static inline int is_end(char c, int what)
{
    return ends[(unsigned char)c] & what;
}

static void skip_space(crm_json_walk_t *walk)
{
    while (walk->at < walk->end && is_end(*walk->at, SPACE)) {
        walk->at++;
    }
}

/* Return the first byte from AT to END that ends WHAT, or END. */
static inline const char *find_end(const char *at, const char *end, int what)
{
    while (at < end && !is_end(*at, what)) {
        at++;
    }
    return at;
}

const char *crm_json_string_end(const char *at, const char *end)
{
    for (at = crm_block_plain_end(at + 1, end); at < end && *at == '\\';
         at = crm_block_plain_end(at + 2, end)) {
    }
    return at < end ? at + 1 : end;
}

/* Return the end of the array or object whose opening bracket is at AT. */
static const char *end_of_nested(const char *at, const char *end)
{
    int depth = 1;

    for (at++; depth && at < end; ) {
        at = find_end(at, end, NESTED);
        if (at < end && *at == '"') {
            at = crm_json_string_end(at, end);
        }
        else if (at < end) {
            depth += *at == '{' || *at == '[' ? 1 : -1;
            at++;
        }
    }
    return at;
}

/* Return the value that is next, and skip it. */
static crm_slice_t take(crm_json_walk_t *walk)
{
    crm_slice_t value = {walk->at, 0};
    char c = walk->at < walk->end ? *walk->at : '\0';

    walk->at = c == '"' ? crm_json_string_end(walk->at, walk->end)
               : c == '{' || c == '[' ? end_of_nested(walk->at, walk->end)
               : find_end(walk->at, walk->end, WORD);
    value.len = (apr_size_t)(walk->at - value.text);
    return value;
}

crm_slice_t crm_json_slice(const char *text, apr_size_t len)
{
    crm_json_walk_t walk = {text, text + len};

    skip_space(&walk);
    while (walk.end > walk.at && is_end(walk.end[-1], SPACE)) {
        walk.end--;
    }
    return (crm_slice_t){walk.at, (apr_size_t)(walk.end - walk.at)};
}

int crm_json_walk(crm_json_walk_t *walk, crm_slice_t value, char open)
{
    int is = crm_slice_type(value) == open;

    walk->at = is ? value.text + 1 : "";
    walk->end = is ? value.text + value.len - 1 : walk->at;
    return is;
}

/* Skip what separates two members or items. Return 0 at the end. */
static int advance(crm_json_walk_t *walk)
{
    skip_space(walk);
    if (walk->at < walk->end && *walk->at == ',') {
        walk->at++;
        skip_space(walk);
    }
    return walk->at < walk->end;
}

int crm_json_member(crm_slice_t *name_p, crm_slice_t *value_p,
                    crm_json_walk_t *walk)
{
    if (!advance(walk)) {
        return 0;
    }
    *name_p = take(walk);
    skip_space(walk);
    walk->at += walk->at < walk->end;           /* the colon */
    skip_space(walk);
    *value_p = take(walk);
    return 1;
}

int crm_json_item(crm_slice_t *value_p, crm_json_walk_t *walk)
{
    if (!advance(walk)) {
        return 0;
    }
    *value_p = take(walk);
    return 1;
}

/* ---- strings ------------------------------------------------------------- */

/* Return the number that the four hexadecimal digits at TEXT are. */
static int hex4(const char *text)
{
    int unit = 0;

    for (int i = 0; i < 4; i++) {
        unit = unit << 4 | (apr_isdigit(text[i]) ? text[i] - '0'
                            : apr_tolower(text[i]) - 'a' + 10);
    }
    return unit;
}

/* Write to OUT what the escape at *AT_P means, and set *AT_P behind it. Return
 * the number of bytes written. */
static int unescape(char *out, const char **at_p)
{
    static const char names[] = "\"\\/bfnrt";
    static const char values[] = "\"\\/\b\f\n\r\t";
    const char *at = *at_p + 1;
    int point, len = 0;

    if (*at != 'u') {
        *out = values[strchr(names, *at) - names];
        *at_p = at + 1;
        return 1;
    }
    point = hex4(at + 1);
    at += 5;
    if (U16_IS_LEAD(point)) {
        point = U16_GET_SUPPLEMENTARY(point, hex4(at + 2));
        at += 6;
    }
    *at_p = at;
    U8_APPEND_UNSAFE((uint8_t *)out, len, point);
    return len;
}

const char *crm_slice_text(crm_slice_t value, apr_size_t *len_p,
                           apr_pool_t *pool)
{
    const char *at = value.text + 1, *end = value.text + value.len - 1;
    char *text = apr_palloc(pool, value.len), *out = text;

    while (at < end) {
        const char *escape = memchr(at, '\\', (apr_size_t)(end - at));
        apr_size_t len = (apr_size_t)((escape ? escape : end) - at);

        memcpy(out, at, len);
        out += len;
        at += len;
        if (escape) {
            out += unescape(out, &at);
        }
    }
    *out = '\0';
    if (len_p) {
        *len_p = (apr_size_t)(out - text);
    }
    return text;
}

/* Return whether VALUE, which has escapes, is the LEN bytes at TEXT. */
static int escaped_is(crm_slice_t value, const char *text, apr_size_t len)
{
    const char *at = value.text + 1, *end = value.text + value.len - 1;
    apr_size_t same = 0;
    char part[4];

    while (at < end) {
        int count = 1;

        if (*at == '\\') {
            count = unescape(part, &at);
        }
        else {
            *part = *at++;
        }
        if (len - same < (apr_size_t)count
            || memcmp(text + same, part, (apr_size_t)count)) {
            return 0;
        }
        same += (apr_size_t)count;
    }
    return same == len;
}

int crm_slice_is(crm_slice_t value, const char *text)
{
    apr_size_t len = strlen(text);

    if (crm_slice_type(value) != '"' || value.len < len + 2) {
        return 0;
    }
    if (value.len == len + 2) {
        return !memcmp(value.text + 1, text, len);
    }
    /* only with escapes it can be longer */
    return memchr(value.text, '\\', value.len) && escaped_is(value, text, len);
}

void crm_json_find_all(crm_slice_t *found, crm_slice_t value,
                       const char *const *names)
{
    crm_json_walk_t walk;
    crm_slice_t name, one;
    int count = 0;

    while (names[count]) {
        found[count++] = (crm_slice_t){NULL, 0};
    }
    crm_json_walk(&walk, value, '{');
    while (crm_json_member(&name, &one, &walk)) {
        for (int i = 0; i < count; i++) {
            if (crm_slice_is(name, names[i])) {
                found[i] = one;
                break;
            }
        }
    }
}

crm_slice_t crm_json_find(crm_slice_t value, const char *name)
{
    crm_json_walk_t walk;
    crm_slice_t one, found;

    crm_json_walk(&walk, value, '{');
    while (crm_json_member(&one, &found, &walk)) {
        if (crm_slice_is(one, name)) {
            return found;
        }
    }
    return (crm_slice_t){NULL, 0};
}
