/* SPDX-License-Identifier: Apache-2.0 */
/* crm_text.c: UTF-8, addresses, comparing without case */
#include "crm_text.h"

#include <locale.h>
#include <pthread.h>
#include <string.h>
#include <wctype.h>

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

/* Return the code point at the N bytes of S and its length in *LEN_P, 0 if it
 * is not valid UTF-8. */
static unsigned int decode(apr_size_t *len_p, const unsigned char *s,
                           apr_size_t n)
{
    static const unsigned int least[] = {0, 0, 0x80, 0x800, 0x10000};
    apr_size_t len = *s < 0x80 ? 1 : *s < 0xc0 ? 0 : *s < 0xe0 ? 2
                     : *s < 0xf0 ? 3 : *s < 0xf8 ? 4 : 0;
    unsigned int c = len < 2 ? *s : *s & (0x7fU >> len);

    *len_p = 0;
    if (!len || len > n) {
        return 0;
    }
    for (apr_size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            return 0;
        }
        c = c << 6 | (s[i] & 0x3f);
    }
    if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
        return 0;
    }
    *len_p = len;
    return c;
}

apr_size_t crm_text_valid_bytes(const char *s, apr_size_t len)
{
    const unsigned char *at = (const unsigned char *)s;
    const unsigned char *end = at + len;
    apr_size_t step;

    for (; at < end; at += step) {
        decode(&step, at, (apr_size_t)(end - at));
        if (!step) {
            break;
        }
    }
    return (apr_size_t)(at - (const unsigned char *)s);
}

int crm_text_valid_utf8(const char *s, apr_size_t len)
{
    return crm_text_valid_bytes(s, len) == len;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t unicode;

static void make_locale(void)
{
    unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

/* Return C without case. Both small sigmas are one letter. */
static wint_t fold(unsigned int c)
{
    pthread_once(&once, make_locale);
    if (!unicode) {
        return c < 0x80 ? (wint_t)apr_tolower(c) : (wint_t)c;
    }
    c = towlower_l((wint_t)c, unicode);
    return c == 0x3c2 ? 0x3c3 : c;
}

int crm_text_equal_fold(const char *a, const char *b)
{
    const unsigned char *x = (const unsigned char *)a;
    const unsigned char *y = (const unsigned char *)b;
    apr_size_t n = strlen(a), m = strlen(b), i, j;

    while (n && m) {
        unsigned int c = decode(&i, x, n);
        unsigned int d = decode(&j, y, m);

        if (!i || !j || (c != d && fold(c) != fold(d))) {
            return 0;
        }
        x += i;
        n -= i;
        y += j;
        m -= j;
    }
    return !n && !m;
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

/* Return whether C is a control character or a space, by Unicode (Cc, Zs, Zl,
 * Zp). */
static int is_blank(unsigned int c)
{
    return c <= 0x20 || (c >= 0x7f && c <= 0xa0) || c == 0x1680
           || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029
           || c == 0x202f || c == 0x205f || c == 0x3000;
}

/* Return whether the LEN bytes of valid UTF-8 at S have such a character. */
static int has_blank(const char *s, apr_size_t len)
{
    const unsigned char *at = (const unsigned char *)s;
    apr_size_t step;

    for (; len; at += step, len -= step) {
        if (is_blank(decode(&step, at, len)) || !step) {
            return 1;
        }
    }
    return 0;
}

/* Return whether one of the LEN bytes at S is a control character. */
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
