/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_mail_html.c: the text of a mail as HTML */
#include "crmapid_mail_html.h"

#include <string.h>
#include <strings.h>

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include "apr_strings.h"

#include "crm_html.h"

#define PUNCTUATION (U_GC_P_MASK)
#define ENCLOSING (U_GC_PS_MASK | U_GC_PE_MASK | U_GC_PI_MASK | U_GC_PF_MASK)
#define UNSEEN (U_GC_Z_MASK | U_GC_CC_MASK | U_GC_CF_MASK)

/* Return whether C joins or parts letters within a word. */
static int is_joiner(UChar32 c)
{
    return c == 0x200c || c == 0x200d;
}

/* Return whether C, which may be negative for an invalid byte, is in no URL that
 * people write. A single quote may be an apostrophe. */
static int ends_url(UChar32 c)
{
    uint32_t kind;

    if (c < 0x80) {
        return c <= ' ' || strchr("<>\"\\^`{|}\x7f", c);
    }
    kind = U_GET_GC_MASK(c);
    if ((c >= 0x3000 && c < 0x3040) || c >= 0xff00) {   /* of East Asia */
        return (kind & (PUNCTUATION | UNSEEN)) != 0;
    }
    return !is_joiner(c) && c != 0x2018 && c != 0x2019
           && (kind & (ENCLOSING | UNSEEN)) != 0;
}

/* Return how many more of OPENING than of CLOSING the LEN bytes at URL have. */
static int balance(const char *url, apr_size_t len, char opening, char closing)
{
    int open = 0;

    for (apr_size_t i = 0; i < len; i++) {
        open += (url[i] == opening) - (url[i] == closing);
    }
    return open;
}

/* Return the length of the LEN bytes at URL without the punctuation at their end that
 * is not part of it: a bracket is if it was opened there. */
static apr_size_t without_tail(const char *url, apr_size_t len)
{
    int round = balance(url, len, '(', ')'), square = balance(url, len, '[', ']');
    int32_t end = (int32_t)len, at = end;
    UChar32 c;

    while (end) {
        U8_PREV((const uint8_t *)url, 0, at, c);
        if (c == ')' ? round++ >= 0 : c == ']' ? square++ >= 0
            : c < 0x80 ? !strchr(".,;:!?'*", c)
            : !is_joiner(c) && !(U_GET_GC_MASK(c) & PUNCTUATION)) {
            break;
        }
        end = at;
    }
    return (apr_size_t)end;
}

/* Return the length of the http(s) URL at the beginning of TEXT, of LEN bytes;
 * 0: none. Punctuation at its end is not part of it. */
static apr_size_t url_length(const char *text, apr_size_t len)
{
    apr_size_t scheme, n;
    int32_t next;
    UChar32 c;

    if (len > 8 && !strncasecmp(text, "https://", 8)) {
        scheme = 8;
    }
    else if (len > 7 && !strncasecmp(text, "http://", 7)) {
        scheme = 7;
    }
    else {
        return 0;
    }
    for (n = scheme, next = (int32_t)n; n < len; n = (apr_size_t)next) {
        U8_NEXT((const uint8_t *)text, next, (int32_t)len, c);
        if (ends_url(c)) {
            break;
        }
    }
    n = scheme + without_tail(text + scheme, n - scheme);
    return n > scheme ? n : 0;
}

static void put_blank(crm_buf_t *buf, char c)
{
    crm_buf_puts(buf, c == '\t' ? "&nbsp;&nbsp;&nbsp;&nbsp;" : "&nbsp;");
}

/* Add the LEN bytes at TEXT to BUF. Of several blanks HTML shows only one: those
 * before another one are put differently. */
static void add_text(crm_buf_t *buf, const char *text, apr_size_t len)
{
    for (apr_size_t i = 0, n; i < len; i += n) {
        for (n = 0; i + n < len && !(i + n + 1 < len
             && strchr(" \t", text[i + n]) && strchr(" \t", text[i + n + 1]));
             n++) {
        }
        crm_html_text(buf, apr_pstrmemdup(buf->pool, text + i, n));
        if (i + n < len) {
            put_blank(buf, text[i + n++]);
        }
    }
}

apr_size_t crmd_mail_url(apr_size_t *len_p, const char *text, apr_size_t len)
{
    apr_size_t at;

    for (at = 0, *len_p = 0; at < len; at++) {
        if ((text[at] == 'h' || text[at] == 'H')
            && (*len_p = url_length(text + at, len - at))) {
            break;
        }
    }
    return at;
}

/* Add LINE, LEN bytes, to BUF with its URLs as links. */
static void add_line(crm_buf_t *buf, const char *line, apr_size_t len)
{
    while (len) {
        apr_size_t url, at = crmd_mail_url(&url, line, len);

        add_text(buf, line, at);
        if (url) {
            crm_buf_puts(buf, "<a href=\"");
            add_text(buf, line + at, url);
            crm_buf_puts(buf, "\">");
            add_text(buf, line + at, url);
            crm_buf_puts(buf, "</a>");
        }
        line += at + url;
        len -= at + url;
    }
}

void crmd_mail_html(crm_buf_t *buf, const char *text)
{
    int open = 0;               /* whether a paragraph is open */

    while (*text) {
        apr_size_t len = strcspn(text, "\n"), indent;

        if (strspn(text, " \t\r") >= len) {
            crm_buf_puts(buf, open ? "</p>\n" : "");
            open = 0;
        }
        else {
            /* each paragraph is written in the direction of its first letter */
            crm_buf_puts(buf, open ? "<br>\n" : "<p dir=\"auto\">");
            for (indent = 0; strchr(" \t", text[indent]); indent++) {
                put_blank(buf, text[indent]);
            }
            add_line(buf, text + indent,
                     len - indent - (text[len - 1] == '\r'));
            open = 1;
        }
        text += len + (text[len] == '\n');
    }
    crm_buf_puts(buf, open ? "</p>\n" : "");
}
