/* SPDX-License-Identifier: Apache-2.0 */
/* crm_phone.c: which phone numbers are the same (contract 17.1) */
#include "crm_phone.h"

#include <string.h>
#include <strings.h>

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_text.h"

/* The least number of digits of a number, and the most (E.164, 6). */
#define DIGITS_MIN 8
#define DIGITS_MAX 15

static const char separators[] = " -./()";

/* ---- a text as ASCII, as far as it can be ------------------------------- */

/* Return the ASCII character that C stands for, C itself if there is none. */
static UChar32 plain(UChar32 c)
{
    if (c < 0x10000 && u_isdigit(c)) {
        return '0' + u_charDigitValue(c);
    }
    return (c >= 0x2010 && c <= 0x2015) || c == 0x2212 ? '-' : c;
}

const char *crm_phone_plain(const char *text, apr_pool_t *result_pool)
{
    const uint8_t *bytes;
    char *result, *out;
    UChar32 c;

    if (crm_text_is_ascii(text)) {
        return text;
    }
    bytes = (const uint8_t *)crm_text_normalize(text, 1, result_pool);
    result = out = apr_palloc(result_pool, strlen((const char *)bytes) + 1);
    for (int32_t i = 0; bytes[i];) {
        size_t len = 0;

        U8_NEXT(bytes, i, -1, c);
        if (c >= 0 && u_charType(c) != U_FORMAT_CHAR) {
            c = plain(c);
            U8_APPEND_UNSAFE(out, len, c);
            out += len;
        }
    }
    *out = '\0';
    return result;
}

/* ---- E.164 ---------------------------------------------------------------- */

/* Return the length of the country code at the start of DIGITS, 0 if there is
 * none. No code is the beginning of another one (ITU-T E.164, 6.2.1): those that
 * are not listed have three digits. */
static size_t country_code(const char *digits)
{
    static const char two[] =
        "20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55"
        " 56 57 58 60 61 62 63 64 65 66 81 82 84 86 90 91 92 93 94 95 98";
    size_t count = strspn(digits, "0123456789");
    char start[3] = {digits[0], digits[0] ? digits[1] : '\0', '\0'};

    if (!count || *digits == '0') {
        return 0;
    }
    if (*digits == '1' || *digits == '7') {
        return 1;
    }
    if (count >= 2 && strstr(two, start)) {
        return 2;
    }
    return count >= 3 ? 3 : 0;
}

/* Return TEXT without what stands before its country code, "+" or "(+", and set
 * *CODE_P to the length of that. NULL if it does not begin so. The ')' of
 * "(+49)" stays: it is a separator. */
static const char *after_plus(size_t *code_p, const char *text)
{
    int bracket = *text == '(';

    text += bracket;
    if (*text != '+') {
        return NULL;
    }
    text++;
    if (!bracket) {
        text += strspn(text, separators);
    }
    *code_p = country_code(text);
    return !bracket || (*code_p && text[*code_p] == ')') ? text : NULL;
}

/* Return whether a bracket of TEXT begins with a zero: a trunk prefix, which is
 * not dialled after a country code. */
static int has_trunk_prefix(const char *text)
{
    while ((text = strchr(text, '('))) {
        text += strspn(text, separators);
        if (*text == '0') {
            return 1;
        }
    }
    return 0;
}

/* Return what of TEXT, which follows a country code, is dialled: all but a "(0)"
 * at its start. */
static const char *after_zero(const char *text)
{
    const char *rest = text + strspn(text, separators);

    return rest > text && rest[-1] == '(' && !strncmp(rest, "0)", 2)
           ? rest + 2 : text;
}

/* Add the digits of the LEN characters at TEXT to NUMBER, "+" and COUNT digits;
 * return their number then. More than DIGITS_MAX are counted only. */
static size_t add_digits(char *number, size_t count, const char *text,
                         size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (apr_isdigit(text[i])) {
            count++;
            if (count <= DIGITS_MAX) {
                number[count] = text[i];
            }
        }
    }
    return count;
}

const char *crm_phone_e164(const char *text, apr_pool_t *result_pool)
{
    char number[DIGITS_MAX + 2] = "+";
    const char *rest;
    apr_size_t len, n;
    size_t code, count;

    text = crm_phone_plain(text, result_pool);
    len = strlen(text);
    crm_text_trim(&text, &len);
    if (len >= 4 && !strncasecmp(text, "tel:", 4)) {
        text += 4;
        len -= 4;
        crm_text_trim(&text, &len);
    }
    text = apr_pstrmemdup(result_pool, text, len);
    text = after_plus(&code, text);
    if (!text) {
        return NULL;
    }
    rest = code ? after_zero(text + code) : text;
    n = strlen(rest);
    count = add_digits(number, add_digits(number, 0, text, code), rest, n);
    if (strspn(rest, "0123456789 -./()") != n || has_trunk_prefix(rest)
        || number[1] == '0' || count < DIGITS_MIN || count > DIGITS_MAX) {
        return NULL;
    }
    return apr_pstrmemdup(result_pool, number, count + 1);
}

const char *crm_phone_key(const char *text, apr_pool_t *result_pool)
{
    const char *number = crm_phone_e164(text, result_pool);

    return number ? number : text;
}
