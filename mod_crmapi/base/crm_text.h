/* SPDX-License-Identifier: Apache-2.0 */
/* crm_text.h: UTF-8, normal forms, case folding, rules for addresses */
#ifndef CRM_TEXT_H
#define CRM_TEXT_H

#include "apr_pools.h"

/* The end of an English noun of which there are N. */
#define CRM_TEXT_S(n) ((n) == 1 ? "" : "s")

/* Return the number of code points in the LEN bytes of valid UTF-8 at S. */
apr_size_t crm_text_length(const char *s, apr_size_t len);

/* Return the code point at the start of the LEN bytes at S, at least 1, and set
 * *BYTES_P to its length. If the bytes are not valid UTF-8, return -1 and set
 * *BYTES_P to 0. */
int crm_text_next(apr_size_t *bytes_p, const char *s, apr_size_t len);

/* Return whether TEXT has ASCII characters only. */
int crm_text_is_ascii(const char *text);

/* Return whether the LEN bytes at S are valid UTF-8 (RFC 3629): no overlong
 * forms, no surrogates, nothing above U+10FFFF. */
int crm_text_valid_utf8(const char *s, apr_size_t len);

/* Return the number of the LEN bytes at S before the first invalid UTF-8
 * sequence; LEN if all are valid. */
apr_size_t crm_text_valid_bytes(const char *s, apr_size_t len);

/* Return S, valid UTF-8, in Normalization Form C, in RESULT_POOL or S itself;
 * with KC, in Form KC (UAX #15). */
const char *crm_text_normalize(const char *s, int kc, apr_pool_t *result_pool);

/* Return S, valid UTF-8, folded for comparisons without case, in RESULT_POOL.
 * The result equals that of the database's crmapi.fold(): ICU's lower case in
 * the root locale, with U+03C3 for both small sigmas, in Normalization Form C
 * (contract 7.8). */
const char *crm_text_fold(const char *s, apr_pool_t *result_pool);

/* Return the length of the byte order mark of UTF-8 that the LEN bytes at S begin
 * with: 3, or 0. */
apr_size_t crm_text_mark(const char *s, apr_size_t len);

/* Return whether the LEN bytes at S begin with a byte order mark of UTF-16. So does
 * UTF-32 in little-endian order. */
int crm_text_has_wide_mark(const char *s, apr_size_t len);

/* Characters that follow each other, by their code points. */
typedef struct crm_chars_t {
    apr_int32_t from, to;
} crm_chars_t;

/* Return whether the character C is in one of the COUNT RANGES. */
int crm_text_is_in(apr_int32_t c, const crm_chars_t *ranges, apr_size_t count);

/* Return whether the LEN bytes at S have an ASCII control character. */
int crm_text_has_control(const char *s, apr_size_t len);

/* If the character at TEXT, which ends with a NUL, steers a terminal or the direction
 * of text, return its length, with its number in *CODE_P; otherwise 0. Those below
 * U+0020 do not count: JSON has them only escaped. */
apr_size_t crm_text_steers(unsigned *code_p, const char *text);

/* Remove ASCII white space from both ends of *S_P, *LEN_P. */
void crm_text_trim(const char **s_p, apr_size_t *len_p);

/* Return the LEN bytes at S without ASCII white space at both ends, in
 * RESULT_POOL. */
char *crm_text_trimmed(const char *s, apr_size_t len, apr_pool_t *result_pool);

/* As crm_text_trim(), for valid UTF-8 and the white space of Unicode. */
void crm_text_trim_blanks(const char **s_p, apr_size_t *len_p);

/* Return the LEN bytes at S as one line in RESULT_POOL. The text is cut to at
 * most MAX bytes (0: no limit), not within a character, and trimmed. Control
 * characters become spaces. If the text is not valid UTF-8, every byte above
 * 0x7f becomes '?'. */
const char *crm_text_one_line(const char *s, apr_size_t len, apr_size_t max,
                              apr_pool_t *result_pool);

/* Return LIST with NAME behind it and a comma between them, in POOL; NAME itself if
 * LIST is NULL or empty. */
const char *crm_text_listed(const char *list, const char *name, apr_pool_t *pool);

/* Return NULL, or the rule for e-mail addresses that the LEN bytes at S break
 * (contract 6.3): at most 254 characters, one '@' with text on both sides, no
 * spaces, no control characters. */
const char *crm_text_email(const char *s, apr_size_t len);

/* The same for phone numbers in any notation: at most 64 characters, one or more
 * digits of any script, no control characters. crm_phone.h has their E.164
 * form. */
const char *crm_text_phone(const char *s, apr_size_t len);

#endif /* CRM_TEXT_H */
