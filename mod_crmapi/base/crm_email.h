/* SPDX-License-Identifier: Apache-2.0 */
/* crm_email.h: which e-mail addresses are the same (contract 17.2) */
#ifndef CRM_EMAIL_H
#define CRM_EMAIL_H

#include "apr_pools.h"

/* The database's functions are crmapi.email_canonical() and email_key(). Both
 * give the same for each address that has a canonical form here. TEXT is valid
 * UTF-8. */

/* Return the canonical form of TEXT, "ada@xn--kln-sna.example", in RESULT_POOL;
 * NULL if TEXT is no address that mail can be sent to. The domain is mapped by
 * UTS 46 to lower-case A-labels, without a trailing dot. The local part is folded
 * as crm_text_fold() does, and has the quotes that it needs (RFC 5321, 4.1.2). */
const char *crm_email_canonical(const char *text, apr_pool_t *result_pool);

/* Return what the address TEXT is matched by: its canonical form, else TEXT
 * folded. */
const char *crm_email_key(const char *text, apr_pool_t *result_pool);

/* Return whether A and B, bytes, are the same address. */
int crm_email_equal(const char *a, const char *b, apr_pool_t *scratch_pool);

/* Return NULL if the LEN bytes of valid UTF-8 at S are an e-mail address with a
 * canonical form (contract 6.3, 17.2), else the error as a constant text. */
const char *crm_email_check(const char *s, apr_size_t len,
                            apr_pool_t *scratch_pool);

/* Return TEXT, of a query, with '+' in place of spaces, in RESULT_POOL: a '+' that was
 * not percent-encoded arrives as a space, which no address has (contract 7.5). */
const char *crm_email_plus(const char *text, apr_pool_t *result_pool);

#endif /* CRM_EMAIL_H */
