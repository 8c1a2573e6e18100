/* SPDX-License-Identifier: Apache-2.0 */
/* mail_text.h: converting HTML to text */
#ifndef CRM_MAIL_TEXT_H
#define CRM_MAIL_TEXT_H

#include "apr_pools.h"

/* Return the text of HTML (UTF-8), in POOL: quotes with "> ", lists with
 * numbers or dashes, links with their URLs. Only the first 2 MiB of HTML are
 * read, and a little over 256 KiB of text are made. */
const char *crm_mail_text(const char *html, apr_pool_t *pool);

#endif /* CRM_MAIL_TEXT_H */
