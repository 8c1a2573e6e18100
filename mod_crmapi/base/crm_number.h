/* SPDX-License-Identifier: Apache-2.0 */
/* crm_number.h: numbers of contract 6.4, exactly, without binary fractions */
#ifndef CRM_NUMBER_H
#define CRM_NUMBER_H

#include "apr_pools.h"

/* Set *CANONICAL_P to TEXT, a JSON number, in plain decimal: no exponent, no
 * trailing zeros, no minus before zero. |x| < 1e15, at most 4 decimals. In
 * RESULT_POOL. Return NULL or the rule that it breaks. */
const char *crm_number_parse(const char **canonical_p, const char *text,
                             apr_pool_t *result_pool);

/* Set *VALUE_P to TEXT, a JSON number of the same range without a fraction;
 * 3.0 and 3e2 have none. Return NULL or the rule that it breaks. */
const char *crm_number_parse_integer(apr_int64_t *value_p, const char *text);

/* Return whether A, as crm_number_parse() writes numbers, is less than B
 * (negative), equal (0) or more (positive). */
int crm_number_compare(const char *a, const char *b);

/* Write PG_TEXT, PostgreSQL's text of a numeric, without trailing zeros and
 * without a NUL to OUT, which has room for as many bytes. Return their
 * number. */
apr_size_t crm_number_trim(char *out, const char *pg_text);

#endif /* CRM_NUMBER_H */
