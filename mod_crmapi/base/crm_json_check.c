/* SPDX-License-Identifier: Apache-2.0 */
/* crm_json_check.c: the strict check of JSON texts (RFC 8259, contract 6.1) */
#include "crm_json_check.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/rand.h>
#include <unicode/utf16.h>
#include <unicode/utf8.h>

#include "apr_hash.h"
#include "apr_lib.h"
#include "apr_siphash.h"
#include "apr_strings.h"

#include "crm_block.h"
#include "crm_text.h"

/* A hash table that has held more names than this is replaced instead of
 * cleared: clearing takes time in proportion to its largest size. */
#define NAMES_KEPT 64

/* So many names are compared one by one: that takes less than hashing them. */
#define NAMES_FEW 8

typedef struct name_t {
    const char *text;
    apr_size_t len;
} name_t;

/* An open array or object. */
typedef struct level_t {
    int object;
    int names;                  /* names so far in this object */
    name_t few[NAMES_FEW];      /* the first of them */
    apr_hash_t *seen;           /* all, if there are more; reused at this level */
} level_t;

/* The state of a check. */
typedef struct check_t {
    const char *at;
    const char *end;
    const char *rule;
    int depth;
    int deepest;                /* so many levels were used */
    apr_pool_t *pool;
    level_t levels[CRM_JSON_DEPTH];
} check_t;

static int fail(check_t *check, const char *rule)
{
    if (!check->rule) {
        check->rule = rule;
    }
    return 0;
}

static inline int is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static void skip_space(check_t *check)
{
    while (check->at < check->end && is_space(*check->at)) {
        check->at++;
    }
}

/* Return the next character, or 0 at the end. A NUL in the text is 0 as well,
 * and is not valid either. */
static char peek(const check_t *check)
{
    return check->at < check->end ? *check->at : 0;
}

static int skip_literal(check_t *check, const char *literal)
{
    apr_size_t len = strlen(literal);

    if ((apr_size_t)(check->end - check->at) < len
        || memcmp(check->at, literal, len)) {
        return fail(check, "unknown word");
    }
    check->at += len;
    return 1;
}

/* Skip one or more digits. */
static int skip_digits(check_t *check)
{
    if (!apr_isdigit(peek(check))) {
        return fail(check, "malformed number");
    }
    while (apr_isdigit(peek(check))) {
        check->at++;
    }
    return 1;
}

static int skip_number(check_t *check)
{
    check->at += peek(check) == '-';
    if (peek(check) == '0') {
        check->at++;
    }
    else if (!skip_digits(check)) {
        return 0;
    }
    if (peek(check) == '.') {
        check->at++;
        if (!skip_digits(check)) {
            return 0;
        }
    }
    if (peek(check) == 'e' || peek(check) == 'E') {
        check->at++;
        check->at += peek(check) == '+' || peek(check) == '-';
        return skip_digits(check);
    }
    return 1;
}

/* Read four hexadecimal digits and return their value, or -1. */
static int read_hex4(check_t *check)
{
    int unit = 0;

    for (int i = 0; i < 4; i++) {
        char c = peek(check);

        if (!apr_isxdigit(c)) {
            fail(check, "malformed escape");
            return -1;
        }
        unit = unit << 4 | (apr_isdigit(c) ? c - '0'
                            : apr_tolower(c) - 'a' + 10);
        check->at++;
    }
    return unit;
}

/* Read the digits after "\u", with a second escape for a surrogate pair. Return
 * the code point, or -1. */
static int read_unicode(check_t *check)
{
    int low, unit = read_hex4(check);

    if (!U_IS_SURROGATE(unit)) {
        return unit;
    }
    if (U16_IS_TRAIL(unit) || check->end - check->at < 6 || check->at[0] != '\\'
        || check->at[1] != 'u') {
        fail(check, "lone surrogate");
        return -1;
    }
    check->at += 2;
    low = read_hex4(check);
    if (low >= 0 && !U16_IS_TRAIL(low)) {
        fail(check, "lone surrogate");
        return -1;
    }
    return low < 0 ? -1 : U16_GET_SUPPLEMENTARY(unit, low);
}

/* Write the code point C to OUT as UTF-8 and return the number of bytes. */
static int write_utf8(char *out, int c)
{
    uint8_t *bytes = (uint8_t *)out;
    int len = 0;

    U8_APPEND_UNSAFE(bytes, len, c);
    return len;
}

/* Read the escape sequence whose backslash is next and write its value to OUT
 * (NULL: do not write). Return the number of bytes, or 0 on an error. */
static int read_escape(check_t *check, char *out)
{
    static const char names[] = "\"\\/bfnrt";
    static const char values[] = "\"\\/\b\f\n\r\t";
    char scratch[4];
    const char *name;
    char c;
    int point;

    check->at++;
    c = peek(check);
    if (c == 'u') {
        check->at++;
        point = read_unicode(check);
        return point < 0 ? 0 : write_utf8(out ? out : scratch, point);
    }
    name = c ? strchr(names, c) : NULL;
    if (!name) {
        return fail(check, "malformed escape");
    }
    check->at++;
    if (out) {
        *out = values[name - names];
    }
    return 1;
}

/* Skip the string whose opening quote is next. *ESCAPED_P: whether it has
 * escapes. */
static int skip_string(check_t *check, int *escaped_p)
{
    const char *start;

    *escaped_p = 0;
    check->at++;
    for (start = check->at; ; ) {
        check->at = crm_block_plain_end(check->at, check->end);
        if (check->at == check->end) {
            break;
        }
        if (*check->at == '"') {
            check->at++;
            return 1;
        }
        if (*check->at != '\\') {
            return fail(check, "control character in a string");
        }
        *escaped_p = 1;
        if (!read_escape(check, NULL)) {
            return 0;
        }
    }
    check->at = start;
    return fail(check, "unterminated string");
}

/* Return the unescaped text of the string at START, a member's name that was
 * skipped; *LEN_P is its length. */
static const char *unescape(check_t *check, const char *start,
                            apr_size_t *len_p)
{
    const char *end = check->at;
    char *name = apr_palloc(check->pool, (apr_size_t)(end - start));
    char *out = name;

    for (check->at = start + 1; check->at < end - 1; ) {
        if (*check->at == '\\') {
            out += read_escape(check, out);
        }
        else {
            *out++ = *check->at++;
        }
    }
    check->at = end;
    *len_p = (apr_size_t)(out - name);
    return name;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned char secret[APR_SIPHASH_KSIZE];

static void make_secret(void)
{
    if (RAND_bytes(secret, sizeof(secret)) != 1) {
        abort();
    }
}

/* Hash a name with a random secret. APR's default hash multiplies by 33 and
 * adds, so names that collide can be made for any seed: 2 MiB of them take ten
 * seconds. */
static unsigned int hash_name(const char *name, apr_ssize_t *len_p)
{
    return (unsigned int)apr_siphash24(name, (apr_size_t)*len_p, secret);
}

static apr_hash_t *make_names(apr_pool_t *pool)
{
    pthread_once(&once, make_secret);
    return apr_hash_make_custom(pool, hash_name);
}

/* Return whether NAME (LEN bytes) is one of LEVEL's. */
static int has_name(const level_t *level, const char *name, apr_size_t len)
{
    if (level->names > NAMES_FEW) {
        return apr_hash_get(level->seen, name, (apr_ssize_t)len) != NULL;
    }
    for (int i = 0; i < level->names; i++) {
        if (level->few[i].len == len && !memcmp(level->few[i].text, name, len)) {
            return 1;
        }
    }
    return 0;
}

/* Add NAME (LEN bytes) to the hash of LEVEL, which has the first few names in its
 * array. */
static void hash_name_of(level_t *level, const char *name, apr_size_t len,
                         apr_pool_t *pool)
{
    if (!level->seen) {
        level->seen = make_names(pool);
    }
    for (int i = 0; level->names == NAMES_FEW && i < NAMES_FEW; i++) {
        apr_hash_set(level->seen, level->few[i].text,
                     (apr_ssize_t)level->few[i].len, "");
    }
    apr_hash_set(level->seen, name, (apr_ssize_t)len, "");
}

/* Add NAME (LEN bytes) to the names of the innermost object. Return 0 if it has
 * that name already. */
static int note_name(check_t *check, const char *name, apr_size_t len)
{
    level_t *level = &check->levels[check->depth - 1];

    if (memchr(name, '\0', len)) {
        return fail(check, "U+0000 in a member's name");
    }
    if (has_name(level, name, len)) {
        return fail(check, "duplicate member");
    }
    if (level->names < NAMES_FEW) {
        level->few[level->names] = (name_t){name, len};
    }
    else {
        hash_name_of(level, name, len, check->pool);
    }
    level->names++;
    return 1;
}

/* Read a member's name and its colon. */
static int read_name(check_t *check)
{
    const char *start = check->at, *name;
    apr_size_t len;
    int escaped;

    if (peek(check) != '"') {
        return fail(check, "a member's name is missing");
    }
    if (!skip_string(check, &escaped)) {
        return 0;
    }
    name = start + 1;
    len = (apr_size_t)(check->at - start) - 2;
    if (escaped) {
        name = unescape(check, start, &len);
    }
    if (!note_name(check, name, len)) {
        check->at = start;
        return 0;
    }
    skip_space(check);
    if (peek(check) != ':') {
        return fail(check, "a colon is missing");
    }
    check->at++;
    skip_space(check);
    return 1;
}

/* Enter the array or object whose opening bracket is next. */
static int enter(check_t *check)
{
    level_t *level;

    if (check->depth == CRM_JSON_DEPTH) {
        return fail(check, "nested more than " APR_STRINGIFY(CRM_JSON_DEPTH)
                    " levels deep");
    }
    level = &check->levels[check->depth++];
    if (check->depth > check->deepest) {
        check->deepest = check->depth;
        level->names = 0;
        level->seen = NULL;
    }
    level->object = *check->at++ == '{';
    if (level->names > NAMES_KEPT) {
        level->seen = NULL;
    }
    else if (level->names > NAMES_FEW) {
        apr_hash_clear(level->seen);
    }
    level->names = 0;
    skip_space(check);
    return 1;
}

static int skip_scalar(check_t *check)
{
    int escaped;

    switch (peek(check)) {
    case '"':
        return skip_string(check, &escaped);
    case 't':
        return skip_literal(check, "true");
    case 'f':
        return skip_literal(check, "false");
    case 'n':
        return skip_literal(check, "null");
    case 0:
        return fail(check, check->at == check->end ? "unexpected end"
                    : "unexpected character");
    default:
        return peek(check) == '-' || apr_isdigit(peek(check))
               ? skip_number(check) : fail(check, "unexpected character");
    }
}

/* After a value: leave every array and object that ends here, and stop at the
 * next value. Return 0 on an error. check->depth is 0 at the end of the
 * text. */
static int after_value(check_t *check)
{
    for (;;) {
        const level_t *level;

        skip_space(check);
        if (!check->depth) {
            return 1;
        }
        level = &check->levels[check->depth - 1];
        if (peek(check) == (level->object ? '}' : ']')) {
            check->at++;
            check->depth--;
            continue;
        }
        if (peek(check) != ',') {
            return fail(check, check->at == check->end ? "unexpected end"
                        : "a comma or the end is missing");
        }
        check->at++;
        skip_space(check);
        return !level->object || read_name(check);
    }
}

/* Read a value. If it is an array or object, enter it, and what is first in it,
 * up to the first scalar or an empty array or object. */
static int read_value(check_t *check)
{
    for (;;) {
        char c = peek(check);

        if (c != '{' && c != '[') {
            return skip_scalar(check);
        }
        if (!enter(check)) {
            return 0;
        }
        if (peek(check) == (c == '{' ? '}' : ']')) {
            return 1;
        }
        if (c == '{' && !read_name(check)) {
            return 0;
        }
    }
}

static const char empty[] = "the text is empty";

static int check_text(check_t *check)
{
    if (check->end - check->at >= 3
        && !memcmp(check->at, "\xef\xbb\xbf", 3)) {
        return fail(check, "byte order mark");
    }
    skip_space(check);
    if (check->at == check->end) {
        return fail(check, empty);
    }
    do {
        if (!read_value(check) || !after_value(check)) {
            return 0;
        }
    } while (check->depth);
    return check->at == check->end || fail(check, "text after the value");
}

const char *crm_json_check(apr_size_t *offset_p, const char *text,
                           apr_size_t len, apr_pool_t *scratch_pool)
{
    check_t check;

    memset(&check, 0, offsetof(check_t, levels));
    check.at = text;
    check.end = text + len;
    check.pool = scratch_pool;
    *offset_p = crm_text_valid_bytes(text, len);
    if (*offset_p < len) {
        return "invalid UTF-8";
    }
    *offset_p = 0;
    if (!check_text(&check)) {
        *offset_p = (apr_size_t)(check.at - text);
    }
    return check.rule;
}

const char *crm_json_problem(const char *rule, apr_size_t offset,
                             apr_pool_t *result_pool)
{
    return rule == empty ? "The body is empty; a JSON object is expected"
           : apr_psprintf(result_pool, "The body is not valid JSON: %s at byte %"
                          APR_SIZE_T_FMT, rule, offset);
}
