/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_markdown.h: CommonMark as the HTML of a mail */
#ifndef CRMAPID_MARKDOWN_H
#define CRMAPID_MARKDOWN_H

#include "apr_pools.h"

/* Return the CommonMark TEXT as an HTML document, in POOL. Line breaks are kept,
 * http(s) URLs become links. Of HTML in TEXT there is the text; links that a browser
 * would run are left out. NULL: nothing is to be seen then. */
const char *crmd_markdown_html(const char *text, apr_pool_t *pool);

#endif /* CRMAPID_MARKDOWN_H */
