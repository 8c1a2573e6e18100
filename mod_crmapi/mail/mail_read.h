/* SPDX-License-Identifier: Apache-2.0 */
/* mail_read.h: parsing a mail, and reading its headers */
#ifndef CRM_MAIL_READ_H
#define CRM_MAIL_READ_H

#include <gmime/gmime.h>

#include "apr_pools.h"

#include "crm_mail.h"

/* Return the charset of the text of MIME, which headers without a charset are
 * in; NULL if it is not needed: they are UTF-8. */
const char *crm_mail_hint(GMimeMessage *mime);

/* Return the value of the first header NAME of MIME, decoded, as one line of
 * at most MAX characters in POOL; NULL if it is missing or blank. */
const char *crm_mail_header(GMimeMessage *mime, const char *name,
                            apr_size_t max, apr_pool_t *pool);

/* Return the number of headers NAME in MIME. */
int crm_mail_count(GMimeMessage *mime, const char *name);

/* Return the decoded content of PART, *LEN_P bytes and a NUL, in POOL. A text that
 * is no base64, as is said of it, is returned as it is. */
const char *crm_mail_bytes(apr_size_t *len_p, GMimePart *part,
                           apr_pool_t *pool);

/* Maximum bytes of a text, and of all texts of a mail, that are converted. Some
 * converters take 300 nanoseconds for an invalid byte. */
#define CRM_MAIL_SOURCE_BYTES (1024 * 1024)
#define CRM_MAIL_SOURCES_BYTES (2 * CRM_MAIL_SOURCE_BYTES)

/* Return the LEN BYTES, a text of MAIL, as crm_mail_utf8() does. What is beyond
 * the limits is left out; then MAIL->cut gets BIT, one of CRM_MAIL_CUT_... */
const char *crm_mail_source(crm_mail_t *mail, unsigned bit, const char *bytes,
                            apr_size_t len, const char *charset,
                            apr_pool_t *pool);

/* Return a mail parsed from the LEN BYTES, which must live as long as the mail.
 * What is beyond the limits of mail_tree.h is left out; bits are then set in
 * *CUT_P. The caller unrefs it. Never NULL. */
GMimeMessage *crm_mail_parse(unsigned *cut_p, const char *bytes,
                             apr_size_t len, apr_pool_t *pool);

/* The same without a body. */
GMimeMessage *crm_mail_parse_head(unsigned *cut_p, const char *bytes,
                                  apr_size_t len, apr_pool_t *pool);

#endif /* CRM_MAIL_READ_H */
