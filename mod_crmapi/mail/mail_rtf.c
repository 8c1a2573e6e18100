/* SPDX-License-Identifier: Apache-2.0 */
/* mail_rtf.c: the text of RTF, in which Outlook keeps mails (MS-OXRTFCP, Rich
 * Text Format 1.9.1) */
#include "mail_rtf.h"

#include <stdlib.h>
#include <string.h>

#include <unicode/utf8.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_array.h"
#include "crm_buf.h"
#include "mail_charset.h"

/* ---- compression --------------------------------------------------------- */

#define HEAD_BYTES 16
#define WINDOW 4096

/* What the window has at the beginning (MS-OXRTFCP, 2.1.2.1). */
static const char first[] =
    "{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman "
    "\\fswiss \\fmodern \\fscript \\fdecor MS Sans SerifSymbolArialTimes New "
    "RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par "
    "\\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx";

/* Add the LEN BYTES to BUF, unpacked: a byte says of the next eight items whether
 * they are a byte, or a place in the window and a length. */
static void unpack(crm_buf_t *buf, const unsigned char *bytes, apr_size_t len)
{
    char window[WINDOW] = "";
    apr_size_t at = sizeof(first) - 1, i = 0;
    unsigned flags = 0;

    memcpy(window, first, sizeof(first) - 1);
    for (int item = 0; i < len && buf->len < CRM_MAIL_RTF_BYTES; item++) {
        apr_size_t from = at, count = 1;

        if (item % 8 == 0) {
            flags = bytes[i++];
        }
        if (flags >> item % 8 & 1) {
            if (i + 1 >= len) {
                return;
            }
            from = (apr_size_t)bytes[i] << 4 | bytes[i + 1] >> 4;
            count = (bytes[i + 1] & 15u) + 2;
            i += 2;
            if (from == at % WINDOW) {
                return;         /* the end */
            }
        }
        else if (i < len) {
            window[at % WINDOW] = (char)bytes[i++];
        }
        else {
            return;
        }
        for (; count; count--) {
            window[at % WINDOW] = window[from++ % WINDOW];
            crm_buf_putc(buf, window[at++ % WINDOW]);
        }
    }
}

const char *crm_mail_rtf_unpack(apr_size_t *len_p, const char *bytes,
                                apr_size_t len, apr_pool_t *pool)
{
    crm_buf_t buf;

    *len_p = 0;
    if (len < HEAD_BYTES) {
        return "";
    }
    crm_buf_init(&buf, 4096, pool);
    len -= HEAD_BYTES;
    if (!memcmp(bytes + 8, "LZFu", 4)) {
        unpack(&buf, (const unsigned char *)bytes + HEAD_BYTES, len);
    }
    else if (!memcmp(bytes + 8, "MELA", 4)) {
        crm_buf_add(&buf, bytes + HEAD_BYTES,
                    len < CRM_MAIL_RTF_BYTES ? len : CRM_MAIL_RTF_BYTES);
    }
    *len_p = buf.len;
    crm_buf_putc(&buf, '\0');
    return buf.data;
}

/* ---- text ---------------------------------------------------------------- */

#define DEPTH 100
#define FONTS 256
#define WORD_CHARS 32

/* What a group has from those around it. */
typedef struct group_t {
    int skipped;                /* it shows nothing */
    int hidden;                 /* its text is */
    int fonts;                  /* it is the table of fonts */
    int font;
    int after;                  /* characters that stand for one of Unicode */
} group_t;

typedef struct reader_t {
    const char *at, *end;
    crm_buf_t *text;
    crm_buf_t bytes;            /* of the text, in PAGE */
    int page;                   /* the code page of BYTES */
    const char *charset;        /* its label; NULL: it is not known */
    crm_mail_guess_t guess;     /* of the bytes in a code page that is not known */
    apr_pool_t *scratch;        /* there may be many texts of a few bytes */
    int default_page, default_font;
    int pages[FONTS];           /* of fonts; 0: the default */
    group_t groups[DEPTH];
    int depth;
    int over;                   /* number of open groups beyond DEPTH */
    int left;                   /* characters to be skipped behind one of Unicode */
    unsigned high;              /* the first half of a surrogate pair */
} reader_t;

/* The character sets of fonts, and their code pages. */
static const struct {
    int set, page;
} sets[] = {
    {77, 10000}, {128, 932}, {129, 949}, {130, 1361}, {134, 936}, {136, 950},
    {161, 1253}, {162, 1254}, {163, 1258}, {177, 1255}, {178, 1256},
    {186, 1257}, {204, 1251}, {222, 874}, {238, 1250}
};

/* Groups that show nothing. Those of programs begin with "\*". */
static const char *const unseen[] = {
    "colortbl", "stylesheet", "info", "pict", "fldinst", "header", "headerl",
    "headerr", "headerf", "footer", "footerl", "footerr", "footerf", "objdata",
    "filetbl", "listtable", "listoverridetable", "revtbl", "rsidtbl",
    "generator", "themedata", "xmlnstbl", "nonshppict"
};

/* Words that stand for a text. */
static const struct {
    const char *word, *text;
} texts[] = {
    {"par", "\n"}, {"line", "\n"}, {"row", "\n"}, {"sect", "\n"},
    {"page", "\n"}, {"tab", "\t"}, {"cell", " "}, {"nestcell", " "},
    {"nestrow", "\n"}, {"emdash", "—"}, {"endash", "–"}, {"lquote", "‘"},
    {"rquote", "’"}, {"ldblquote", "“"}, {"rdblquote", "”"}, {"bullet", "•"},
    {"emspace", " "}, {"enspace", " "}
};

static group_t *group(reader_t *reader)
{
    return &reader->groups[reader->depth];
}

/* Set the code page of the bytes to come. */
static void begin_page(reader_t *reader, int page)
{
    const char *label = apr_psprintf(reader->bytes.pool, "cp%d", page);

    reader->page = page;
    reader->charset = crm_mail_label(label).coding == CRM_MAIL_UNKNOWN
                      ? NULL : label;
}

/* Write the bytes that have no text yet. */
static void flush(reader_t *reader)
{
    crm_buf_t *bytes = &reader->bytes;
    apr_size_t i = 0;

    while (i < bytes->len && !(bytes->data[i] & 0x80)) {
        i++;
    }
    if (i == bytes->len) {
        crm_buf_add(reader->text, bytes->data, bytes->len);
    }
    else {
        crm_buf_puts(reader->text, crm_mail_utf8_or(
                         bytes->data, bytes->len,
                         reader->charset, NULL, &reader->guess,
                         reader->scratch));
        apr_pool_clear(reader->scratch);
    }
    bytes->len = 0;
}

/* Return whether a character is shown now; it may only stand for one of Unicode. */
static int is_shown(reader_t *reader)
{
    if (group(reader)->skipped || group(reader)->hidden
        || group(reader)->fonts) {
        return 0;
    }
    if (reader->left) {
        reader->left--;
        return 0;
    }
    return 1;
}

/* Add the byte C of the text, in the code page of its font. */
static void add_byte(reader_t *reader, char c)
{
    int font = group(reader)->font;
    int page = font >= 0 && font < FONTS ? reader->pages[font] : 0;

    page = page ? page : reader->default_page;
    if (!is_shown(reader)) {
        return;
    }
    if (page != reader->page) {
        flush(reader);
        begin_page(reader, page);
    }
    crm_buf_putc(&reader->bytes, c);
}

/* Add TEXT, UTF-8. */
static void add_text(reader_t *reader, const char *text)
{
    if (is_shown(reader)) {
        flush(reader);
        crm_buf_puts(reader->text, text);
    }
}

/* ---- control words, with the number behind them; HAS: there is one -------- */

typedef void control_fn(reader_t *reader, long number, int has);

static void begin_fonts(reader_t *reader, long number, int has)
{
    (void)number;
    (void)has;
    group(reader)->fonts = 1;
}

static void hide(reader_t *reader, long number, int has)
{
    group(reader)->hidden = !has || number;
}

static void set_plain(reader_t *reader, long number, int has)
{
    (void)number;
    (void)has;
    group(reader)->font = reader->default_font;
    group(reader)->hidden = 0;
}

static void set_default_font(reader_t *reader, long number, int has)
{
    (void)has;
    reader->default_font = group(reader)->font = (int)number;
}

static void set_font(reader_t *reader, long number, int has)
{
    group(reader)->font = has ? (int)number : reader->default_font;
}

/* Set the code page of the font that the table of fonts defines. */
static void set_page(reader_t *reader, long number, int has)
{
    int font = group(reader)->font;

    (void)has;
    if (group(reader)->fonts && font >= 0 && font < FONTS) {
        reader->pages[font] = (int)number;
    }
}

static void set_charset(reader_t *reader, long number, int has)
{
    for (size_t i = 0; i < CRM_NELTS(sets); i++) {
        if (sets[i].set == number) {
            set_page(reader, sets[i].page, has);
        }
    }
}

static void set_default_page(reader_t *reader, long number, int has)
{
    (void)has;
    if (number > 0 && number < 65536) {
        reader->default_page = (int)number;
    }
}

/* Set how many characters stand for one of Unicode. */
static void set_after(reader_t *reader, long number, int has)
{
    (void)has;
    group(reader)->after = number >= 0 && number < 10 ? (int)number : 1;
}

/* Add the character NUMBER; those beyond 0xffff come in two halves. */
static void add_code(reader_t *reader, long number, int has)
{
    unsigned value = (unsigned)(number & 0xffff);
    char text[5] = "";
    int len = 0;

    (void)has;
    reader->left = 0;
    if (value >= 0xd800 && value < 0xdc00) {
        reader->high = value;
    }
    else {
        if (value >= 0xdc00 && value < 0xe000) {
            value = reader->high ? 0x10000 + ((reader->high - 0xd800) << 10)
                                   + (value - 0xdc00) : 0xfffd;
        }
        reader->high = 0;
        U8_APPEND_UNSAFE(text, len, value);
        add_text(reader, text);
    }
    reader->left = group(reader)->after;
}

static void skip_bytes(reader_t *reader, long number, int has)
{
    (void)has;
    if (number > 0) {
        reader->at += number < reader->end - reader->at ? number
                      : reader->end - reader->at;
    }
}

static const struct {
    const char *word;
    control_fn *apply;
} controls[] = {
    {"fonttbl", begin_fonts}, {"v", hide}, {"plain", set_plain},
    {"deff", set_default_font}, {"f", set_font}, {"fcharset", set_charset},
    {"cpg", set_page}, {"ansicpg", set_default_page}, {"uc", set_after},
    {"u", add_code}, {"bin", skip_bytes}
};

/* Apply the control WORD. */
static void apply(reader_t *reader, const char *word, long number, int has)
{
    if (CRM_IS_ONE_OF(word, unseen)) {
        group(reader)->skipped = 1;
    }
    for (size_t i = 0; i < CRM_NELTS(texts); i++) {
        if (!strcmp(word, texts[i].word)) {
            add_text(reader, texts[i].text);
        }
    }
    for (size_t i = 0; i < CRM_NELTS(controls); i++) {
        if (!strcmp(word, controls[i].word)) {
            controls[i].apply(reader, number, has);
        }
    }
}

/* Read the control word at READER, behind its backslash. */
static void read_word(reader_t *reader)
{
    char word[WORD_CHARS];
    apr_size_t len = 0;
    long number = 0;
    int has, minus;

    while (reader->at < reader->end && apr_isalpha(*reader->at)) {
        if (len + 1 < sizeof(word)) {
            word[len++] = *reader->at;
        }
        reader->at++;
    }
    word[len] = '\0';
    minus = reader->at < reader->end && *reader->at == '-';
    reader->at += minus;
    has = reader->at < reader->end && apr_isdigit(*reader->at);
    for (; reader->at < reader->end && apr_isdigit(*reader->at); reader->at++) {
        number = number < 100000000 ? number * 10 + (*reader->at - '0')
                                    : number;
    }
    reader->at += reader->at < reader->end && *reader->at == ' ';
    apply(reader, word, minus ? -number : number, has);
}

/* Read the byte in hexadecimal digits at READER, behind "\'". */
static void read_byte(reader_t *reader)
{
    char digits[3] = "";

    if (reader->end - reader->at >= 2 && apr_isxdigit(reader->at[0])
        && apr_isxdigit(reader->at[1])) {
        memcpy(digits, reader->at, 2);
        reader->at += 2;
        add_byte(reader, (char)strtol(digits, NULL, 16));
    }
}

/* Read what stands at READER, behind a backslash. */
static void read_control(reader_t *reader)
{
    char c = reader->at < reader->end ? *reader->at : '\0';

    if (apr_isalpha(c)) {
        read_word(reader);
        return;
    }
    reader->at += reader->at < reader->end;
    switch (c) {
    case '\'': read_byte(reader); break;
    case '*': group(reader)->skipped = 1; break;
    case '\\': case '{': case '}': add_byte(reader, c); break;
    case '~': add_text(reader, "\xc2\xa0"); break;
    case '_': add_text(reader, "-"); break;
    case '\n': case '\r': add_text(reader, "\n"); break;
    default: break;
    }
}

static void open_group(reader_t *reader)
{
    if (reader->depth + 1 == DEPTH) {
        reader->over++;
        return;
    }
    reader->groups[reader->depth + 1] = *group(reader);
    reader->depth++;
}

static void close_group(reader_t *reader)
{
    reader->left = 0;
    if (reader->over) {
        reader->over--;
    }
    else if (reader->depth) {
        reader->depth--;
    }
}

const char *crm_mail_rtf(const char *rtf, apr_size_t len, apr_pool_t *pool)
{
    reader_t *reader = apr_pcalloc(pool, sizeof(*reader));
    crm_buf_t text;

    if (len < 5 || memcmp(rtf, "{\\rtf", 5)) {
        return "";
    }
    crm_buf_init(&text, len / 4 + 64, pool);
    crm_buf_init(&reader->bytes, 256, pool);
    apr_pool_create(&reader->scratch, pool);
    reader->text = &text;
    reader->at = rtf;
    reader->end = rtf + (len < CRM_MAIL_RTF_BYTES ? len : CRM_MAIL_RTF_BYTES);
    reader->default_page = 1252;
    reader->groups[0] = (group_t){.after = 1};
    while (reader->at < reader->end) {
        char c = *reader->at++;

        switch (c) {
        case '{': open_group(reader); break;
        case '}': close_group(reader); break;
        case '\\': read_control(reader); break;
        case '\r': case '\n': case '\0': break;
        default: add_byte(reader, c); break;
        }
    }
    flush(reader);
    apr_pool_destroy(reader->scratch);
    crm_buf_putc(&text, '\0');
    return crm_mail_utf8(text.data, text.len - 1, "utf-8", pool);
}
