/* SPDX-License-Identifier: Apache-2.0 */
/* crm_bare.c: the letters and digits of a text, what it shows */
#include "crm_bare.h"

#include <stdlib.h>
#include <string.h>

#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/ustring.h>
#include <unicode/utf8.h>

/* NFKC_Casefold makes a character at most this many units longer (Unicode,
 * NormalizationTest: U+FDFA is 18). */
#define GROWTH 18

#define BRAILLE_BLANK 0x2800    /* a symbol, but one without dots */

/* Invisible characters that are filling. Words have one at a time. */
#define FILLING 8

/* Return whether C cannot be seen. */
static int is_invisible(UChar32 c)
{
    return (U_GET_GC_MASK(c) & (U_GC_Z_MASK | U_GC_CC_MASK | U_GC_CF_MASK))
           != 0 || c == BRAILLE_BLANK
           || u_hasBinaryProperty(c, UCHAR_DEFAULT_IGNORABLE_CODE_POINT);
}

/* Return whether C says nothing. */
static int is_silent(UChar32 c)
{
    return (U_GET_GC_MASK(c) & (U_GC_P_MASK | U_GC_S_MASK)) != 0
           || is_invisible(c);
}

/* Return the length of the characters at S that are IN a set. */
static apr_size_t span(const char *s, int (*in)(UChar32 c))
{
    const uint8_t *bytes = (const uint8_t *)s;
    int32_t at = 0, next = 0;

    while (bytes[at]) {
        UChar32 c;

        U8_NEXT(bytes, next, -1, c);
        if (c < 0 || !in(c)) {
            break;
        }
        at = next;
    }
    return (apr_size_t)at;
}

apr_size_t crm_text_bare_span(const char *s)
{
    return span(s, is_silent);
}

apr_size_t crm_text_blank_span(const char *s)
{
    return span(s, is_invisible);
}

int crm_text_shows(const char *s)
{
    return s[crm_text_blank_span(s)] != '\0';
}

/* Return what stands for the LEN bytes at S, which cannot be seen: "" if they are no
 * filling. */
static const char *filling(const char *s, apr_size_t len)
{
    const uint8_t *bytes = (const uint8_t *)s;
    apr_size_t next = 0;
    int hidden = 0, lines = 0;
    UChar32 c;

    while (next < len) {
        U8_NEXT(bytes, next, len, c);
        hidden += !u_isUWhiteSpace(c);
        lines += c == '\n';
    }
    return hidden < FILLING ? "" : lines > 1 ? "\n\n" : lines ? "\n" : " ";
}

const char *crm_text_unfill(const char *s, apr_pool_t *result_pool)
{
    char *made = apr_palloc(result_pool, strlen(s) + 1), *out = made;

    while (*s) {
        apr_size_t len = crm_text_blank_span(s);
        const char *instead = filling(s, len);

        if (*instead) {
            s += len;
            len = out > made ? strlen(instead) : 0;
        }
        else {
            instead = s;
            len += s[len] != '\0';      /* and a byte that can be seen */
            s += len;
        }
        memcpy(out, instead, len);
        out += len;
    }
    *out = '\0';
    return made;
}

/* Return S as NFKC_Casefold in UTF-16, *LEN_P units, in POOL. */
static UChar *casefold(int32_t *len_p, const char *s, apr_pool_t *pool)
{
    UErrorCode status = U_ZERO_ERROR;
    const UNormalizer2 *normalizer = unorm2_getNFKCCasefoldInstance(&status);
    int32_t size = (int32_t)strlen(s) + 1, len;
    UChar *wide = apr_palloc(pool, (apr_size_t)size * sizeof(*wide));
    UChar *folded = apr_palloc(pool, (apr_size_t)size * GROWTH
                               * sizeof(*folded));

    u_strFromUTF8(wide, size, &len, s, -1, &status);
    *len_p = unorm2_normalize(normalizer, wide, len, folded, size * GROWTH,
                              &status);
    if (U_FAILURE(status)) {
        abort();                /* no ICU data, or S is not UTF-8 */
    }
    return folded;
}

const char *crm_text_bare(const char *s, apr_pool_t *result_pool)
{
    int32_t len, i = 0;
    const UChar *folded = casefold(&len, s, result_pool);
    uint8_t *bare = apr_palloc(result_pool, (apr_size_t)len * 3 + 1);
    int32_t out = 0;

    while (i < len) {
        UChar32 c;

        U16_NEXT(folded, i, len, c);
        if (!is_silent(c)) {
            U8_APPEND_UNSAFE(bare, out, c);
        }
    }
    bare[out] = '\0';
    return (const char *)bare;
}
