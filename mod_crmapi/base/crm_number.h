/* SPDX-License-Identifier: Apache-2.0 */
/* crm_number.h: exact decimal numbers (contract 6.4) */
#ifndef CRM_NUMBER_H
#define CRM_NUMBER_H

#include "apr_pools.h"

/* Set *CANONICAL_P to TEXT, a JSON number, as a plain decimal in RESULT_POOL:
 * no exponent, no trailing zeros, no minus before zero. |x| < 1e15, at most 4
 * decimals. Return NULL, or the rule that is broken. */
const char *crm_number_parse(const char **canonical_p, const char *text,
                             apr_pool_t *result_pool);

/* Set *VALUE_P to TEXT, a JSON number in the same range without a fraction (3.0
 * and 3e2 have none). Return NULL, or the rule that is broken. */
const char *crm_number_parse_integer(apr_int64_t *value_p, const char *text);

/* Compare A and B, written by crm_number_parse(). Return a negative number, 0
 * or a positive number for less, equal, greater. */
int crm_number_compare(const char *a, const char *b);

/* The bytes that crm_number_exact() adds at most. */
#define CRM_NUMBER_EXACT 24

/* Write the JSON number at TEXT (LEN bytes, no digit behind it), of any size, to OUT
 * without a NUL: the same for each notation of a number, and for no other number. OUT
 * has room for LEN + CRM_NUMBER_EXACT. Return the number of bytes. */
apr_size_t crm_number_exact(char *out, const char *text, apr_size_t len);

/* Write PG_TEXT, PostgreSQL's text of a numeric, to OUT without trailing zeros
 * and without a NUL. OUT has room for the length of PG_TEXT. Return the number
 * of bytes. */
apr_size_t crm_number_trim(char *out, const char *pg_text);

#endif /* CRM_NUMBER_H */
