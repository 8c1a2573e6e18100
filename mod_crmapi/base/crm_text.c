/* SPDX-License-Identifier: Apache-2.0 */
/* crm_text.c: UTF-8, case folding, e-mail addresses, phone numbers */
#include "crm_text.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <unicode/uchar.h>
#include <unicode/ucasemap.h>
#include <unicode/utf8.h>

#include "apr_lib.h"
#include "apr_strings.h"

#define EMAIL_MAX 254
#define PHONE_MAX 64
#define E164_MIN 2
#define E164_MAX 15

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

apr_size_t crm_text_valid_bytes(const char *s, apr_size_t len)
{
    const uint8_t *bytes = (const uint8_t *)s;
    apr_size_t at = 0, next = 0;
    UChar32 c = 0;

    while (next < len && c >= 0) {
        at = next;
        U8_NEXT(bytes, next, len, c);
    }
    return c < 0 ? at : len;
}

int crm_text_valid_utf8(const char *s, apr_size_t len)
{
    return crm_text_valid_bytes(s, len) == len;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static UCaseMap *case_map;      /* for the root locale */

static void open_case_map(void)
{
    UErrorCode status = U_ZERO_ERROR;

    case_map = ucasemap_open("", 0, &status);
    if (U_FAILURE(status)) {
        abort();                /* no memory, or no ICU data */
    }
}

/* Replace final sigmas (U+03C2) in TEXT by U+03C3. */
static void unite_sigmas(char *text)
{
    while ((text = strstr(text, "\xcf\x82"))) {
        text[1] = '\x83';
    }
}

/* Return S in lower case, in POOL. */
static const char *fold_unicode(const char *s, apr_pool_t *pool)
{
    int32_t len = (int32_t)strlen(s), size = len + 1, needed;
    UErrorCode status = U_ZERO_ERROR;
    char *folded = apr_palloc(pool, (apr_size_t)size);

    pthread_once(&once, open_case_map);
    needed = ucasemap_utf8ToLower(case_map, folded, size, s, len, &status);
    if (needed >= size) {       /* the lower case is longer */
        size = needed + 1;
        folded = apr_palloc(pool, (apr_size_t)size);
        status = U_ZERO_ERROR;
        ucasemap_utf8ToLower(case_map, folded, size, s, len, &status);
    }
    if (U_FAILURE(status)) {
        abort();
    }
    unite_sigmas(folded);
    return folded;
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

/* Return whether the LEN bytes at S have an ASCII control character. */
static int has_control(const char *s, apr_size_t len)
{
    for (apr_size_t i = 0; i < len; i++) {
        if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f) {
            return 1;
        }
    }
    return 0;
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
    int digits = 0;

    for (apr_size_t i = 0; i < len; i++) {
        digits += apr_isdigit(s[i]) != 0;
    }
    if (crm_text_length(s, len) > PHONE_MAX) {
        return "must have at most 64 characters";
    }
    return !digits || has_control(s, len) ? "must be a phone number" : NULL;
}

const char *crm_text_e164(const char *s, apr_size_t len)
{
    int good = len >= E164_MIN + 1 && len <= E164_MAX + 1 && s[0] == '+'
               && s[1] != '0';

    for (apr_size_t i = 1; i < len; i++) {
        good = good && apr_isdigit(s[i]);
    }
    return good ? NULL : "must be an E.164 number, for example +14155550123";
}
