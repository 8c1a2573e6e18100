/* SPDX-License-Identifier: Apache-2.0 */
/* mail_style.c: what styles of HTML say of an element (contract 18.3)
 *
 * Mails hide preview texts, tracking pixels, and what is for some programs
 * only. Some have the line ends of a plain text. */
#include "mail_style.h"

#include <stdlib.h>
#include <string.h>

#include "apr_lib.h"

#include "crm_array.h"
#include "mail_sign.h"

/* Maximum bytes of a name or a value that are read. */
#define TOKEN 64

/* Quotes and brackets without an end that are looked for in a style. */
#define UNCLOSED 8

/* Lengths that move an element out of sight, in pixels. */
#define FAR 500

/* The properties that hide, and those of white space and the font's name. */
typedef enum property_t {
    DISPLAY, VISIBILITY, MSO_HIDE, OPACITY, OVERFLOW, OVERFLOW_Y, POSITION,
    MAX_HEIGHT, MAX_WIDTH, HEIGHT, WIDTH, FONT_SIZE, FONT, TEXT_INDENT, LEFT,
    TOP, RIGHT, MARGIN_LEFT, MARGIN_TOP, CLIP, CLIP_PATH, TRANSFORM,
    WHITE_SPACE, FONT_FAMILY, PROPERTIES
} property_t;

static const char *const names[PROPERTIES] = {
    "display", "visibility", "mso-hide", "opacity", "overflow", "overflow-y",
    "position", "max-height", "max-width", "height", "width", "font-size",
    "font", "text-indent", "left", "top", "right", "margin-left",
    "margin-top", "clip", "clip-path", "transform",
    "white-space", "font-family"
};

/* The declarations of an element: "" if a property is missing. */
typedef struct style_t {
    char values[PROPERTIES][TOKEN];
    char important[PROPERTIES];
} style_t;

/* ---- declarations -------------------------------------------------------- */

/* Copy TEXT, LEN bytes, to TOKEN without comments, in lower case, with single
 * spaces. */
static void copy(char *token, const char *text, size_t len)
{
    size_t out = 0;

    for (size_t i = 0; i < len && out < TOKEN - 1; i++) {
        const char *end;

        if (i + 1 < len && text[i] == '/' && text[i + 1] == '*') {
            end = memmem(text + i + 2, len - i - 2, "*/", 2);
            i = end ? (size_t)(end - text) + 1 : len;
        }
        else if (!apr_isspace(text[i])) {
            token[out++] = (char)apr_tolower(text[i]);
        }
        else if (out && token[out - 1] != ' ') {
            token[out++] = ' ';
        }
    }
    while (out && token[out - 1] == ' ') {
        out--;
    }
    token[out] = '\0';
}

/* Keep VALUE of the property NAME. A later declaration is stronger, but for an
 * important one. */
static void declare(style_t *style, const char *name, char *value)
{
    char *mark = strchr(value, '!');
    int important = mark && strstr(mark, "important");

    if (mark) {
        *mark = '\0';
        while (mark > value && mark[-1] == ' ') {
            *--mark = '\0';
        }
    }
    for (size_t i = 0; *value && i < PROPERTIES; i++) {
        if (!strcmp(names[i], name)
            && (important || !style->important[i])) {
            strcpy(style->values[i], value);
            style->important[i] = (char)important;
        }
    }
}

/* Return the length of the declaration at TEXT: up to a semicolon that is in no
 * quotes, brackets and comments. If these are not closed, up to any. To see that
 * costs reading all of TEXT, so *UNCLOSED_P counts how often it was seen, and
 * beyond UNCLOSED any semicolon ends a declaration. */
static size_t declaration(const char *text, int *unclosed_p)
{
    char quote = '\0';
    int brackets = 0;
    size_t i;

    if (*unclosed_p > UNCLOSED) {
        return strcspn(text, ";");
    }
    for (i = 0; text[i]; i++) {
        if (quote) {
            quote = text[i] == quote ? '\0' : quote;
        }
        else if (text[i] == '"' || text[i] == '\'') {
            quote = text[i];
        }
        else if (text[i] == '/' && text[i + 1] == '*') {
            const char *end = strstr(text + i + 2, "*/");

            if (!end) {
                return i + strlen(text + i);
            }
            i = (size_t)(end - text) + 1;
        }
        else if (text[i] == ';' && brackets <= 0) {
            return i;
        }
        else {
            brackets += (text[i] == '(') - (text[i] == ')');
        }
    }
    if (quote || brackets > 0) {
        ++*unclosed_p;
        return strcspn(text, ";");
    }
    return i;
}

static void read_style(style_t *style, const char *text)
{
    char name[TOKEN], value[TOKEN];
    int unclosed = 0;

    memset(style, 0, sizeof(*style));
    while (*text) {
        size_t len = declaration(text, &unclosed);
        const char *colon = memchr(text, ':', len);

        if (colon) {
            copy(name, text, (size_t)(colon - text));
            copy(value, colon + 1, len - (size_t)(colon + 1 - text));
            declare(style, name, value);
        }
        text += len;
        text += *text == ';';
    }
}

/* ---- values -------------------------------------------------------------- */

/* Set *NUMBER_P to the number that TEXT begins with, in pixels or its own unit.
 * Return 0 if it begins with none. */
static int number(double *number_p, const char *text)
{
    char *end;

    if (!apr_isdigit(*text) && !strchr("+-.", *text)) {
        return 0;
    }
    *number_p = strtod(text, &end);
    if (!strncmp(end, "em", 2) || !strncmp(end, "rem", 3)) {
        *number_p *= 16;
    }
    return end != text;
}

/* Return whether VALUE is at most MAX. */
static int at_most(const char *value, double max)
{
    double got;

    return *value && number(&got, value) && got <= max;
}

static int is(const style_t *style, property_t property, const char *value)
{
    return !strcmp(style->values[property], value);
}

/* Return whether STYLE cuts off what is larger than its box. */
static int cuts(const style_t *style)
{
    return is(style, OVERFLOW, "hidden") || is(style, OVERFLOW, "clip")
           || is(style, OVERFLOW_Y, "hidden");
}

/* Return whether STYLE has a box without a size. A maximum of 0 hides as well
 * where nothing cuts, but for boxes that are meant to lie over others. */
static int is_empty_box(const style_t *style)
{
    if (at_most(style->values[MAX_HEIGHT], 0)) {
        return cuts(style) || !*style->values[POSITION];
    }
    return cuts(style)
           && (at_most(style->values[HEIGHT], 0)
               || at_most(style->values[WIDTH], 0)
               || (at_most(style->values[MAX_WIDTH], 0)
                   && !*style->values[WIDTH]));
}

/* Return whether STYLE moves its box out of sight, or shows nothing of it. */
static int is_away(const style_t *style)
{
    static const property_t offsets[] = {
        TEXT_INDENT, LEFT, TOP, RIGHT, MARGIN_LEFT, MARGIN_TOP
    };
    const char *clip = style->values[CLIP];

    for (size_t i = 0; i < CRM_NELTS(offsets); i++) {
        if (at_most(style->values[offsets[i]], -FAR)) {
            return 1;
        }
    }
    if (!strncmp(clip, "rect(", 5)
        && clip[5 + strspn(clip + 5, "01px, ")] == ')') {
        return 1;
    }
    return !strncmp(style->values[CLIP_PATH], "inset(50%", 9)
           || !strncmp(style->values[CLIP_PATH], "inset(100%", 10)
           || is(style, TRANSFORM, "scale(0)");
}

static int is_hidden(const style_t *style)
{
    return is(style, DISPLAY, "none") || is(style, MSO_HIDE, "all")
           || is(style, VISIBILITY, "collapse")
           || at_most(style->values[OPACITY], 0) || is_empty_box(style)
           || is_away(style);
}

/* Return the size in the value of the property font, or of font-size. */
static const char *font_size(const style_t *style)
{
    const char *at = style->values[FONT_SIZE];

    if (!*at) {
        for (at = style->values[FONT]; *at; at += *at == ' ') {
            size_t len = strcspn(at, " ");

            if (apr_isdigit(*at) && len
                && (strchr("%mtxc/", at[len - 1]) || memchr(at, '/', len)
                    || (len == 1 && *at == '0'))) {
                break;          /* a weight has no unit */
            }
            at += len;
        }
    }
    return at;
}

/* Return what the size of the font in STYLE says. A part of no size is none. */
static unsigned size_bits(const style_t *style)
{
    const char *size = font_size(style);
    double got;

    if (!*size || !number(&got, size)) {
        return *size && apr_isalpha(*size) && strcmp(size, "inherit")
               && strcmp(size, "smaller") && strcmp(size, "larger")
               ? CRM_MAIL_STYLE_SIZED : 0;
    }
    if (got <= 1 && (got <= 0 || strstr(size, "px") || strstr(size, "pt"))) {
        return CRM_MAIL_STYLE_TINY;
    }
    return strchr(size, '%') || (strstr(size, "em") && !strstr(size, "rem"))
           ? 0 : CRM_MAIL_STYLE_SIZED;
}

/* Return what STYLE says of white space. */
static unsigned space_bits(const style_t *style)
{
    static const struct {
        const char *value;
        unsigned bits;
    } values[] = {
        {"pre", CRM_MAIL_STYLE_SPACES}, {"pre-wrap", CRM_MAIL_STYLE_SPACES},
        {"break-spaces", CRM_MAIL_STYLE_SPACES},
        {"pre-line", CRM_MAIL_STYLE_LINES}, {"normal", CRM_MAIL_STYLE_FLOWS},
        {"nowrap", CRM_MAIL_STYLE_FLOWS}, {"initial", CRM_MAIL_STYLE_FLOWS}
    };

    for (size_t i = 0; i < CRM_NELTS(values); i++) {
        if (is(style, WHITE_SPACE, values[i].value)) {
            return values[i].bits;
        }
    }
    return 0;
}

/* Return what STYLE says of the font's name, which the property font has, too. */
static unsigned font_bits(const style_t *style)
{
    const char *family = style->values[FONT_FAMILY];

    if (!*family || !strcmp(family, "inherit")) {
        return *style->values[FONT] ? CRM_MAIL_STYLE_LETTERS : 0;
    }
    return crm_mail_is_signs(family) ? CRM_MAIL_STYLE_SIGNS
           : CRM_MAIL_STYLE_LETTERS;
}

/* Return whether STYLE makes a block of its element (CSS Display 3, 2). */
static int is_block(const style_t *style)
{
    static const char *const values[] = {
        "block", "flex", "flow-root", "grid", "list-item", "table"
    };

    return CRM_IS_ONE_OF(style->values[DISPLAY], values);
}

unsigned crm_mail_style(const char *text)
{
    style_t style;
    unsigned bits;

    read_style(&style, text);
    bits = is_hidden(&style) ? CRM_MAIL_STYLE_HIDES : 0;
    bits |= size_bits(&style) | space_bits(&style) | font_bits(&style);
    bits |= is_block(&style) ? CRM_MAIL_STYLE_BLOCK : 0;
    if (is(&style, VISIBILITY, "hidden")) {
        bits |= CRM_MAIL_STYLE_UNSEEN;
    }
    else if (is(&style, VISIBILITY, "visible")) {
        bits |= CRM_MAIL_STYLE_SEEN;
    }
    return bits;
}
