/* SPDX-License-Identifier: Apache-2.0 */
/* crm_bare.h: the letters and digits of a text, what it shows */
#ifndef CRM_BARE_H
#define CRM_BARE_H

#include "apr_pools.h"

/* Return S, valid UTF-8, as NFKC_Casefold (Unicode, 3.13) without punctuation,
 * symbols, white space, control and invisible characters, in RESULT_POOL: texts
 * that say the same word are equal. */
const char *crm_text_bare(const char *s, apr_pool_t *result_pool);

/* Return the length of the characters at S, valid UTF-8, that crm_text_bare()
 * leaves out. */
apr_size_t crm_text_bare_span(const char *s);

/* Return the length of the characters at S, valid UTF-8, that cannot be seen:
 * white space, control and invisible characters. */
apr_size_t crm_text_blank_span(const char *s);

/* Return whether S, valid UTF-8, shows anything. */
int crm_text_shows(const char *s);

/* Return S, valid UTF-8, without filling, in RESULT_POOL. Filling is a run that cannot
 * be seen and has eight invisible characters or more, besides white space. It becomes
 * two line ends if it has several, one if it has one, else a blank; at the beginning
 * of S nothing is left of it. */
const char *crm_text_unfill(const char *s, apr_pool_t *result_pool);

#endif /* CRM_BARE_H */
