/* SPDX-License-Identifier: Apache-2.0 */
/* mail_tnef.h: the text and the files in winmail.dat, as Outlook writes it
 * (MS-OXTNEF) */
#ifndef CRM_MAIL_TNEF_H
#define CRM_MAIL_TNEF_H

#include "apr_pools.h"
#include "apr_tables.h"

/* A file, or the text of the mail. */
typedef struct crm_mail_tnef_t {
    const char *name;           /* UTF-8, or NULL */
    const char *long_name;      /* NULL: NAME is not short for it */
    const char *type;           /* "image/png", or NULL */
    const char *content_id;     /* or NULL */
    const char *bytes;
    apr_size_t len;
} crm_mail_tnef_t;

/* Return the files in the LEN BYTES of winmail.dat, of crm_mail_tnef_t, in POOL; as
 * many as there are before something is broken, none if it is something else. Set
 * BODY to its text, text/html, text/plain or text/rtf (as Outlook compresses it:
 * mail_rtf.h); it has no bytes if there is none. The bytes are within BYTES. */
const apr_array_header_t *crm_mail_tnef(crm_mail_tnef_t *body,
                                        const char *bytes, apr_size_t len,
                                        apr_pool_t *pool);

#endif /* CRM_MAIL_TNEF_H */
