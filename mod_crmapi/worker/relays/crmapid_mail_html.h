/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_mail_html.h: the text of a mail as HTML */
#ifndef CRMAPID_MAIL_HTML_H
#define CRMAPID_MAIL_HTML_H

#include "crm_buf.h"

/* Return where the first http(s) URL is in the LEN bytes at TEXT, and its length in
 * *LEN_P; LEN and 0 if there is none. Punctuation at its end is not part of it. */
apr_size_t crmd_mail_url(apr_size_t *len_p, const char *text, apr_size_t len);

/* Add TEXT to BUF as HTML paragraphs. Line breaks are kept, http(s) URLs
 * become links. */
void crmd_mail_html(crm_buf_t *buf, const char *text);

#endif /* CRMAPID_MAIL_HTML_H */
