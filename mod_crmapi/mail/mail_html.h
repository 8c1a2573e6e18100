/* SPDX-License-Identifier: Apache-2.0 */
/* mail_html.h: HTML within limits (contract 18.7) */
#ifndef CRM_MAIL_HTML_H
#define CRM_MAIL_HTML_H

#include <libxml/HTMLparser.h>

#include "apr_pools.h"

/* Maximum bytes of HTML of a mail, and attributes of an element. */
#define CRM_MAIL_HTML_BYTES (1024 * 1024)
#define CRM_MAIL_ATTRIBUTES 256

/* Return the LEN bytes of HTML, *LEN_P bytes of the result, in POOL, in a form
 * that libxml2 parses in time linear in its size: each '<' begins a complete tag
 * whose attributes have quotes. Tags are found as browsers find them (HTML Living
 * Standard, 13.2.5). There are no comments, declarations and scripts, and no more
 * attributes than the limit; *CUT_P then gets CRM_MAIL_CUT_ATTRIBUTES. */
const char *crm_mail_html(apr_size_t *len_p, unsigned *cut_p,
                          const char *html, apr_size_t len, apr_pool_t *pool);

/* Parse the LEN bytes of HTML, which crm_mail_html() has made, and call HANDLER's
 * functions with BATON. *PARSER_P is the parser meanwhile, for
 * xmlStopParser(). */
void crm_mail_html_parse(htmlParserCtxtPtr *parser_p,
                         const htmlSAXHandler *handler, void *baton,
                         const char *html, apr_size_t len);

#endif /* CRM_MAIL_HTML_H */
