/* SPDX-License-Identifier: Apache-2.0 */
/* crm_email.c: which e-mail addresses are the same (contract 17.2) */
#include "crm_email.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <unicode/uidna.h>
#include <unicode/utf8.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_text.h"

#define EMAIL_MAX 254           /* RFC 5321, 4.5.3.1.3, without "<>" */
#define DOMAIN_MAX 253          /* UTS 46, VerifyDnsLength */

/* The bytes that may arrive as a domain: all code points of one that fits into
 * DOMAIN_MAX, and ignored ones beside them. */
#define DOMAIN_BYTES 2048

/* ---- the domain ----------------------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static UIDNA *idna;

static void open_idna(void)
{
    UErrorCode status = U_ZERO_ERROR;

    idna = uidna_openUTS46(UIDNA_NONTRANSITIONAL_TO_ASCII | UIDNA_CHECK_BIDI
                           | UIDNA_CHECK_CONTEXTJ, &status);
    if (U_FAILURE(status)) {
        abort();        /* no memory, or no ICU data */
    }
}

/* Return DOMAIN with U+00DF for U+1E9E, in POOL. Unicode maps the capital so
 * since version 15.1, to "ss" before: stored forms shall not depend on that. */
static const char *with_small_sharp_s(const char *domain, apr_pool_t *pool)
{
    static const char capital[] = "ẞ", small[] = "ß";
    const char *found;

    while ((found = strstr(domain, capital))) {
        domain = apr_pstrcat(pool,
                             apr_pstrmemdup(pool, domain,
                                            (apr_size_t)(found - domain)),
                             small, found + strlen(capital), NULL);
    }
    return domain;
}

/* Return whether DOMAIN has a character that UTS 46 refuses before Unicode 16, and
 * leaves out or takes since: stored forms shall not depend on that. */
static int has_refused(const char *domain)
{
    static const crm_chars_t refused[] = {
        {0x115f, 0x1160}, {0x17b4, 0x17b5}, {0x1806, 0x1806}, {0x180e, 0x180e},
        {0x2061, 0x2063}, {0x206a, 0x206f}, {0x3164, 0x3164}, {0xffa0, 0xffa0},
        {0x1d173, 0x1d17a},
    };
    UChar32 c;

    for (int32_t at = 0; domain[at];) {
        U8_NEXT(domain, at, -1, c);
        if (crm_text_is_in(c, refused, CRM_NELTS(refused))) {
            return 1;
        }
    }
    return 0;
}

/* Return whether DOMAIN, in lower-case ASCII, has letters, digits, '-', '_' and
 * '.' only: UTS 46 leaves other ASCII characters as they are. */
static int is_host(const char *domain)
{
    return !domain[strspn(domain, "abcdefghijklmnopqrstuvwxyz0123456789-_.")];
}

/* Return DOMAIN mapped by UTS 46, in POOL; NULL if there is no such form. A '-'
 * in the third and fourth place is allowed: there are such names. */
static const char *ascii_domain(const char *domain, apr_pool_t *pool)
{
    UIDNAInfo info = UIDNA_INFO_INITIALIZER;
    UErrorCode status = U_ZERO_ERROR;
    char made[DOMAIN_BYTES];
    int32_t len;

    if (strlen(domain) >= sizeof(made)) {
        return NULL;
    }
    pthread_once(&once, open_idna);
    if (!crm_text_is_ascii(domain)) {
        if (has_refused(domain)) {
            return NULL;
        }
        domain = with_small_sharp_s(crm_text_normalize(domain, 0, pool), pool);
    }
    len = uidna_nameToASCII_UTF8(idna, domain, (int32_t)strlen(domain), made,
                                 sizeof(made), &info, &status);
    if (U_FAILURE(status) || len >= (int32_t)sizeof(made)
        || info.errors & ~(uint32_t)UIDNA_ERROR_HYPHEN_3_4) {
        return NULL;
    }
    if (len && made[len - 1] == '.') {
        len--;
    }
    domain = apr_pstrmemdup(pool, made, (apr_size_t)len);
    return len && len <= DOMAIN_MAX && is_host(domain) ? domain : NULL;
}

/* ---- the local part -------------------------------------------------------- */

/* Set *TEXT_P to the text of LOCAL, LEN bytes, in POOL, if it is a quoted
 * string; return whether it is. */
static int unquote(const char **text_p, const char *local, apr_size_t len,
                   apr_pool_t *pool)
{
    char *text = apr_palloc(pool, len + 1), *out = text;

    if (len < 3 || *local != '"' || local[len - 1] != '"') {
        return 0;
    }
    for (apr_size_t i = 1; i < len - 1; i++) {
        if (local[i] == '"') {
            return 0;
        }
        i += local[i] == '\\';
        if (i == len - 1) {
            return 0;
        }
        *out++ = local[i];
    }
    *out = '\0';
    *text_p = text;
    return 1;
}

/* Return TEXT as a quoted string, in POOL. */
static const char *quote(const char *text, apr_pool_t *pool)
{
    char *quoted = apr_palloc(pool, 2 * strlen(text) + 3), *out = quoted;

    *out++ = '"';
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') {
            *out++ = '\\';
        }
        *out++ = *text;
    }
    *out++ = '"';
    *out = '\0';
    return quoted;
}

/* Return the LEN bytes at LOCAL as the local part of a canonical form, in
 * POOL. */
static const char *local_part(const char *local, apr_size_t len,
                              apr_pool_t *pool)
{
    const char *text;

    if (!unquote(&text, local, len, pool)) {
        text = apr_pstrmemdup(pool, local, len);
    }
    else if (text[strcspn(text, "\"(),:;<>@[\\]")]) {
        text = quote(text, pool);
    }
    return crm_text_fold(text, pool);
}

/* ---- addresses ------------------------------------------------------------- */

/* Return the canonical form of TEXT, which crm_text_email() allows, in POOL; NULL
 * if there is none. */
static const char *form_of(const char *text, apr_pool_t *pool)
{
    const char *at = strchr(text, '@');
    const char *domain = ascii_domain(at + 1, pool), *made;

    if (!domain) {
        return NULL;
    }
    made = apr_pstrcat(pool, local_part(text, (apr_size_t)(at - text), pool),
                       "@", domain, NULL);
    return crm_text_length(made, strlen(made)) <= EMAIL_MAX ? made : NULL;
}

const char *crm_email_canonical(const char *text, apr_pool_t *result_pool)
{
    return crm_text_email(text, strlen(text)) ? NULL
           : form_of(text, result_pool);
}

const char *crm_email_key(const char *text, apr_pool_t *result_pool)
{
    const char *made = crm_email_canonical(text, result_pool);

    return made ? made : crm_text_fold(text, result_pool);
}

int crm_email_equal(const char *a, const char *b, apr_pool_t *scratch_pool)
{
    return !strcasecmp(a, b)
           || (crm_text_valid_utf8(a, strlen(a))
               && crm_text_valid_utf8(b, strlen(b))
               && !strcmp(crm_email_key(a, scratch_pool),
                          crm_email_key(b, scratch_pool)));
}

const char *crm_email_check(const char *s, apr_size_t len,
                            apr_pool_t *scratch_pool)
{
    const char *rule = crm_text_email(s, len);

    return rule ? rule
           : form_of(apr_pstrmemdup(scratch_pool, s, len), scratch_pool) ? NULL
           : "must be an e-mail address with a valid domain";
}

const char *crm_email_plus(const char *text, apr_pool_t *result_pool)
{
    char *copy = apr_pstrdup(result_pool, text);

    for (char *c = copy; *c; c++) {
        *c = *c == ' ' ? '+' : *c;
    }
    return copy;
}
