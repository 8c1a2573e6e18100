/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_mail_html.c: the text of a mail as HTML */
#include "crmapid_mail_html.h"

#include <string.h>
#include <strings.h>

#include "apr_strings.h"

#include "crm_html.h"

/* Return the length of the http(s) URL at the beginning of TEXT, of LEN bytes;
 * 0: none. Punctuation at its end is not part of it. */
static apr_size_t url_length(const char *text, apr_size_t len)
{
    apr_size_t scheme, n;

    if (len > 8 && !strncasecmp(text, "https://", 8)) {
        scheme = 8;
    }
    else if (len > 7 && !strncasecmp(text, "http://", 7)) {
        scheme = 7;
    }
    else {
        return 0;
    }
    for (n = scheme; n < len && (unsigned char)text[n] > ' '
         && !strchr("<>\"\\^`{|}\x7f", text[n]); n++) {
    }
    while (n > scheme && (strchr(".,;:!?'*]", text[n - 1])
                          || (text[n - 1] == ')'
                              && !memchr(text, '(', n)))) {
        n--;
    }
    return n > scheme ? n : 0;
}

static void add_text(crm_buf_t *buf, const char *text, apr_size_t len)
{
    crm_html_text(buf, apr_pstrmemdup(buf->pool, text, len));
}

/* Add LINE, LEN bytes, to BUF with its URLs as links. */
static void add_line(crm_buf_t *buf, const char *line, apr_size_t len)
{
    apr_size_t begin = 0;

    for (apr_size_t i = 0; i < len; i++) {
        apr_size_t url;

        if ((line[i] != 'h' && line[i] != 'H')
            || !(url = url_length(line + i, len - i))) {
            continue;
        }
        add_text(buf, line + begin, i - begin);
        crm_buf_puts(buf, "<a href=\"");
        add_text(buf, line + i, url);
        crm_buf_puts(buf, "\">");
        add_text(buf, line + i, url);
        crm_buf_puts(buf, "</a>");
        begin = i + url;
        i = begin - 1;
    }
    add_text(buf, line + begin, len - begin);
}

void crmd_mail_html(crm_buf_t *buf, const char *text)
{
    int open = 0;               /* whether a paragraph is open */

    while (*text) {
        apr_size_t len = strcspn(text, "\n");

        if (strspn(text, " \t\r") >= len) {
            crm_buf_puts(buf, open ? "</p>\n" : "");
            open = 0;
        }
        else {
            crm_buf_puts(buf, open ? "<br>\n" : "<p>");
            add_line(buf, text, text[len - 1] == '\r' ? len - 1 : len);
            open = 1;
        }
        text += len + (text[len] == '\n');
    }
    crm_buf_puts(buf, open ? "</p>\n" : "");
}
