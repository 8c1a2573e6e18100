/* SPDX-License-Identifier: Apache-2.0 */
/* mail_display.h: making HTML safe to be shown (contract 18.3) */
#ifndef CRM_MAIL_DISPLAY_H
#define CRM_MAIL_DISPLAY_H

#include "crm_buf.h"

/* The maximum bytes of a mail's HTML that is shown. */
#define CRM_MAIL_DISPLAY_BYTES (256 * 1024)

/* What is between two of these is an attribute that loads remote content, or the
 * Content-ID of a part that an image shows. */
#define CRM_MAIL_REMOTE '\x01'
#define CRM_MAIL_CID '\x02'

/* Add to BUF, in POOL, what may be shown of the LEN bytes of HTML (UTF-8): the
 * elements, attributes and styles that tables in mail_display.c list, and text.
 * All of it is written anew: each element is closed, each value has quotes. So
 * nothing is left that runs, that sends, or that covers what is around it, and a
 * browser reads the result as it is meant here. There are no scripts, handlers,
 * forms, frames, foreign elements, comments, ids and classes. The URL of a link is
 * http, https, mailto or tel; that of an image is http or https, between two
 * CRM_MAIL_REMOTE. What is beyond CRM_MAIL_DISPLAY_BYTES, the limits of mail_html.h
 * or 256 levels of elements is left out; bits of CRM_MAIL_CUT_... are then set in
 * *CUT_P. */
void crm_mail_display(crm_buf_t *buf, unsigned *cut_p, const char *html,
                      apr_size_t len, apr_pool_t *pool);

/* Add TEXT to BUF as HTML that shows it as it is; the limits are the same. */
void crm_mail_display_text(crm_buf_t *buf, unsigned *cut_p, const char *text);

#endif /* CRM_MAIL_DISPLAY_H */
