/* SPDX-License-Identifier: Apache-2.0 */
/* crm_disposition.c: the header fields of a response that is a file */
#include "crm_disposition.h"

#include <string.h>

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include "apr_lib.h"
#include "apr_strings.h"

/* Maximum bytes of a file name, and of a media type. */
#define NAME_BYTES 1020
#define TYPE_BYTES 127

/* Return whether C could end the header field, lead out of a folder, or is not
 * seen. */
static int is_bad(UChar32 c)
{
    return c < 0 || strchr("\"/\\", c < 0x80 ? (int)c : 'a')
           || u_iscntrl(c) || u_charType(c) == U_FORMAT_CHAR
           || u_charType(c) == U_LINE_SEPARATOR
           || u_charType(c) == U_PARAGRAPH_SEPARATOR;
}

/* Return NAME with "_" in place of bad characters, in POOL. */
static const char *clean(const char *name, apr_pool_t *pool)
{
    int32_t len = (int32_t)strnlen(name, NAME_BYTES), at = 0;
    char *made = apr_palloc(pool, (apr_size_t)len + 1), *out = made;

    while (at < len) {
        int32_t begin = at;
        UChar32 c;

        U8_NEXT(name, at, len, c);
        if (is_bad(c)) {
            *out++ = '_';
        }
        else {
            memcpy(out, name + begin, (size_t)(at - begin));
            out += at - begin;
        }
    }
    *out = '\0';
    return made;
}

/* Return NAME in ASCII: "_" in place of each other character. */
static const char *ascii(const char *name, apr_pool_t *pool)
{
    char *made = apr_pstrdup(pool, name), *out = made;

    for (const char *c = name; *c; c++) {
        if (!(*c & 0x80)) {
            *out++ = *c;
        }
        else if ((*c & 0xc0) != 0x80) {
            *out++ = '_';
        }
    }
    *out = '\0';
    return made;
}

/* Return NAME as an ext-value of RFC 8187, 3.2. */
static const char *extended(const char *name, apr_pool_t *pool)
{
    char *made = apr_palloc(pool, strlen(name) * 3 + 1), *out = made;

    for (const char *c = name; *c; c++) {
        if (apr_isalnum(*c) || strchr("!#$&+-.^_`|~", *c)) {
            *out++ = *c;
        }
        else {
            out += apr_snprintf(out, 4, "%%%02X", (unsigned char)*c);
        }
    }
    *out = '\0';
    return made;
}

const char *crm_disposition(const char *name, apr_pool_t *pool)
{
    const char *text = clean(name ? name : "", pool);
    const char *plain = ascii(text, pool);

    if (!text[strspn(text, " ._")]) {
        return "attachment";
    }
    /* some clients decode a percent sign in a quoted string */
    return !strcmp(plain, text) && !strchr(text, '%')
           ? apr_pstrcat(pool, "attachment; filename=\"", text, "\"", NULL)
           : apr_pstrcat(pool, "attachment; filename=\"", plain,
                         "\"; filename*=UTF-8''", extended(text, pool), NULL);
}

/* Return the bytes of the token at TEXT (RFC 9110, 5.6.2). */
static size_t token(const char *text)
{
    const char *c = text;

    while (*c && (apr_isalnum(*c) || strchr("!#$&+-.^_`|~'*%", *c))) {
        c++;
    }
    return (size_t)(c - text);
}

const char *crm_disposition_type(const char *text, apr_pool_t *pool)
{
    size_t first = text ? token(text) : 0;
    size_t second = first && text[first] == '/' ? token(text + first + 1) : 0;
    char *made;

    if (!second || text[first + 1 + second] || first + second > TYPE_BYTES) {
        return "application/octet-stream";
    }
    made = apr_pstrdup(pool, text);
    for (char *c = made; *c; c++) {
        *c = (char)apr_tolower(*c);
    }
    return made;
}
