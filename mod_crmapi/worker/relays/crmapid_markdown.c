/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_markdown.c: CommonMark as the HTML of a mail, by cmark */
#include "crmapid_markdown.h"

#include <stdlib.h>
#include <string.h>

#include <cmark.h>

#include "apr_lib.h"
#include "apr_strings.h"
#include "apr_tables.h"

#include "crm_array.h"
#include "crmapid_mail_html.h"
#include "mail_text.h"

/* Return a new node of KIND with the text of LEN bytes. */
static cmark_node *text_node(cmark_node_type kind, const char *text,
                             apr_size_t len, apr_pool_t *pool)
{
    const char *copy = apr_pstrmemdup(pool, text, len);
    cmark_node *node = cmark_node_new(kind);

    if (kind == CMARK_NODE_LINK) {
        cmark_node_set_url(node, copy);
        cmark_node_append_child(node, text_node(CMARK_NODE_TEXT, text, len,
                                                pool));
    }
    else {
        cmark_node_set_literal(node, copy);
    }
    return node;
}

/* Append the LEN bytes of LINE to PARENT with their URLs as links, but not the one
 * at their end if it GOES_ON in another node. */
static void append_line(cmark_node *parent, const char *line, apr_size_t len,
                        int goes_on, apr_pool_t *pool)
{
    while (len) {
        apr_size_t url, at = crmd_mail_url(&url, line, len);

        if (url && at + url == len && goes_on) {
            at = len;
            url = 0;
        }
        if (at) {
            cmark_node_append_child(parent, text_node(CMARK_NODE_TEXT, line, at,
                                                      pool));
        }
        if (url) {
            cmark_node_append_child(parent, text_node(CMARK_NODE_LINK, line + at,
                                                      url, pool));
        }
        line += at + url;
        len -= at + url;
    }
}

/* Put the links into NODE, a text. */
static void link_text(cmark_node *node, apr_pool_t *pool)
{
    const char *text = cmark_node_get_literal(node);
    cmark_node *next = cmark_node_next(node);
    int goes_on = next && (cmark_node_get_type(next) == CMARK_NODE_EMPH
                           || cmark_node_get_type(next) == CMARK_NODE_STRONG);
    cmark_node *line = cmark_node_new(CMARK_NODE_PARAGRAPH), *child;

    append_line(line, text, strlen(text), goes_on, pool);
    while ((child = cmark_node_first_child(line))) {
        cmark_node_insert_before(node, child);
    }
    cmark_node_free(line);
    cmark_node_free(node);
}

/* Put the text of NODE, a block of HTML, in its place; 0: it has none. */
static int show_html(cmark_node *node, apr_pool_t *pool)
{
    const char *html = cmark_node_get_literal(node);
    unsigned cut = 0;
    const char *text = crm_mail_text(&cut, html, strlen(html), pool);
    cmark_node *paragraph = cmark_node_new(CMARK_NODE_PARAGRAPH);
    int shows = 0;

    for (apr_size_t len; *text; text += len + (text[len] == '\n')) {
        len = strcspn(text, "\n");
        if (shows) {
            cmark_node_append_child(paragraph,
                                    cmark_node_new(CMARK_NODE_LINEBREAK));
        }
        append_line(paragraph, text, len, 0, pool);
        shows = shows || len;
    }
    if (shows) {
        cmark_node_insert_before(node, paragraph);
    }
    else {
        cmark_node_free(paragraph);
    }
    cmark_node_free(node);
    return shows;
}

/* Return whether TAG, which begins with '<', is of an element of HTML 4 or 5, or a
 * comment and the like; NAME gets its name in lower case. */
static int is_html(const char *tag, char name[16])
{
    static const char *const names[] = {
        "a", "abbr", "acronym", "address", "applet", "area", "article", "aside",
        "audio", "b", "base", "basefont", "bdi", "bdo", "bgsound", "big",
        "blockquote", "body", "br", "button", "caption", "center", "cite",
        "code", "col", "colgroup", "data", "dd", "del", "details", "dfn", "dir",
        "div", "dl", "dt", "em", "embed", "fieldset", "figcaption", "figure",
        "font", "footer", "form", "frame", "frameset", "h1", "h2", "h3", "h4",
        "h5", "h6", "head", "header", "hr", "html", "i", "iframe", "img",
        "input", "ins", "isindex", "kbd", "keygen", "label", "legend", "li",
        "link", "main", "map", "mark", "menu", "meta", "nav", "noembed",
        "noframes", "noscript", "object", "ol", "optgroup", "option", "p",
        "param", "picture", "plaintext", "pre", "q", "rp", "rt", "ruby", "s",
        "samp", "script", "section", "select", "small", "source", "span",
        "strike", "strong", "style", "sub", "summary", "sup", "svg", "table",
        "tbody", "td", "textarea", "tfoot", "th", "thead", "time", "title",
        "tr", "track", "tt", "u", "ul", "var", "video", "wbr", "xmp",
    };
    apr_size_t len = 0;

    for (tag += 1 + (tag[1] == '/'); len < 15 && apr_isalnum(tag[len]); len++) {
        name[len] = (char)apr_tolower(tag[len]);
    }
    name[len] = '\0';
    return !len || CRM_IS_ONE_OF(name, names);
}

/* Put what is seen of NODE, a tag in a text, in its place: a line break, nothing, or
 * what is no HTML as it is. */
static void show_tag(cmark_node *node, apr_pool_t *pool)
{
    const char *tag = cmark_node_get_literal(node);
    char name[16];

    if (!is_html(tag, name)) {
        cmark_node_insert_before(node, text_node(CMARK_NODE_TEXT, tag,
                                                 strlen(tag), pool));
    }
    else if (!strcmp(name, "br")) {
        cmark_node_insert_before(node, cmark_node_new(CMARK_NODE_LINEBREAK));
    }
    cmark_node_free(node);
}

/* Add the nodes of DOCUMENT to NODES that are to be changed. Return whether others
 * show something. */
static int find_nodes(apr_array_header_t *nodes, cmark_node *document)
{
    cmark_iter *iter = cmark_iter_new(document);
    int shows = 0, links = 0;

    for (cmark_event_type event; (event = cmark_iter_next(iter))
         != CMARK_EVENT_DONE;) {
        cmark_node *node = cmark_iter_get_node(iter);

        switch (cmark_node_get_type(node)) {
        case CMARK_NODE_LINK:
        case CMARK_NODE_IMAGE:
            links += event == CMARK_EVENT_ENTER ? 1 : -1;
            shows = shows || cmark_node_get_type(node) == CMARK_NODE_IMAGE;
            break;
        case CMARK_NODE_TEXT:
            shows = 1;
            if (links) {
                break;
            }
            /* fall through */
        case CMARK_NODE_HTML_BLOCK:
        case CMARK_NODE_HTML_INLINE:
            APR_ARRAY_PUSH(nodes, cmark_node *) = node;
            break;
        case CMARK_NODE_CODE:
        case CMARK_NODE_CODE_BLOCK:
        case CMARK_NODE_THEMATIC_BREAK:
            shows = 1;
            break;
        default:
            break;
        }
    }
    cmark_iter_free(iter);
    return shows;
}

/* Make links of URLs and texts of HTML in DOCUMENT. Return whether it shows
 * something. */
static int complete(cmark_node *document, apr_pool_t *pool)
{
    apr_array_header_t *nodes = apr_array_make(pool, 16, sizeof(cmark_node *));
    int shows;

    shows = find_nodes(nodes, document);
    for (int i = 0; i < nodes->nelts; i++) {
        cmark_node *node = APR_ARRAY_IDX(nodes, i, cmark_node *);

        switch (cmark_node_get_type(node)) {
        case CMARK_NODE_HTML_BLOCK:
            shows = show_html(node, pool) || shows;
            break;
        case CMARK_NODE_HTML_INLINE:
            show_tag(node, pool);
            break;
        default:
            link_text(node, pool);
            break;
        }
    }
    return shows;
}

const char *crmd_markdown_html(const char *text, apr_pool_t *pool)
{
    cmark_node *document = cmark_parse_document(text, strlen(text),
                                                CMARK_OPT_VALIDATE_UTF8);
    const char *page = NULL;

    if (complete(document, pool)) {
        /* without CMARK_OPT_UNSAFE links such as javascript: are left out */
        char *html = cmark_render_html(document, CMARK_OPT_HARDBREAKS);

        page = apr_pstrcat(pool, "<!DOCTYPE html>\n<html><head>"
                           "<meta charset=\"utf-8\"></head>"
                           "<body dir=\"auto\">\n", html, "</body></html>\n",
                           NULL);
        free(html);
    }
    cmark_node_free(document);
    return page;
}
