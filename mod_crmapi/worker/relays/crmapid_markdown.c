/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_markdown.c: CommonMark as the HTML of a mail, by cmark */
#include "crmapid_markdown.h"

#include <stdlib.h>
#include <string.h>

#include <cmark.h>

#include "apr_strings.h"

const char *crmd_markdown_html(const char *text, apr_pool_t *pool)
{
    /* without CMARK_OPT_UNSAFE raw HTML and links such as javascript: are left
     * out */
    char *html = cmark_markdown_to_html(text, strlen(text),
                                        CMARK_OPT_VALIDATE_UTF8);
    const char *document = apr_pstrcat(pool, "<!DOCTYPE html>\n<html><head>"
                                       "<meta charset=\"utf-8\"></head>"
                                       "<body dir=\"auto\">\n", html,
                                       "</body></html>\n", NULL);

    free(html);
    return document;
}
