/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_mail_html.h: the text of a mail as HTML */
#ifndef CRMAPID_MAIL_HTML_H
#define CRMAPID_MAIL_HTML_H

#include "crm_buf.h"

/* Add TEXT to BUF as HTML paragraphs. Line breaks are kept, http(s) URLs
 * become links. */
void crmd_mail_html(crm_buf_t *buf, const char *text);

#endif /* CRMAPID_MAIL_HTML_H */
