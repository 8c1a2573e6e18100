/* SPDX-License-Identifier: Apache-2.0 */
/* mail_tree.h: the parts of a mail, within limits (contract 18.7) */
#ifndef CRM_MAIL_TREE_H
#define CRM_MAIL_TREE_H

#include <gmime/gmime.h>

#include "apr_pools.h"

/* Maximum depth of parts and their number. */
#define CRM_MAIL_LEVELS 100
#define CRM_MAIL_PARTS 1000

/* Return the mail of LEN BYTES, which must live as long as it. Parts beyond the
 * limits are left out, and fields of headers beyond those of mail_head.c; bits
 * of CRM_MAIL_CUT_... (crm_mail.h) are then set in *CUT_P. Of enclosed mails only
 * the header is read. The caller unrefs the result. */
GMimeMessage *crm_mail_tree(unsigned *cut_p, const char *bytes, apr_size_t len,
                            apr_pool_t *pool);

/* The same without a body. */
GMimeMessage *crm_mail_tree_head(unsigned *cut_p, const char *bytes,
                                 apr_size_t len, apr_pool_t *pool);

/* Return the bytes of the mail that PART, of a mail by crm_mail_tree(), encloses,
 * *LEN_P of them, as they came. */
const char *crm_mail_enclosed(apr_size_t *len_p, GMimeMessagePart *part);

#endif /* CRM_MAIL_TREE_H */
