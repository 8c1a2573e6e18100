/* SPDX-License-Identifier: Apache-2.0 */
/* mail_read.h: parsing a mail, and reading its headers */
#ifndef CRM_MAIL_READ_H
#define CRM_MAIL_READ_H

#include <gmime/gmime.h>

#include "apr_pools.h"

/* Return the charset of the text of MIME, which headers without a charset are
 * in; NULL if it is not needed: they are UTF-8. */
const char *crm_mail_hint(GMimeMessage *mime);

/* Return the value of the first header NAME of MIME, decoded, as one line of
 * at most MAX characters in POOL; NULL if it is missing or blank. */
const char *crm_mail_header(GMimeMessage *mime, const char *name,
                            apr_size_t max, apr_pool_t *pool);

/* Return the number of headers NAME in MIME. */
int crm_mail_count(GMimeMessage *mime, const char *name);

/* Return the file name of PART, from Content-Disposition, else Content-Type, in
 * POOL; NULL if it has none. */
const char *crm_mail_file_name(GMimeObject *part, const char *hint,
                               apr_pool_t *pool);

/* Return the decoded content of PART, *LEN_P bytes and a NUL, in POOL. A text that
 * is no base64, as is said of it, is returned as it is. */
const char *crm_mail_bytes(apr_size_t *len_p, GMimePart *part,
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
