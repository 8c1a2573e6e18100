/* SPDX-License-Identifier: Apache-2.0 */
/* mail_text.c: converting HTML to text
 *
 * libxml2's SAX parser is used, which makes no tree. */
#include "mail_text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "crm_array.h"
#include "crm_bare.h"
#include "crm_buf.h"
#include "crm_mail.h"
#include "crm_text.h"
#include "mail_charset.h"
#include "mail_html.h"
#include "mail_sign.h"
#include "mail_style.h"

/* Maximum bytes of text that are made, and depth of elements. */
#define TEXT_BYTES (4 * CRM_MAIL_TEXT_MAX + 1024)
#define DEPTH 512

/* A no-break space, and how many of them may indent a line. */
#define NO_BREAK "\xc2\xa0"
#define BLANKS_MAX 100

/* Maximum bytes of a cell of a table that the next one is written behind. */
#define CELL_BYTES 80

/* The effect of an element on the text. */
typedef enum effect_t {
    INLINE, LINE, PARAGRAPH, QUOTE, BULLETS, NUMBERS, ITEM, ROW, CELL, PRE, RULE,
    BREAK, LINK, IMAGE, NOTHING
} effect_t;

static const struct {
    const char *name;
    effect_t effect;
} elements[] = {
    {"a", LINK}, {"address", LINE}, {"article", LINE}, {"aside", LINE},
    {"audio", NOTHING}, {"blockquote", QUOTE}, {"br", BREAK},
    {"caption", LINE}, {"center", LINE}, {"datalist", NOTHING},
    {"dd", LINE}, {"details", LINE}, {"div", LINE},
    {"dl", PARAGRAPH}, {"dt", LINE}, {"fieldset", LINE},
    {"figcaption", LINE}, {"figure", LINE}, {"footer", LINE},
    {"form", LINE}, {"h1", PARAGRAPH}, {"h2", PARAGRAPH}, {"h3", PARAGRAPH},
    {"h4", PARAGRAPH}, {"h5", PARAGRAPH}, {"h6", PARAGRAPH},
    {"head", NOTHING}, {"header", LINE}, {"hr", RULE},
    {"iframe", NOTHING}, {"img", IMAGE}, {"legend", LINE},
    {"li", ITEM}, {"main", LINE}, {"menu", BULLETS}, {"nav", LINE},
    {"noembed", NOTHING},
    {"noframes", NOTHING}, {"object", NOTHING},
    {"ol", NUMBERS}, {"option", LINE}, {"p", PARAGRAPH}, {"pre", PRE},
    {"script", NOTHING}, {"section", LINE}, {"select", NOTHING},
    {"style", NOTHING}, {"summary", LINE}, {"svg", NOTHING},
    {"table", LINE}, {"td", CELL},
    {"template", NOTHING}, {"th", CELL}, {"title", NOTHING}, {"tr", ROW},
    {"ul", BULLETS}, {"video", NOTHING},
};

/* Largest number of an item that is taken from its list. */
#define NUMBER_MAX 1000000

/* What becomes of white space. */
typedef enum space_t {
    FLOWS,                      /* it is one space */
    LINES,                      /* likewise, but line ends are kept */
    SPACES                      /* all is kept */
} space_t;

/* An open element. */
typedef struct open_t {
    effect_t effect;
    int number;                 /* of the last item, for a list */
    int lines;                  /* of the writer, at the beginning of a cell */
    int goes_on;                /* of a row: the next cell is on its line */
    int block;                  /* it has lines of its own by its style */
    const char *href;           /* of a link */
    apr_size_t start;           /* offset of its text */
    unsigned unseen;            /* of the element around it */
    space_t pre;                /* likewise */
    int signs;                  /* likewise */
} open_t;

typedef struct writer_t {
    crm_buf_t *buf;
    apr_pool_t *pool;
    htmlParserCtxtPtr parser;
    open_t open[DEPTH];
    int depth;
    unsigned cut;               /* bits of CRM_MAIL_CUT_... */
    int hidden;                 /* number of open hidden elements */
    int show;                   /* what is hidden is shown, too */
    unsigned unseen;            /* CRM_MAIL_STYLE_TINY, CRM_MAIL_STYLE_UNSEEN: why
                                   the text of the innermost element is not
                                   shown */
    space_t pre;                /* white space of the innermost element */
    int signs;                  /* whether its font has signs for letters */
    int quotes, lists;          /* numbers of open elements of these kinds */
    int newlines;               /* line ends before the next text; 2: a blank
                                   line */
    int space;                  /* whether a space comes before the next text */
    int blanks;                 /* no-break spaces at the beginning of a line that
                                   shows nothing yet */
    int marked;                 /* whether the mark of an item waits for its text */
    int lines;                  /* number of line ends that were written */
    int begun;                  /* whether there is any text */
    int last_quotes;            /* QUOTES at the last text */
} writer_t;

static effect_t effect_of(const char *name)
{
    for (size_t i = 0; i < CRM_NELTS(elements); i++) {
        if (!strcasecmp(elements[i].name, name)) {
            return elements[i].effect;
        }
    }
    return INLINE;
}

static void want_newlines(writer_t *writer, int count)
{
    if (writer->blanks) {
        writer->blanks = 0;
        count = 2;              /* an empty line */
    }
    if (writer->newlines < count) {
        writer->newlines = count;
    }
    writer->space = 0;
    writer->marked = 0;
}

/* The same at the edge of a block: that with which an item begins is on the line of
 * the item's mark. */
static void want_edge(writer_t *writer, int count)
{
    if (!writer->marked) {
        want_newlines(writer, count);
    }
}

/* Begin a line with the marks of its quotes and the indent of its lists. */
static void begin_line(writer_t *writer)
{
    for (int i = 0; i < writer->quotes && i < 32; i++) {
        crm_buf_puts(writer->buf, "> ");
    }
    for (int i = 1; i < writer->lists && i < 32; i++) {
        crm_buf_puts(writer->buf, "  ");
    }
}

/* Write the line ends before the next text. A blank line between two quotes
 * has the marks that both have. Within <pre> there may be millions of them:
 * stop when the text is long enough. */
static void end_lines(writer_t *writer)
{
    int marks = writer->quotes < writer->last_quotes ? writer->quotes
                                                     : writer->last_quotes;

    writer->lines++;
    for (int i = 0; i < writer->newlines && writer->buf->len <= TEXT_BYTES;
         i++) {
        for (int q = 0; i && q < marks && q < 32; q++) {
            crm_buf_putc(writer->buf, '>');
        }
        crm_buf_putc(writer->buf, '\n');
    }
}

/* Write the line ends, the marks or the space before the next text. */
static void prepare(writer_t *writer)
{
    if (!writer->buf->len) {
        writer->newlines = 0;
        writer->space = 0;
        if (!writer->begun) {
            begin_line(writer);
        }
    }
    else if (writer->newlines) {
        end_lines(writer);
        begin_line(writer);
    }
    else if (writer->space) {
        crm_buf_putc(writer->buf, ' ');
    }
    writer->begun = 1;
    writer->last_quotes = writer->quotes;
    writer->newlines = 0;
    writer->space = 0;
    writer->marked = 0;
    for (; writer->blanks; writer->blanks--) {
        crm_buf_puts(writer->buf, NO_BREAK);
    }
}

/* Stop the parser if the text is long enough. */
static void check_room(writer_t *writer)
{
    if (writer->buf->len > TEXT_BYTES) {
        xmlStopParser(writer->parser);
    }
}

/* Return whether the LEN bytes of TEXT begin with a no-break space that begins a
 * line. */
static int is_blank(const writer_t *writer, const char *text, apr_size_t len)
{
    return !writer->pre && (writer->newlines || !writer->buf->len)
           && writer->blanks < BLANKS_MAX && len >= 2
           && !memcmp(text, NO_BREAK, 2);
}

/* Add TEXT, LEN bytes. Newer releases of libxml2 give any length of it at once. */
static void write_text(writer_t *writer, const char *text, apr_size_t len)
{
    for (apr_size_t i = 0; i < len && writer->buf->len <= TEXT_BYTES; i++) {
        char c = text[i];

        if (writer->pre && c == '\n') {
            want_newlines(writer, writer->newlines + 1);
        }
        else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
            if (writer->pre == SPACES) {
                prepare(writer);
                crm_buf_putc(writer->buf, ' ');
            }
            else if (!writer->newlines) {
                writer->space = 1;
            }
        }
        else if (is_blank(writer, text + i, len - i)) {
            writer->blanks++;
            i++;
        }
        else {
            prepare(writer);
            crm_buf_putc(writer->buf, c);
        }
    }
    check_room(writer);
}

/* ---- callbacks of the parser --------------------------------------------- */

static const char *attribute(const xmlChar **attributes, const char *name)
{
    for (; attributes && attributes[0]; attributes += 2) {
        if (!strcasecmp((const char *)attributes[0], name)) {
            return attributes[1] ? (const char *)attributes[1] : "";
        }
    }
    return NULL;
}

/* Return what the ATTRIBUTES of the element NAME say of its style. */
static unsigned style_of(const char *name, const xmlChar **attributes)
{
    const char *style = attribute(attributes, "style");
    unsigned bits = style ? crm_mail_style(style) : 0;

    if (!strcasecmp(name, "font")) {
        const char *face = attribute(attributes, "face");

        if (attribute(attributes, "size") && !(bits & CRM_MAIL_STYLE_TINY)) {
            bits |= CRM_MAIL_STYLE_SIZED;
        }
        if (face && !(bits & (CRM_MAIL_STYLE_SIGNS | CRM_MAIL_STYLE_LETTERS))) {
            bits |= crm_mail_is_signs(face) ? CRM_MAIL_STYLE_SIGNS
                    : CRM_MAIL_STYLE_LETTERS;
        }
    }
    return bits;
}

/* Apply the ATTRIBUTES of the element NAME to WRITER, whose text it changes,
 * and to OPEN. Return whether they hide the element. */
static int is_hidden(writer_t *writer, open_t *open, const char *name,
                     const xmlChar **attributes)
{
    unsigned bits = style_of(name, attributes);

    open->block = (bits & CRM_MAIL_STYLE_BLOCK)
                  && (open->effect == INLINE || open->effect == LINK
                      || open->effect == IMAGE);
    writer->pre = bits & CRM_MAIL_STYLE_SPACES ? SPACES
                  : bits & CRM_MAIL_STYLE_LINES ? LINES
                  : bits & CRM_MAIL_STYLE_FLOWS ? FLOWS : writer->pre;
    writer->signs = bits & CRM_MAIL_STYLE_SIGNS ? 1
                    : bits & CRM_MAIL_STYLE_LETTERS ? 0 : writer->signs;
    if (writer->show) {
        return 0;
    }
    writer->unseen |= bits & (CRM_MAIL_STYLE_TINY | CRM_MAIL_STYLE_UNSEEN);
    writer->unseen &= bits & CRM_MAIL_STYLE_SIZED ? ~CRM_MAIL_STYLE_TINY : ~0u;
    writer->unseen &= bits & CRM_MAIL_STYLE_SEEN ? ~CRM_MAIL_STYLE_UNSEEN
                                                 : ~0u;
    return (bits & CRM_MAIL_STYLE_HIDES) || attribute(attributes, "hidden");
}

/* Return whether ATTRIBUTES are those of a picture that cannot be seen. */
static int is_pixel(const xmlChar **attributes)
{
    const char *width = attribute(attributes, "width");
    const char *height = attribute(attributes, "height");

    return width && height && strspn(width, "01px") == strlen(width)
           && strspn(height, "01px") == strlen(height)
           && strlen(width) < 4 && strlen(height) < 4
           && width[0] && height[0] && width[1] != '0' && height[1] != '0'
           && width[1] != '1' && height[1] != '1';
}

/* Set *NUMBER_P to the number in the attribute NAME of ATTRIBUTES, less one, if
 * there is one. */
static void read_number(int *number_p, const xmlChar **attributes,
                        const char *name)
{
    const char *value = attribute(attributes, name);
    char *end;
    long number = value ? strtol(value, &end, 10) : 0;

    if (value && end != value && number >= -NUMBER_MAX && number <= NUMBER_MAX) {
        *number_p = (int)number - 1;
    }
}

/* Begin an item with ATTRIBUTES of the innermost list. */
static void begin_item(writer_t *writer, const xmlChar **attributes)
{
    int i = writer->depth - 1;

    want_newlines(writer, 1);
    while (i > 0 && writer->open[i].effect != NUMBERS
           && writer->open[i].effect != BULLETS) {
        i--;
    }
    prepare(writer);
    if (writer->open[i].effect == NUMBERS) {
        read_number(&writer->open[i].number, attributes, "value");
        crm_buf_printf(writer->buf, "%d.", ++writer->open[i].number);
    }
    else {
        crm_buf_putc(writer->buf, '-');
    }
    writer->space = writer->marked = 1;
}

/* Return the row that the innermost element is in directly, or NULL. */
static open_t *row_of(writer_t *writer)
{
    open_t *row = writer->depth ? &writer->open[writer->depth - 1] : NULL;

    return row && row->effect == ROW ? row : NULL;
}

/* Begin a cell: behind the one before it, if that is one line and short. Word makes
 * paragraphs of cells. */
static void begin_cell(writer_t *writer, open_t *open)
{
    open_t *row = row_of(writer);

    if (row && row->goes_on) {
        writer->newlines = 0;
        writer->marked = 1;
    }
    writer->space = !writer->newlines;
    open->start = writer->buf->len;
    open->lines = writer->lines + (writer->newlines && writer->buf->len);
}

/* End the cell OPEN. */
static void end_cell(writer_t *writer, const open_t *open)
{
    open_t *row = row_of(writer);
    apr_size_t len = writer->buf->len - open->start;

    if (row && len) {
        row->goes_on = writer->lines <= open->lines && len <= CELL_BYTES;
    }
    writer->marked = 0;
    writer->blanks = 0;
    writer->space = !writer->newlines;
}

/* Begin OPEN, a link with ATTRIBUTES. */
static void begin_link(writer_t *writer, open_t *open,
                       const xmlChar **attributes)
{
    const char *href = attribute(attributes, "href");

    open->href = href ? crm_text_trimmed(href, strlen(href), writer->pool)
                      : NULL;
    open->start = writer->buf->len;
}

/* Write what stands for the picture with ATTRIBUTES. */
static void write_picture(writer_t *writer, const xmlChar **attributes)
{
    const char *text = attribute(attributes, "alt");

    if (text && *text && !writer->unseen && !is_pixel(attributes)) {
        write_text(writer, text, strlen(text));
    }
}

static void begin_effect(writer_t *writer, open_t *open,
                         const xmlChar **attributes)
{
    if (open->block) {
        want_edge(writer, 1);
    }
    switch (open->effect) {
    case ROW:
    case LINE: want_edge(writer, 1); break;
    case PARAGRAPH: want_edge(writer, 2); break;
    case QUOTE: want_newlines(writer, 2); writer->quotes++; break;
    case BULLETS:
    case NUMBERS:
        read_number(&open->number, attributes, "start");
        want_newlines(writer, writer->lists++ ? 1 : 2);
        break;
    case ITEM: begin_item(writer, attributes); break;
    case CELL: begin_cell(writer, open); break;
    case PRE: want_newlines(writer, 2); break;
    case RULE:
        want_newlines(writer, 1);
        write_text(writer, "---", 3);
        want_newlines(writer, 1);
        break;
    case BREAK:
        writer->newlines = writer->newlines < 2 && !writer->blanks
                           ? writer->newlines + 1 : 2;
        writer->space = 0;
        writer->blanks = 0;
        break;
    case LINK: begin_link(writer, open, attributes); break;
    case IMAGE: write_picture(writer, attributes); break;
    default: break;
    }
}

static void begin_element(void *baton, const xmlChar *name,
                          const xmlChar **attributes)
{
    writer_t *writer = baton;
    open_t *open;

    if (writer->depth == DEPTH) {
        writer->cut |= CRM_MAIL_CUT_LEVELS;
        xmlStopParser(writer->parser);
        return;
    }
    open = &writer->open[writer->depth];
    memset(open, 0, sizeof(*open));
    open->effect = effect_of((const char *)name);
    open->unseen = writer->unseen;
    open->pre = writer->pre;
    open->signs = writer->signs;
    writer->pre = open->effect == PRE ? SPACES : writer->pre;
    if (is_hidden(writer, open, (const char *)name, attributes)) {
        open->effect = NOTHING;
        open->block = 0;
    }
    if (open->effect == NOTHING) {
        writer->hidden++;
    }
    else if (!writer->hidden) {
        begin_effect(writer, open, attributes);
    }
    else {
        open->effect = INLINE;
    }
    writer->depth++;
}

/* Add the URL of a link, unless its text contains it. */
static void end_link(writer_t *writer, const open_t *open)
{
    const char *href = open->href;
    apr_size_t len = writer->buf->len - open->start, bare_len;
    const char *shown = writer->buf->data + open->start;
    const char *bare = href;

    if (!href || (strncasecmp(href, "http", 4)
                  && strncasecmp(href, "mailto:", 7)) || !len) {
        return;
    }
    if (!strncasecmp(href, "mailto:", 7)) {
        bare = href + 7;
    }
    else if (strstr(href, "://")) {
        bare = strstr(href, "://") + 3;
    }
    bare_len = strcspn(bare, "?");
    bare_len -= bare_len && bare[bare_len - 1] == '/';
    if (!memmem(shown, len, bare, bare_len)) {
        int newlines = writer->newlines;

        writer->newlines = 0;
        writer->space = 1;
        write_text(writer, "<", 1);
        write_text(writer, href, strlen(href));
        write_text(writer, ">", 1);
        writer->newlines = newlines;
    }
}

static void end_element(void *baton, const xmlChar *name)
{
    writer_t *writer = baton;
    open_t *open;

    (void)name;
    if (!writer->depth) {
        return;
    }
    open = &writer->open[--writer->depth];
    writer->unseen = open->unseen;
    writer->pre = open->pre;
    writer->signs = open->signs;
    switch (open->effect) {
    case NOTHING: writer->hidden--; break;
    case ROW:
    case LINE: want_edge(writer, 1); break;
    case ITEM: want_newlines(writer, 1); break;
    case PARAGRAPH: want_edge(writer, 2); break;
    case QUOTE: want_newlines(writer, 2); writer->quotes--; break;
    case BULLETS:
    case NUMBERS:
        want_newlines(writer, --writer->lists ? 1 : 2);
        break;
    case CELL: end_cell(writer, open); break;
    case PRE: want_newlines(writer, 2); break;
    case LINK: end_link(writer, open); break;
    default: break;
    }
    if (open->block && !writer->hidden) {
        want_edge(writer, 1);
    }
}

static void characters(void *baton, const xmlChar *text, int len)
{
    writer_t *writer = baton;

    if (writer->hidden || writer->unseen) {
        return;
    }
    if (writer->signs) {
        crm_buf_t buf;

        crm_buf_init(&buf, (apr_size_t)len + 8, writer->pool);
        crm_mail_signs(&buf, (const char *)text, (apr_size_t)len);
        write_text(writer, buf.data, buf.len);
    }
    else {
        write_text(writer, (const char *)text, (apr_size_t)len);
    }
}

/* ---- the document -------------------------------------------------------- */

/* Scripts and styles, the parser's cdataBlock, are left out. */
static const htmlSAXHandler handler = {
    .startElement = begin_element, .endElement = end_element,
    .characters = characters, .ignorableWhitespace = characters,
};

/* Return the text of the LEN bytes of HTML, by crm_mail_html(), in POOL; SHOW:
 * also what is hidden. Set bits in *CUT_P. */
static const char *make_text(unsigned *cut_p, const char *html, apr_size_t len,
                             int show, apr_pool_t *pool)
{
    writer_t *writer = apr_pcalloc(pool, sizeof(*writer));
    crm_buf_t buf;

    crm_buf_init(&buf, len / 2 + 64, pool);
    writer->buf = &buf;
    writer->pool = pool;
    writer->show = show;
    crm_mail_html_parse(&writer->parser, &handler, writer, html, len);
    *cut_p |= writer->cut;
    crm_buf_putc(&buf, '\0');
    /* The parser may have produced characters such as &#0;, which are
     * removed. */
    return crm_mail_utf8(buf.data, buf.len - 1, "utf-8", pool);
}

const char *crm_mail_text(unsigned *cut_p, const char *html, apr_size_t len,
                          apr_pool_t *pool)
{
    const char *text;

    html = crm_mail_html(&len, cut_p, html, len, pool);
    text = make_text(cut_p, html, len, 0, pool);
    return crm_text_shows(text) ? text
           : make_text(cut_p, html, len, 1, pool);
}
