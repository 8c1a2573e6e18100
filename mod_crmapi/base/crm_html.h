/* SPDX-License-Identifier: Apache-2.0 */
/* crm_html.h: writing HTML */
#ifndef CRM_HTML_H
#define CRM_HTML_H

#include "crm_buf.h"

/* Add TEXT (UTF-8; NULL: nothing) to BUF, escaped for use between tags and in
 * quoted attributes. */
void crm_html_text(crm_buf_t *buf, const char *text);

/* Add the arguments up to a NULL to BUF: alternately markup, which is added as
 * it is, and text, which is escaped by crm_html_text(). */
void crm_html_put(crm_buf_t *buf, const char *markup, ...)
    __attribute__((sentinel));

/* Return, in RESULT_POOL, the Content-Security-Policy of a page of ours: it allows
 * the style of the LEN bytes at STYLE and what MORE, further directives, allows, and
 * nothing else. */
const char *crm_html_policy(const char *style, apr_size_t len, const char *more,
                            apr_pool_t *result_pool);

#endif /* CRM_HTML_H */
