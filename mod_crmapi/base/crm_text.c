/* SPDX-License-Identifier: Apache-2.0 */
/* crm_text.c: UTF-8, normal forms, case folding, rules for addresses */
#include "crm_text.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <unicode/uchar.h>
#include <unicode/ucasemap.h>
#include <unicode/unorm2.h>
#include <unicode/ustring.h>
#include <unicode/utf8.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_block.h"

#define EMAIL_MAX 254
#define PHONE_MAX 64

apr_size_t crm_text_length(const char *s, apr_size_t len)
{
    apr_size_t count = 0;

    for (apr_size_t i = 0; i < len; i++) {
        count += ((unsigned char)s[i] & 0xc0) != 0x80;
    }
    return count;
}

int crm_text_next(apr_size_t *bytes_p, const char *s, apr_size_t len)
{
    const uint8_t *bytes = (const uint8_t *)s;
    apr_size_t next = 0;
    UChar32 c;

    U8_NEXT(bytes, next, len, c);
    *bytes_p = c < 0 ? 0 : next;
    return c;
}

/* Return the number of the first byte at S, from AT on, that is not ASCII; LEN if
 * there is none. */
static apr_size_t skip_ascii(const char *s, apr_size_t at, apr_size_t len)
{
    for (; len - at >= CRM_BLOCK; at += CRM_BLOCK) {
        unsigned marks = crm_block_beyond_ascii(s + at);

        if (marks) {
            return at + crm_block_first(marks);
        }
    }
    while (at < len && U8_IS_SINGLE(s[at])) {
        at++;
    }
    return at;
}

apr_size_t crm_text_valid_bytes(const char *s, apr_size_t len)
{
    const uint8_t *bytes = (const uint8_t *)s;
    apr_size_t at = skip_ascii(s, 0, len);

    while (at < len) {
        apr_size_t next = at;
        UChar32 c;

        U8_NEXT(bytes, next, len, c);
        if (c < 0) {
            return at;
        }
        at = next < len && U8_IS_SINGLE(bytes[next])
             ? skip_ascii(s, next, len) : next;
    }
    return len;
}

int crm_text_is_ascii(const char *text)
{
    while (*text && !(*text & 0x80)) {
        text++;
    }
    return !*text;
}

int crm_text_valid_utf8(const char *s, apr_size_t len)
{
    return crm_text_valid_bytes(s, len) == len;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static UCaseMap *case_map;      /* for the root locale */
static const UNormalizer2 *normal_forms[2];     /* NFC, NFKC */

/* End the process if STATUS is a failure: no memory, or no ICU data. */
static void require(UErrorCode status)
{
    if (U_FAILURE(status)) {
        abort();
    }
}

static void open_icu(void)
{
    UErrorCode status = U_ZERO_ERROR;

    case_map = ucasemap_open("", 0, &status);
    normal_forms[0] = unorm2_getNFCInstance(&status);
    normal_forms[1] = unorm2_getNFKCInstance(&status);
    require(status);
}

/* Return the COUNT units of UTF-16 at S as UTF-8, in POOL. */
static const char *utf8_of(const UChar *s, int32_t count, apr_pool_t *pool)
{
    UErrorCode status = U_ZERO_ERROR;
    int32_t size = count * 3 + 1;
    char *utf8 = apr_palloc(pool, (apr_size_t)size);

    u_strToUTF8(utf8, size, NULL, s, count, &status);
    require(status);
    return utf8;
}

const char *crm_text_normalize(const char *s, int kc, apr_pool_t *result_pool)
{
    UErrorCode status = U_ZERO_ERROR;
    int32_t len = (int32_t)strlen(s), count, needed;
    UChar *from = apr_palloc(result_pool, ((apr_size_t)len + 1) * sizeof(*from));
    const UNormalizer2 *form;
    UChar *to;

    pthread_once(&once, open_icu);
    form = normal_forms[kc != 0];
    u_strFromUTF8(from, len + 1, &count, s, len, &status);
    if (unorm2_quickCheck(form, from, count, &status) == UNORM_YES) {
        return s;
    }
    require(status);
    needed = unorm2_normalize(form, from, count, NULL, 0, &status);
    status = U_ZERO_ERROR;
    to = apr_palloc(result_pool, ((apr_size_t)needed + 1) * sizeof(*to));
    needed = unorm2_normalize(form, from, count, to, needed + 1, &status);
    require(status);
    return utf8_of(to, needed, result_pool);
}

/* Replace final sigmas (U+03C2) in TEXT by U+03C3. */
static void unite_sigmas(char *text)
{
    while ((text = strstr(text, "ς"))) {
        text[1] = '\x83';
    }
}

/* Return S in lower case, in POOL. */
static const char *fold_unicode(const char *s, apr_pool_t *pool)
{
    int32_t len, size, needed;
    UErrorCode status = U_ZERO_ERROR;
    char *folded;

    s = crm_text_normalize(s, 0, pool);
    len = (int32_t)strlen(s);
    size = len + 1;
    folded = apr_palloc(pool, (apr_size_t)size);
    needed = ucasemap_utf8ToLower(case_map, folded, size, s, len, &status);
    if (needed >= size) {       /* the lower case is longer */
        size = needed + 1;
        folded = apr_palloc(pool, (apr_size_t)size);
        status = U_ZERO_ERROR;
        ucasemap_utf8ToLower(case_map, folded, size, s, len, &status);
    }
    require(status);
    unite_sigmas(folded);
    /* J and a caron have no letter of their own, their lower case has one. */
    return crm_text_normalize(folded, 0, pool);
}

const char *crm_text_fold(const char *s, apr_pool_t *result_pool)
{
    char *folded = apr_pstrdup(result_pool, s), *c;

    for (c = folded; *c; c++) {
        if ((unsigned char)*c >= 0x80) {
            return fold_unicode(s, result_pool);
        }
        if (*c >= 'A' && *c <= 'Z') {
            *c = (char)(*c | 0x20);
        }
    }
    return folded;
}

apr_size_t crm_text_mark(const char *s, apr_size_t len)
{
    return len >= 3 && !memcmp(s, "\xef\xbb\xbf", 3) ? 3 : 0;
}

int crm_text_has_wide_mark(const char *s, apr_size_t len)
{
    return len >= 2 && (!memcmp(s, "\xff\xfe", 2) || !memcmp(s, "\xfe\xff", 2));
}

void crm_text_trim(const char **s_p, apr_size_t *len_p)
{
    while (*len_p && apr_isspace((*s_p)[0])) {
        (*s_p)++;
        (*len_p)--;
    }
    while (*len_p && apr_isspace((*s_p)[*len_p - 1])) {
        (*len_p)--;
    }
}

char *crm_text_trimmed(const char *s, apr_size_t len, apr_pool_t *result_pool)
{
    crm_text_trim(&s, &len);
    return apr_pstrmemdup(result_pool, s, len);
}

void crm_text_trim_blanks(const char **s_p, apr_size_t *len_p)
{
    const uint8_t *bytes = (const uint8_t *)*s_p;
    int32_t start = 0, end = (int32_t)*len_p, next;
    UChar32 c;

    for (next = start; next < end; start = next) {
        U8_NEXT(bytes, next, end, c);
        if (c < 0 || !u_isUWhiteSpace(c)) {
            break;
        }
    }
    for (next = end; next > start; end = next) {
        U8_PREV(bytes, start, next, c);
        if (c < 0 || !u_isUWhiteSpace(c)) {
            break;
        }
    }
    *s_p += start;
    *len_p = (apr_size_t)(end - start);
}

const char *crm_text_one_line(const char *s, apr_size_t len, apr_size_t max,
                              apr_pool_t *result_pool)
{
    char *line;
    int valid;

    if (max && len > max) {
        for (len = max; len && ((unsigned char)s[len] & 0xc0) == 0x80; len--) {
            continue;
        }
    }
    crm_text_trim(&s, &len);
    valid = crm_text_valid_utf8(s, len);
    line = apr_pstrmemdup(result_pool, s, len);
    for (apr_size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)line[i];

        if (c < ' ' || c == 0x7f) {
            line[i] = ' ';
        }
        else if (c >= 0x80 && !valid) {
            line[i] = '?';
        }
    }
    return line;
}

/* Return whether the LEN bytes of valid UTF-8 at S have a control character or
 * white space of Unicode. */
static int has_blank(const char *s, apr_size_t len)
{
    const uint8_t *bytes = (const uint8_t *)s;
    apr_size_t next = 0;
    UChar32 c;

    while (next < len) {
        U8_NEXT(bytes, next, len, c);
        if (c < 0 || U_GET_GC_MASK(c) & (U_GC_CC_MASK | U_GC_Z_MASK)) {
            return 1;
        }
    }
    return 0;
}

int crm_text_is_in(apr_int32_t c, const crm_chars_t *ranges, apr_size_t count)
{
    for (apr_size_t i = 0; i < count; i++) {
        if (c >= ranges[i].from && c <= ranges[i].to) {
            return 1;
        }
    }
    return 0;
}

int crm_text_has_control(const char *s, apr_size_t len)
{
    for (apr_size_t i = 0; i < len; i++) {
        if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f) {
            return 1;
        }
    }
    return 0;
}

apr_size_t crm_text_steers(unsigned *code_p, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    unsigned code = *p;
    apr_size_t len = 1;

    if (code >= 0xc2 && code <= 0xdf && (p[1] & 0xc0) == 0x80) {
        code = (code & 0x1f) << 6 | (p[1] & 0x3f);
        len = 2;
    }
    else if (code == 0xe2 && (p[1] & 0xc0) == 0x80 && (p[2] & 0xc0) == 0x80) {
        code = 0x2000 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3f);
        len = 3;
    }
    else if (code != 0x7f) {
        return 0;
    }
    *code_p = code;
    return code <= 0x9f || code == 0x61c || code == 0x200e || code == 0x200f
           || (code >= 0x202a && code <= 0x202e)
           || (code >= 0x2066 && code <= 0x2069) ? len : 0;
}

const char *crm_text_listed(const char *list, const char *name, apr_pool_t *pool)
{
    return list && *list ? apr_pstrcat(pool, list, ", ", name, NULL) : name;
}

const char *crm_text_email(const char *s, apr_size_t len)
{
    const char *at = memchr(s, '@', len);

    if (crm_text_length(s, len) > EMAIL_MAX) {
        return "must have at most 254 characters";
    }
    if (!at || at == s || at == s + len - 1
        || memchr(at + 1, '@', len - (apr_size_t)(at + 1 - s))
        || has_blank(s, len)) {
        return "must be an e-mail address";
    }
    return NULL;
}

const char *crm_text_phone(const char *s, apr_size_t len)
{
    const uint8_t *bytes = (const uint8_t *)s;
    apr_size_t next = 0;
    int digits = 0;
    UChar32 c;

    while (next < len) {
        U8_NEXT(bytes, next, len, c);
        digits += c >= 0 && c < 0x10000 && u_isdigit(c);
    }
    if (crm_text_length(s, len) > PHONE_MAX) {
        return "must have at most 64 characters";
    }
    return !digits || crm_text_has_control(s, len) ? "must be a phone number"
           : NULL;
}
