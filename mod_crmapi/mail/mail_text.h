/* SPDX-License-Identifier: Apache-2.0 */
/* mail_text.h: converting HTML to text */
#ifndef CRM_MAIL_TEXT_H
#define CRM_MAIL_TEXT_H

#include "apr_pools.h"

/* Return the text of the LEN bytes of HTML (UTF-8), in POOL: quotes with "> ",
 * lists with numbers or dashes, links with their URLs. What styles hide is
 * left out, unless nothing else is there. A little over 256 KiB of text are made.
 * What is beyond the limits of mail_html.h, or beyond 512 levels
 * of elements, is left out; bits of CRM_MAIL_CUT_... are then set in *CUT_P. */
const char *crm_mail_text(unsigned *cut_p, const char *html, apr_size_t len,
                          apr_pool_t *pool);

#endif /* CRM_MAIL_TEXT_H */
