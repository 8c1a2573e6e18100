/* SPDX-License-Identifier: Apache-2.0 */
/* mail_html.c: HTML within limits (contract 18.7)
 *
 * libxml2 compares the attributes of an element pairwise, and finds tags by rules
 * of its own. So it gets only tags that were written here. */
#include "mail_html.h"

#include <string.h>
#include <strings.h>

#include "apr_lib.h"

#include "crm_array.h"
#include "crm_buf.h"
#include "crm_mail.h"
#include "mail_reference.h"

/* Maximum bytes of a name. */
#define NAME_BYTES 40

#define BLANKS " \t\n\f\r"

/* What is left to read, and what was written. */
typedef struct html_t {
    const char *at, *end;
    crm_buf_t out;
    crm_buf_t value;            /* of the attribute that is written */
    int many;                   /* an element has too many attributes */
    int ended;                  /* the document, before more of it */
    int begun;                  /* its body, with an element or a text */
} html_t;

/* A piece of the input. */
typedef struct piece_t {
    const char *text;
    apr_size_t len;
} piece_t;

static int is_blank(char c)
{
    return c && strchr(BLANKS, c);
}

/* Move AT of HTML behind the next TEXT, or to the end. */
static void skip_to(html_t *html, const char *text)
{
    size_t len = strlen(text);
    const char *found = memmem(html->at, (size_t)(html->end - html->at), text,
                               len);

    html->at = found ? found + len : html->end;
}

/* ---- writing ------------------------------------------------------------- */

/* Write TEXT, LEN bytes, without what could begin or end a tag. */
static void put_escaped(crm_buf_t *out, const char *text, apr_size_t len)
{
    for (apr_size_t i = 0; i < len; i++) {
        switch (text[i]) {
        case '<': crm_buf_puts(out, "&lt;"); break;
        case '>': crm_buf_puts(out, "&gt;"); break;
        case '"': crm_buf_puts(out, "&quot;"); break;
        default: crm_buf_putc(out, text[i]); break;
        }
    }
}

/* Write NAME in lower case. Return 0, and write nothing, if it is none. */
static int put_name(crm_buf_t *out, piece_t name)
{
    if (!name.len || name.len > NAME_BYTES || !apr_isalpha(*name.text)) {
        return 0;
    }
    for (apr_size_t i = 0; i < name.len; i++) {
        if (!apr_isalnum(name.text[i]) && !strchr("-_:.", name.text[i])) {
            return 0;
        }
    }
    for (apr_size_t i = 0; i < name.len; i++) {
        crm_buf_putc(out, (char)apr_tolower(name.text[i]));
    }
    return 1;
}

/* ---- attributes ---------------------------------------------------------- */

/* Read up to one of the characters ENDS. */
static piece_t read_until(html_t *html, const char *ends)
{
    piece_t piece = {html->at, 0};

    while (html->at < html->end && !strchr(ends, *html->at)) {
        html->at++;
    }
    piece.len = (apr_size_t)(html->at - piece.text);
    return piece;
}

static void skip_blanks(html_t *html)
{
    while (html->at < html->end && is_blank(*html->at)) {
        html->at++;
    }
}

/* Read the value behind '=', if there is one. */
static piece_t read_value(html_t *html)
{
    piece_t piece = {html->at, 0};
    char quote;

    skip_blanks(html);
    if (html->at == html->end || *html->at != '=') {
        return piece;
    }
    html->at++;
    skip_blanks(html);
    quote = html->at < html->end ? *html->at : '\0';
    if (quote != '"' && quote != '\'') {
        return read_until(html, BLANKS ">");
    }
    html->at++;
    piece = read_until(html, quote == '"' ? "\"" : "'");
    html->at += html->at < html->end;
    return piece;
}

/* Write the attribute NAME with VALUE. */
static void put_attribute(html_t *html, piece_t name, piece_t value)
{
    crm_buf_t *out = &html->out;
    apr_size_t before = out->len;

    crm_buf_putc(out, ' ');
    if (!put_name(out, name)) {
        out->len = before;
        return;
    }
    html->value.len = 0;
    crm_mail_html_references(&html->value, value.text, value.len, 1);
    crm_buf_puts(out, "=\"");
    put_escaped(out, html->value.data, html->value.len);
    crm_buf_putc(out, '"');
}

/* Read the attributes of a tag up to its '>', and write them if KEEP. Return
 * whether the tag is complete, 2 if it ends with a slash. */
static int read_attributes(html_t *html, int keep)
{
    for (int count = 0; html->at < html->end;) {
        piece_t name, value;

        if (*html->at == '>') {
            html->at++;
            return html->at[-2] == '/' ? 2 : 1;
        }
        if (*html->at == '/' || is_blank(*html->at)) {
            html->at++;
            continue;
        }
        name.text = html->at++; /* it may begin with '=' */
        name.len = 1 + read_until(html, BLANKS "/>=").len;
        value = read_value(html);
        if (keep && ++count > CRM_MAIL_ATTRIBUTES) {
            html->many = 1;
        }
        else if (keep) {
            put_attribute(html, name, value);
        }
    }
    return 0;
}

/* ---- tags ---------------------------------------------------------------- */

/* Elements whose content has no tags. */
static const struct {
    const char *name;
    int keep;                   /* the content is kept */
} raw_elements[] = {
    {"iframe", 0}, {"noembed", 0}, {"noframes", 0}, {"script", 0},
    {"style", 1}, {"textarea", 1}, {"title", 1}, {"xmp", 1},
};

static int is_name(piece_t piece, const char *name)
{
    return strlen(name) == piece.len
           && !strncasecmp(piece.text, name, piece.len);
}

/* Return the end tag of NAME at AT of HTML, or behind it; NULL if there is
 * none. */
static const char *find_end(const html_t *html, piece_t name)
{
    const char *c = html->at;

    while ((c = memmem(c, (size_t)(html->end - c), "</", 2))) {
        const char *behind = c + 2 + name.len;

        if (behind <= html->end
            && !strncasecmp(c + 2, name.text, name.len)
            && (behind == html->end || strchr(BLANKS "/>", *behind))) {
            return c;
        }
        c += 2;
    }
    return NULL;
}

/* Read the content of the element NAME, if it has no tags. */
static void read_raw(html_t *html, piece_t name)
{
    for (size_t i = 0; i < CRM_NELTS(raw_elements); i++) {
        if (is_name(name, raw_elements[i].name)) {
            const char *end = find_end(html, name);

            end = end ? end : html->end;
            if (raw_elements[i].keep) {
                put_escaped(&html->out, html->at,
                            (apr_size_t)(end - html->at));
            }
            html->at = end;
        }
    }
}

/* Return whether what follows the end tag NAME belongs to its element as well
 * (HTML, 13.2.6.4.22): a disclaimer behind a document, or another document. For
 * libxml2 it would be the end of all. */
static int is_open(piece_t name)
{
    return is_name(name, "body") || is_name(name, "html");
}

/* Return whether the element NAME is not of the body. */
static int is_of_head(piece_t name)
{
    static const char *const names[] = {
        "base", "head", "html", "link", "meta", "script", "style", "title"
    };

    for (size_t i = 0; i < CRM_NELTS(names); i++) {
        if (is_name(name, names[i])) {
            return 1;
        }
    }
    return 0;
}

/* Prepare for text. Some releases of libxml2 make a paragraph of that which comes
 * before all elements, browsers and others do not. */
static void begin_text(html_t *html)
{
    if (html->ended) {
        crm_buf_puts(&html->out, "<div></div>");    /* a line of its own */
    }
    else if (!html->begun) {
        crm_buf_puts(&html->out, "<body>");
    }
    html->ended = 0;
    html->begun = 1;
}

/* Read the tag at AT. END: it is an end tag. */
static void read_tag(html_t *html, int end)
{
    apr_size_t before = html->out.len;
    piece_t name;
    int named, complete;

    html->at += 1 + end;
    name = read_until(html, BLANKS "/>");
    crm_buf_puts(&html->out, end ? "</" : "<");
    named = put_name(&html->out, name);
    complete = read_attributes(html, named && !end);
    if (!named || !complete || (end && is_open(name))) {
        html->out.len = before; /* browsers do not know it, or ignore it */
        html->ended |= named && complete;
        return;
    }
    crm_buf_putc(&html->out, '>');
    html->begun |= !end && !is_of_head(name);
    if (!end && complete == 1) {
        read_raw(html, name);
    }
}

/* Read the markup at AT, a '<', or write it as text if it is none. */
static void read_markup(html_t *html)
{
    apr_size_t left = (apr_size_t)(html->end - html->at);
    char second = left > 1 ? html->at[1] : '\0';

    if (apr_isalpha(second)) {
        read_tag(html, 0);
    }
    else if (second == '/' && left > 2 && apr_isalpha(html->at[2])) {
        read_tag(html, 1);
    }
    else if (left > 3 && !memcmp(html->at, "<!--", 4)) {
        html->at += 2;          /* "<!-->" is a comment, too */
        skip_to(html, "-->");
    }
    else if (second == '!' || second == '?'
             || (second == '/' && left > 2)) {
        skip_to(html, ">");
    }
    else {
        begin_text(html);
        crm_buf_puts(&html->out, "&lt;");
        html->at++;
    }
}

/* Return whether PIECE has nothing but blanks. */
static int shows_nothing(piece_t piece)
{
    while (piece.len && is_blank(*piece.text)) {
        piece.text++;
        piece.len--;
    }
    return !piece.len;
}

const char *crm_mail_html(apr_size_t *len_p, unsigned *cut_p,
                          const char *html, apr_size_t len, apr_pool_t *pool)
{
    html_t reader = {.at = html, .end = html + len};

    crm_buf_init(&reader.out, len + 64, pool);
    crm_buf_init(&reader.value, 256, pool);
    while (reader.at < reader.end) {
        piece_t text = read_until(&reader, "<");

        if (!shows_nothing(text)) {
            begin_text(&reader);
        }
        crm_mail_html_references(&reader.out, text.text, text.len, 0);
        if (reader.at < reader.end) {
            read_markup(&reader);
        }
    }
    *cut_p |= reader.many ? CRM_MAIL_CUT_ATTRIBUTES : 0;
    *len_p = reader.out.len;
    return reader.out.data;
}

void crm_mail_html_parse(htmlParserCtxtPtr *parser_p,
                         const htmlSAXHandler *handler, void *baton,
                         const char *html, apr_size_t len)
{
    htmlSAXHandler functions = *handler;        /* libxml2 takes no const */
    htmlParserCtxtPtr parser = htmlCreatePushParserCtxt(
        &functions, baton, NULL, 0, NULL, XML_CHAR_ENCODING_UTF8);

    *parser_p = parser;
    if (!parser) {
        return;
    }
    htmlCtxtUseOptions(parser, HTML_PARSE_RECOVER | HTML_PARSE_NOERROR
                       | HTML_PARSE_NOWARNING | HTML_PARSE_NONET
                       | HTML_PARSE_IGNORE_ENC);
    htmlParseChunk(parser, html, (int)len, 0);
    htmlParseChunk(parser, "", 0, 1);
    if (parser->myDoc) {
        xmlFreeDoc(parser->myDoc);
    }
    htmlFreeParserCtxt(parser);
}
