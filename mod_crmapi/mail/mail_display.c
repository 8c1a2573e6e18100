/* SPDX-License-Identifier: Apache-2.0 */
/* mail_display.c: making HTML safe to be shown
 *
 * An allow list. What a browser makes of the result must be what is meant here,
 * so it has no element whose content is read by other rules (script, style,
 * textarea, svg ...), and '<' and quotes are always escaped. */
#include "mail_display.h"

#include <string.h>
#include <strings.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_array.h"
#include "crm_mail.h"
#include "mail_html.h"

#define DEPTH 256

/* Maximum bytes of an attribute's value, and of a style. */
#define VALUE_BYTES 4096

/* What becomes of an element. */
typedef enum fate_t {
    UNWRAPPED,                  /* only what is in it is shown */
    SHOWN, VOID,                /* it is shown; it has no content */
    GONE                        /* nor is what is in it */
} fate_t;

typedef struct element_t {
    const char *name;
    fate_t fate;
} element_t;

static const element_t elements[] = {
    {"a", SHOWN}, {"abbr", SHOWN}, {"address", SHOWN}, {"applet", GONE},
    {"article", SHOWN}, {"aside", SHOWN}, {"audio", GONE}, {"b", SHOWN},
    {"bdi", SHOWN}, {"bdo", SHOWN}, {"big", SHOWN}, {"blockquote", SHOWN},
    {"br", VOID}, {"canvas", GONE}, {"caption", SHOWN}, {"center", SHOWN},
    {"cite", SHOWN}, {"code", SHOWN}, {"col", VOID}, {"colgroup", SHOWN},
    {"datalist", GONE}, {"dd", SHOWN}, {"del", SHOWN}, {"dfn", SHOWN},
    {"div", SHOWN}, {"dl", SHOWN}, {"dt", SHOWN}, {"em", SHOWN},
    {"embed", GONE}, {"figcaption", SHOWN}, {"figure", SHOWN},
    {"font", SHOWN}, {"footer", SHOWN}, {"frame", GONE}, {"frameset", GONE},
    {"h1", SHOWN}, {"h2", SHOWN}, {"h3", SHOWN}, {"h4", SHOWN}, {"h5", SHOWN},
    {"h6", SHOWN}, {"header", SHOWN}, {"hr", VOID}, {"i", SHOWN},
    {"iframe", GONE}, {"img", VOID}, {"ins", SHOWN}, {"kbd", SHOWN},
    {"li", SHOWN}, {"main", SHOWN}, {"map", GONE}, {"mark", SHOWN},
    {"math", GONE}, {"nav", SHOWN}, {"noembed", GONE}, {"noframes", GONE},
    {"noscript", GONE}, {"object", GONE}, {"ol", SHOWN}, {"p", SHOWN},
    {"plaintext", GONE}, {"pre", SHOWN}, {"q", SHOWN}, {"rp", SHOWN},
    {"rt", SHOWN}, {"ruby", SHOWN}, {"s", SHOWN}, {"samp", SHOWN},
    {"script", GONE}, {"section", SHOWN}, {"select", GONE}, {"small", SHOWN},
    {"span", SHOWN}, {"strike", SHOWN}, {"strong", SHOWN}, {"style", GONE},
    {"sub", SHOWN}, {"sup", SHOWN}, {"svg", GONE}, {"table", SHOWN},
    {"tbody", SHOWN}, {"td", SHOWN}, {"template", GONE}, {"textarea", GONE},
    {"tfoot", SHOWN}, {"th", SHOWN}, {"thead", SHOWN}, {"time", SHOWN},
    {"title", GONE}, {"tr", SHOWN}, {"tt", SHOWN}, {"u", SHOWN},
    {"ul", SHOWN}, {"var", SHOWN}, {"video", GONE}, {"wbr", VOID},
    {"xml", GONE}, {"xmp", GONE},
};

/* Attributes that any element may have. "style", "href" and "src" have rules of
 * their own. */
static const char *const attributes[] = {
    "align", "alt", "bgcolor", "border", "cellpadding", "cellspacing", "color",
    "colspan", "dir", "face", "height", "lang", "nowrap", "rowspan", "size",
    "span", "start", "title", "valign", "width",
};

/* Properties of a style. None moves an element over others, or loads anything as
 * long as put_style() lets no URL pass. */
static const char *const properties[] = {
    "background", "background-color", "border", "border-bottom",
    "border-bottom-color", "border-bottom-style", "border-bottom-width",
    "border-collapse", "border-color", "border-left", "border-left-color",
    "border-left-style", "border-left-width", "border-radius", "border-right",
    "border-right-color", "border-right-style", "border-right-width",
    "border-spacing", "border-style", "border-top", "border-top-color",
    "border-top-style", "border-top-width", "border-width", "clear", "color",
    "direction", "display", "float", "font", "font-family", "font-size",
    "font-style", "font-variant", "font-weight", "height", "letter-spacing",
    "line-height", "list-style-type", "margin", "margin-bottom",
    "margin-left", "margin-right", "margin-top", "max-height", "max-width",
    "min-height", "min-width", "overflow", "overflow-wrap", "padding",
    "padding-bottom", "padding-left", "padding-right", "padding-top",
    "table-layout", "text-align", "text-decoration", "text-indent",
    "text-transform", "vertical-align", "visibility", "white-space", "width",
    "word-break", "word-spacing", "word-wrap",
};

/* The functions that a value of a property may call: colours. */
static const char *const functions[] = {"hsl", "hsla", "rgb", "rgba"};

/* Schemes of URLs. */
static const char *const link_schemes[] = {
    "http://", "https://", "mailto:", "tel:"
};
static const char *const image_schemes[] = {"http://", "https://"};

typedef struct writer_t {
    crm_buf_t *buf;
    htmlParserCtxtPtr parser;
    const element_t *open[DEPTH];       /* the open elements */
    int depth;
    int gone;                   /* number of open elements that are GONE */
    unsigned cut;               /* bits of CRM_MAIL_CUT_... */
    apr_pool_t *pool;
} writer_t;

/* ---- writing ------------------------------------------------------------- */

static int is_full(const crm_buf_t *buf)
{
    return buf->len > CRM_MAIL_DISPLAY_BYTES;
}

/* Add the LEN bytes of TEXT, which mean nothing but themselves. Line ends and tabs
 * stay, other control characters are left out. */
static void put(crm_buf_t *buf, const char *text, apr_size_t len)
{
    for (apr_size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        switch (c) {
        case '<': crm_buf_puts(buf, "&lt;"); break;
        case '>': crm_buf_puts(buf, "&gt;"); break;
        case '&': crm_buf_puts(buf, "&amp;"); break;
        case '"': crm_buf_puts(buf, "&quot;"); break;
        case '\'': crm_buf_puts(buf, "&#39;"); break;
        case '`': crm_buf_puts(buf, "&#96;"); break;
        default:
            if ((c >= ' ' && c != 0x7f) || c == '\n' || c == '\t') {
                crm_buf_putc(buf, (char)c);
            }
        }
    }
}

static void put_attribute(crm_buf_t *buf, const char *name, const char *value)
{
    crm_buf_printf(buf, " %s=\"", name);
    put(buf, value, strlen(value));
    crm_buf_putc(buf, '"');
}

/* ---- URLs ---------------------------------------------------------------- */

/* Return URL without what browsers ignore in it (URL Living Standard, 4.4): control
 * characters and blanks at its ends, line ends and tabs everywhere; in POOL. */
static const char *bare_url(const char *url, apr_pool_t *pool)
{
    char *made = apr_pstrdup(pool, url), *out = made;

    for (const char *c = url; *c; c++) {
        if ((unsigned char)*c > ' ' || (*c == ' ' && out > made)) {
            *out++ = *c;
        }
    }
    while (out > made && out[-1] == ' ') {
        out--;
    }
    *out = '\0';
    return made;
}

static void put_link(writer_t *writer, const char *value)
{
    const char *url = bare_url(value, writer->pool);

    if (CRM_BEGINS_ONE_OF(url, link_schemes)) {
        put_attribute(writer->buf, "href", url);
        crm_buf_puts(writer->buf, " target=\"_blank\""
                     " rel=\"noopener noreferrer nofollow\"");
    }
}

static void put_source(writer_t *writer, const char *value)
{
    const char *url = bare_url(value, writer->pool);

    if (!strncasecmp(url, "cid:", 4) && url[4]) {
        crm_buf_putc(writer->buf, CRM_MAIL_CID);
        put(writer->buf, url + 4, strlen(url + 4));
        crm_buf_putc(writer->buf, CRM_MAIL_CID);
    }
    else if (CRM_BEGINS_ONE_OF(url, image_schemes)) {
        crm_buf_putc(writer->buf, CRM_MAIL_REMOTE);
        put_attribute(writer->buf, "src", url);
        crm_buf_putc(writer->buf, CRM_MAIL_REMOTE);
    }
}

/* ---- styles -------------------------------------------------------------- */

/* Return whether the word that ends before END, and begins at or after BEGIN, is
 * one of FUNCTIONS. */
static int ends_function(const char *begin, const char *end)
{
    const char *word = end;

    while (word > begin && apr_isalpha(word[-1])) {
        word--;
    }
    for (size_t i = 0; i < CRM_NELTS(functions); i++) {
        if (strlen(functions[i]) == (size_t)(end - word)
            && !strncasecmp(functions[i], word, (size_t)(end - word))) {
            return 1;
        }
    }
    return 0;
}

/* Return whether VALUE has only words, numbers, colours and calls of FUNCTIONS,
 * and no negative number, by which an element could leave its place. Escapes,
 * comments, URLs and strings have other characters. */
static int is_plain(const char *value)
{
    for (const char *c = value; *c; c++) {
        if (!apr_isalnum(*c) && !strchr(" #%.,-!()", *c)) {
            return 0;
        }
        if ((*c == '-' && (apr_isdigit(c[1]) || c[1] == '.'))
            || (*c == '(' && !ends_function(value, c))) {
            return 0;
        }
    }
    return 1;
}

/* Return VALUE of the property NAME in one line, without the quotes of names of
 * fonts, in POOL. */
static const char *bare_value(const char *name, const char *value,
                              apr_pool_t *pool)
{
    char *made = apr_pstrdup(pool, value), *out = made;
    int fonts = !strncasecmp(name, "font", 4);

    for (const char *c = value; *c; c++) {
        if (!fonts || !strchr("\"'", *c)) {
            *out++ = apr_isspace(*c) ? ' ' : *c;
        }
    }
    *out = '\0';
    return made + strspn(made, " ");
}

/* Write the declarations of STYLE that are allowed. A ';' within a string cuts it
 * into pieces, each of which is judged by itself. */
static void put_style(writer_t *writer, const char *style)
{
    crm_buf_t *buf = writer->buf;
    char *state, *one = apr_strtok(apr_pstrdup(writer->pool, style), ";",
                                   &state);
    int count = 0;

    for (; one; one = apr_strtok(NULL, ";", &state)) {
        char *colon = strchr(one, ':'), *name = one + strspn(one, " \t\r\n");
        const char *value;

        if (!colon) {
            continue;
        }
        *colon = '\0';
        name[strcspn(name, " \t\r\n")] = '\0';
        value = bare_value(name, colon + 1, writer->pool);
        if (*value && is_plain(value)
            && CRM_EQUALS_ONE_OF(name, properties)) {
            crm_buf_printf(buf, "%s%s: %s", count++ ? "; " : " style=\"",
                           name, value);
        }
    }
    crm_buf_puts(buf, count ? "\"" : "");
}

/* ---- callbacks of the parser --------------------------------------------- */

static const element_t *find_element(const char *name)
{
    static const element_t other = {NULL, UNWRAPPED};

    for (size_t i = 0; i < CRM_NELTS(elements); i++) {
        if (!strcasecmp(elements[i].name, name)) {
            return &elements[i];
        }
    }
    return &other;
}

/* Write the attribute NAME of ELEMENT, if it is allowed. */
static void write_attribute(writer_t *writer, const char *element,
                            const char *name, const char *value)
{
    if (strlen(value) > VALUE_BYTES || is_full(writer->buf)) {
        writer->cut |= CRM_MAIL_CUT_ATTRIBUTES;
    }
    else if (!strcasecmp(name, "style")) {
        put_style(writer, value);
    }
    else if (!strcasecmp(name, "href") && !strcmp(element, "a")) {
        put_link(writer, value);
    }
    else if (!strcasecmp(name, "src") && !strcmp(element, "img")) {
        put_source(writer, value);
    }
    else {
        for (size_t i = 0; i < CRM_NELTS(attributes); i++) {
            if (!strcasecmp(attributes[i], name)) {
                put_attribute(writer->buf, attributes[i], value);
            }
        }
    }
}

/* Write the tag of ELEMENT with the attributes GIVEN, names and values in turn. */
static void write_tag(writer_t *writer, const char *element,
                      const xmlChar **given)
{
    crm_buf_printf(writer->buf, "<%s", element);
    for (; given && given[0]; given += 2) {
        write_attribute(writer, element, (const char *)given[0],
                        given[1] ? (const char *)given[1] : "");
    }
    crm_buf_putc(writer->buf, '>');
}

/* Stop the parser, because the limit that BIT stands for is exceeded. */
static void stop(writer_t *writer, unsigned bit)
{
    writer->cut |= bit;
    xmlStopParser(writer->parser);
}

static void begin_element(void *baton, const xmlChar *name,
                          const xmlChar **given)
{
    const element_t *element = find_element((const char *)name);
    writer_t *writer = baton;

    if (writer->depth == DEPTH) {
        stop(writer, CRM_MAIL_CUT_LEVELS);
        return;
    }
    if (is_full(writer->buf)) {
        stop(writer, CRM_MAIL_CUT_HTML);
        return;
    }
    writer->open[writer->depth++] = element;
    writer->gone += element->fate == GONE;
    if ((element->fate == SHOWN || element->fate == VOID) && !writer->gone) {
        write_tag(writer, element->name, given);
        apr_pool_clear(writer->pool);
    }
}

/* Close the innermost element. */
static void close_element(writer_t *writer)
{
    const element_t *element = writer->open[--writer->depth];

    writer->gone -= element->fate == GONE;
    if (element->fate == SHOWN && !writer->gone) {
        crm_buf_printf(writer->buf, "</%s>", element->name);
    }
}

static void end_element(void *baton, const xmlChar *name)
{
    writer_t *writer = baton;

    (void)name;
    if (writer->depth) {
        close_element(writer);
    }
}

/* Newer releases of libxml2 give any length of text at once. No character is cut. */
static void characters(void *baton, const xmlChar *text, int len)
{
    writer_t *writer = baton;

    for (int i = 0; i < len && !writer->gone; i++) {
        if (is_full(writer->buf) && (text[i] & 0xc0) != 0x80) {
            stop(writer, CRM_MAIL_CUT_HTML);
            return;
        }
        put(writer->buf, (const char *)text + i, 1);
    }
}

/* ---- the document -------------------------------------------------------- */

/* Scripts and styles, the parser's cdataBlock, are left out. */
static const htmlSAXHandler handler = {
    .startElement = begin_element, .endElement = end_element,
    .characters = characters, .ignorableWhitespace = characters,
};

void crm_mail_display(crm_buf_t *buf, unsigned *cut_p, const char *html,
                      apr_size_t len, apr_pool_t *pool)
{
    writer_t *writer = apr_pcalloc(pool, sizeof(*writer));
    apr_size_t tidy_len;
    const char *tidy = crm_mail_html(&tidy_len, cut_p, html, len, pool);

    writer->buf = buf;
    apr_pool_create(&writer->pool, pool);
    if (is_full(buf)) {
        writer->cut |= CRM_MAIL_CUT_HTML;
    }
    else {
        crm_mail_html_parse(&writer->parser, &handler, writer, tidy, tidy_len);
    }
    while (writer->depth) {
        close_element(writer);
    }
    *cut_p |= writer->cut;
    apr_pool_destroy(writer->pool);
}

void crm_mail_display_text(crm_buf_t *buf, unsigned *cut_p, const char *text)
{
    apr_size_t len = strlen(text), left = CRM_MAIL_DISPLAY_BYTES;

    left = is_full(buf) ? 0 : left - buf->len;
    if (len > left) {
        *cut_p |= CRM_MAIL_CUT_HTML;
        for (len = left; len && (text[len] & 0xc0) == 0x80; len--) {
        }
    }
    crm_buf_puts(buf, "<div style=\"white-space: pre-wrap\">");
    put(buf, text, len);
    crm_buf_puts(buf, "</div>");
}
