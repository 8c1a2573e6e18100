/* SPDX-License-Identifier: Apache-2.0 */
/* mail_label.h: the labels of charsets (contract 18.1) */
#ifndef CRM_MAIL_LABEL_H
#define CRM_MAIL_LABEL_H

#include "apr_pools.h"

/* How bytes are decoded. */
typedef enum crm_mail_coding_t {
    CRM_MAIL_UNKNOWN,           /* the label says nothing of the bytes */
    CRM_MAIL_UTF8,
    CRM_MAIL_SINGLE,            /* one byte for a character */
    CRM_MAIL_MULTI,             /* ASCII, else two bytes or more */
    CRM_MAIL_WIDE,              /* ASCII means something else, too: UTF-16, UTF-7,
                                   HZ, ISO-2022 */
    CRM_MAIL_JIS,               /* ISO-2022-JP and its kin */
    CRM_MAIL_ICONV              /* one byte for a character, by iconv(): ICU has
                                   no converter for it */
} crm_mail_coding_t;

typedef struct crm_mail_charset_t {
    const char *name;           /* of the converter */
    crm_mail_coding_t coding;
} crm_mail_charset_t;

/* Return what LABEL (may be NULL), of any mail, means: a label of the WHATWG's
 * Encoding Standard, another name in use, or one that ICU knows. Case, blanks,
 * punctuation and what surrounds it do not count. Strings are constants. */
crm_mail_charset_t crm_mail_label(const char *label);

/* Return the charset declared in the LEN bytes of HTML, in POOL; NULL if there
 * is none. */
const char *crm_mail_label_in_html(const char *bytes, apr_size_t len,
                                   apr_pool_t *pool);

#endif /* CRM_MAIL_LABEL_H */
