/* SPDX-License-Identifier: Apache-2.0 */
/* crm_html.h: writing HTML */
#ifndef CRM_HTML_H
#define CRM_HTML_H

#include "crm_buf.h"

/* Add TEXT (UTF-8; NULL: nothing) to BUF so that it is text and nothing else,
 * between tags and in attributes' quotes. */
void crm_html_text(crm_buf_t *buf, const char *text);

/* Add to BUF the texts in the arguments, a NULL at their end, in turns as they
 * are and as crm_html_text() does: markup, text, markup, ... */
void crm_html_put(crm_buf_t *buf, const char *markup, ...)
    __attribute__((sentinel));

#endif /* CRM_HTML_H */
