/* SPDX-License-Identifier: Apache-2.0 */
/* crm_number.c: exact decimal numbers (contract 6.4) */
#include "crm_number.h"

#include <stdlib.h>
#include <string.h>

#include "apr_strings.h"

#define DIGITS_MAX 15           /* before the point: |x| < 1e15 */
#define SCALE_MAX 4             /* after the point */
#define EXPONENT_MAX 1000000000L

static const char range_rule[] = "must be less than 1e15 in magnitude";
static const char scale_rule[] = "must have at most 4 decimals";
static const char integer_rule[] = "must be an integer";

/* A decimal: 0.D1D2D3... times 10^POINT, without leading or trailing zeros. */
typedef struct decimal_t {
    int negative;
    int count;                  /* of digits; 0: zero */
    long point;                 /* digits before the decimal point */
    char digits[DIGITS_MAX + SCALE_MAX];
} decimal_t;

/* Return the exponent of TEXT, limited so that additions cannot overflow, but
 * still beyond any number of digits. */
static long exponent_of(const char *text)
{
    const char *e = strpbrk(text, "eE");
    long exponent = e ? strtol(e + 1, NULL, 10) : 0;

    return exponent > EXPONENT_MAX ? EXPONENT_MAX
           : exponent < -EXPONENT_MAX ? -EXPONENT_MAX : exponent;
}

/* Parse TEXT into *DECIMAL. Return NULL, or the rule that is broken: more
 * significant digits than fit are out of range or too precise. */
static const char *read_decimal(decimal_t *decimal, const char *text)
{
    int zeros = 0, behind = 0;

    memset(decimal, 0, sizeof(*decimal));
    decimal->negative = *text == '-';
    for (text += decimal->negative; *text && !strchr("eE", *text); text++) {
        if (*text == '.') {
            behind = 1;
            continue;
        }
        decimal->point += !behind && (decimal->count || *text != '0' || zeros);
        if (*text == '0') {
            zeros += decimal->count > 0;
            decimal->point -= behind && !decimal->count;
            continue;
        }
        while (zeros && decimal->count < (int)sizeof(decimal->digits)) {
            decimal->digits[decimal->count++] = '0';
            zeros--;
        }
        if (decimal->count == (int)sizeof(decimal->digits)) {
            return behind ? scale_rule : range_rule;
        }
        decimal->digits[decimal->count++] = *text;
    }
    decimal->point += exponent_of(text);
    return NULL;
}

/* Return NULL, or the rule of contract 6.4 that DECIMAL breaks. */
static const char *check(const decimal_t *decimal)
{
    if (!decimal->count) {
        return NULL;
    }
    if (decimal->point > DIGITS_MAX) {
        return range_rule;
    }
    return decimal->count - decimal->point > SCALE_MAX ? scale_rule : NULL;
}

/* Return DECIMAL in plain notation, in POOL. */
static const char *write_plain(const decimal_t *decimal, apr_pool_t *pool)
{
    char *text = apr_palloc(pool, DIGITS_MAX + SCALE_MAX + 8);
    char *out = text;

    if (!decimal->count) {
        return "0";
    }
    if (decimal->negative) {
        *out++ = '-';
    }
    if (decimal->point <= 0) {
        *out++ = '0';
    }
    for (long i = 0; i < decimal->point; i++) {
        *out++ = i < decimal->count ? decimal->digits[i] : '0';
    }
    if (decimal->count > decimal->point) {
        *out++ = '.';
        for (long i = decimal->point; i < 0; i++) {
            *out++ = '0';
        }
        for (long i = decimal->point > 0 ? decimal->point : 0;
             i < decimal->count; i++) {
            *out++ = decimal->digits[i];
        }
    }
    *out = '\0';
    return text;
}

const char *crm_number_parse(const char **canonical_p, const char *text,
                             apr_pool_t *result_pool)
{
    decimal_t decimal;
    const char *rule = read_decimal(&decimal, text);

    if (!rule) {
        rule = check(&decimal);
    }
    if (!rule) {
        *canonical_p = write_plain(&decimal, result_pool);
    }
    return rule;
}

const char *crm_number_parse_integer(apr_int64_t *value_p, const char *text)
{
    decimal_t decimal;
    const char *rule = read_decimal(&decimal, text);

    if (!rule && decimal.count > 0 && decimal.count > decimal.point) {
        rule = integer_rule;
    }
    if (!rule) {
        rule = check(&decimal);
    }
    if (rule) {
        return rule == scale_rule ? integer_rule : rule;
    }
    *value_p = 0;
    for (long i = 0; decimal.count && i < decimal.point; i++) {
        *value_p = *value_p * 10
                   + (i < decimal.count ? decimal.digits[i] - '0' : 0);
    }
    if (decimal.negative) {
        *value_p = -*value_p;
    }
    return NULL;
}

int crm_number_compare(const char *a, const char *b)
{
    int minus_a = *a == '-', minus_b = *b == '-';
    size_t len_a, len_b;
    int order;

    if (minus_a != minus_b) {
        return minus_b - minus_a;
    }
    a += minus_a;
    b += minus_b;
    len_a = strcspn(a, ".");
    len_b = strcspn(b, ".");
    order = len_a != len_b ? (len_a > len_b) - (len_a < len_b) : strcmp(a, b);
    return minus_a ? -order : order;
}

apr_size_t crm_number_exact(char *out, const char *text, apr_size_t len)
{
    const char *end = text + len, *at = text + (*text == '-');
    char *digits = out + (*text == '-'), *last = digits, *first = digits;
    apr_int64_t power = 0;      /* of ten, for the last digit */
    int behind = 0;

    for (; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.') {
            behind = 1;
            continue;
        }
        power -= behind;
        if (last > first || *at != '0') {
            *last++ = *at;
        }
    }
    while (last > first && last[-1] == '0') {
        last--;
        power++;
    }
    if (last == first) {
        *out = '0';             /* a zero has no sign */
        return 1;
    }
    *out = *text == '-' ? '-' : *out;
    power += at < end ? exponent_of(at) : 0;
    last += apr_snprintf(last, CRM_NUMBER_EXACT, "e%" APR_INT64_T_FMT, power);
    return (apr_size_t)(last - out);
}

apr_size_t crm_number_trim(char *out, const char *pg_text)
{
    apr_size_t len = strlen(pg_text);

    if (memchr(pg_text, '.', len)) {
        while (pg_text[len - 1] == '0') {
            len--;
        }
        len -= pg_text[len - 1] == '.';
    }
    memcpy(out, pg_text, len);
    return len;
}
