/* SPDX-License-Identifier: Apache-2.0 */
/* crm_display_check.h: whether HTML of mail_display.h is safe, by rules of its
 * own: a strict grammar, and what must never be in it */
#ifndef CRM_DISPLAY_CHECK_H
#define CRM_DISPLAY_CHECK_H

#include <string.h>
#include <strings.h>

#include "mail_display.h"

#define DISPLAY_DEPTH 512
#define DISPLAY_VALUE 65536

/* Elements that run, load, send, or whose content is read by other rules. */
static const char *const display_bad[] = {
    "applet", "area", "audio", "base", "body", "button", "canvas", "datalist",
    "details", "dialog", "embed", "fieldset", "form", "frame", "frameset",
    "head", "html", "iframe", "input", "isindex", "keygen", "link", "listing",
    "map", "marquee", "math", "meta", "noembed", "noframes", "noscript",
    "object", "option", "param", "plaintext", "portal", "script", "select",
    "slot", "source", "style", "svg", "template", "textarea", "title", "track",
    "video", "xml", "xmp"
};

/* What no style may have. */
static const char *const display_words[] = {
    "javascript:", "vbscript:", "data:", "url(", "expression", "@import",
    "behavior", "-moz-binding", "position"
};

/* The attributes that there may be. */
static const char *const display_names[] = {
    "align", "alt", "bgcolor", "border", "cellpadding", "cellspacing", "color",
    "colspan", "dir", "face", "height", "href", "lang", "nowrap", "rel",
    "rowspan", "size", "span", "src", "start", "style", "target", "title",
    "valign", "width"
};

static int display_is_in(const char *const *list, size_t count,
                         const char *text, size_t len)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(list[i]) == len && !strncasecmp(list[i], text, len)) {
            return 1;
        }
    }
    return 0;
}

#define DISPLAY_IN(list, text, len) \
    display_is_in(list, sizeof(list) / sizeof(*(list)), text, len)

/* Return the fault of the attribute NAME with the LEN bytes of VALUE, or NULL. */
static const char *display_value(const char *name, size_t name_len,
                                 const char *value, size_t len)
{
    int is_style = name_len == 5 && !strncmp(name, "style", 5);
    char copy[DISPLAY_VALUE];

    if (!DISPLAY_IN(display_names, name, name_len)) {
        return "an attribute";
    }
    if (len >= sizeof(copy)) {
        return "a long value";
    }
    memcpy(copy, value, len);
    copy[len] = '\0';
    for (size_t i = 0; is_style && i < sizeof(display_words)
         / sizeof(*display_words); i++) {
        if (strcasestr(copy, display_words[i])) {
            return display_words[i];
        }
    }
    if (name_len == 4 && !strncmp(name, "href", 4)
        && strncasecmp(copy, "http://", 7) && strncasecmp(copy, "https://", 8)
        && strncasecmp(copy, "mailto:", 7) && strncasecmp(copy, "tel:", 4)) {
        return "a scheme of a link";
    }
    if (name_len == 3 && !strncmp(name, "src", 3)
        && strncmp(copy, "/api/v1/attachments/", 20)
        && strncasecmp(copy, "http://", 7)
        && strncasecmp(copy, "https://", 8)) {
        return "a scheme of an image";
    }
    if (is_style && strpbrk(copy, "\\/@*<>{}'\"&")) {
        return "a character of a style";
    }
    return NULL;
}

/* Move *AT_P past the attributes of a tag and its '>'. Return its fault. REMOTE:
 * it may load remote content. */
static const char *display_attributes(const char **at_p, int remote)
{
    const char *at = *at_p, *fault;

    while (*at == ' ') {
        const char *name = ++at, *value;
        size_t len = strspn(at, "abcdefghijklmnopqrstuvwxyz");

        at += len;
        if (strncmp(at, "=\"", 2) != 0) {
            return "no value in quotes";
        }
        value = at + 2;
        at = value + strcspn(value, "\"<>`'");
        if (*at != '"') {
            return "a character of a value";
        }
        fault = display_value(name, len, value, (size_t)(at - value));
        if (fault) {
            return fault;
        }
        if (len == 3 && !strncmp(name, "src", 3) && !remote
            && *value != '/') {
            return "remote content";
        }
        at++;
    }
    if (*at != '>') {
        return "no end of a tag";
    }
    *at_p = at + 1;
    return NULL;
}

/* Return what is wrong with HTML, or NULL. It has no mark of mail_display.h; REMOTE:
 * it may load remote content. */
static const char *display_fault(const char *html, int remote)
{
    struct { const char *name; size_t len; } open[DISPLAY_DEPTH];
    int depth = 0;

    for (const char *at = html; *at;) {
        if (*at != '<') {
            if (*at == '>' || ((unsigned char)*at < ' ' && *at != '\n'
                               && *at != '\t')) {
                return "a character of a text";
            }
            at++;
            continue;
        }
        int end = at[1] == '/';
        const char *name = at + 1 + end, *fault;
        size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz123456");

        at = name + len;
        if (!len || DISPLAY_IN(display_bad, name, len)) {
            return "an element";
        }
        if (end) {
            if (*at != '>' || !depth || open[depth - 1].len != len
                || strncmp(open[depth - 1].name, name, len) != 0) {
                return "an end tag";
            }
            depth--;
            at++;
            continue;
        }
        fault = display_attributes(&at, remote);
        if (fault) {
            return fault;
        }
        if (!DISPLAY_IN(((const char *const[]){"br", "col", "hr", "img",
                                               "wbr"}), name, len)) {
            if (depth == DISPLAY_DEPTH) {
                return "too many levels";
            }
            open[depth].name = name;
            open[depth++].len = len;
        }
    }
    return depth ? "an open element" : NULL;
}

/* Remove from TEXT what is between two MARKs, with them; WHOLE: only these. */
static void display_cut(char *text, char mark, int whole)
{
    char *out = text;
    int inside = 0;

    for (const char *c = text; *c; c++) {
        if (*c == mark) {
            inside = !inside;
        }
        else if (!inside || whole) {
            *out++ = *c;
        }
    }
    *out = '\0';
}

#endif /* CRM_DISPLAY_CHECK_H */
