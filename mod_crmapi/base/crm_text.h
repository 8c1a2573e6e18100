/* SPDX-License-Identifier: Apache-2.0 */
/* crm_text.h: UTF-8, addresses, comparing without case */
#ifndef CRM_TEXT_H
#define CRM_TEXT_H

#include "apr_pools.h"

/* Return the number of code points in the LEN bytes of valid UTF-8 at S. */
apr_size_t crm_text_length(const char *s, apr_size_t len);

/* Return whether the LEN bytes at S are valid UTF-8 (RFC 3629): nothing
 * overlong, no surrogates, nothing beyond U+10FFFF. */
int crm_text_valid_utf8(const char *s, apr_size_t len);

/* Return how many of the LEN bytes at S come before the first that is not of
 * valid UTF-8; LEN if all are. */
apr_size_t crm_text_valid_bytes(const char *s, apr_size_t len);

/* Return whether A and B, valid UTF-8, are equal without case, by Unicode's
 * simple case mappings. */
int crm_text_equal_fold(const char *a, const char *b);

/* Take white space (ASCII) off both ends of *S_P, *LEN_P. */
void crm_text_trim(const char **s_p, apr_size_t *len_p);

/* Return, in RESULT_POOL, the first MAX (0: all) of the LEN bytes at S as one
 * line: no character is cut in two, white space is taken off both ends, each
 * control character becomes a space, and if S is not valid UTF-8, each byte
 * that is not ASCII becomes '?'. */
const char *crm_text_one_line(const char *s, apr_size_t len, apr_size_t max,
                              apr_pool_t *result_pool);

/* Return NULL or the rule that the LEN bytes at S break as an e-mail address
 * (contract 6.3): at most 254 characters, one '@' with something on both
 * sides, no spaces or control characters. */
const char *crm_text_email(const char *s, apr_size_t len);

/* The same for a phone number as people write it: at most 64 characters, at
 * least one digit, no control characters. */
const char *crm_text_phone(const char *s, apr_size_t len);

/* The same for an E.164 number (contract 11.5): '+' and 2 to 15 digits, the
 * first not 0. */
const char *crm_text_e164(const char *s, apr_size_t len);

#endif /* CRM_TEXT_H */
