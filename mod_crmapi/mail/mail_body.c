/* SPDX-License-Identifier: Apache-2.0 */
/* mail_body.c: a mail's parts, and the text that they have */
#include "mail_body.h"

#include <string.h>
#include <strings.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_bare.h"
#include "mail_armor.h"
#include "mail_attach.h"
#include "mail_calendar.h"
#include "mail_charset.h"
#include "mail_display.h"
#include "mail_enriched.h"
#include "mail_flowed.h"
#include "mail_html.h"
#include "mail_label.h"
#include "mail_read.h"
#include "mail_rtf.h"
#include "mail_text.h"

/* The properties of a part with its text. */
#define TEXT "crm-text"
#define SOURCE "crm-source"     /* as it came, in UTF-8 */

/* ---- text ---------------------------------------------------------------- */

/* Return HTML (UTF-8), as far as the mail has not too much of it. */
static const char *limit_html(crm_mail_walk_t *walk, const char *html)
{
    apr_size_t len = strlen(html), left = CRM_MAIL_HTML_BYTES - walk->html;

    if (len > left) {
        walk->mail->cut |= CRM_MAIL_CUT_HTML;
        for (len = left; len && (html[len] & 0xc0) == 0x80; len--) {
        }
    }
    walk->html += len;
    return apr_pstrmemdup(walk->pool, html, len);
}

/* Return the text of PART, which is of type text, as it is: UTF-8. */
static const char *read_source(crm_mail_walk_t *walk, GMimePart *part)
{
    GMimeObject *object = GMIME_OBJECT(part);
    const char *charset = crm_mail_type_parameter(object, "charset");
    int html = crm_mail_type_is(object, "text", "html");
    apr_size_t len;
    const char *bytes = crm_mail_bytes(&len, part, walk->pool);
    const char *text;

    if (!charset && html) {
        charset = crm_mail_label_in_html(bytes, len, walk->pool);
    }
    text = crm_mail_source(walk->mail, html ? CRM_MAIL_CUT_HTML
                           : CRM_MAIL_CUT_TEXT, bytes, len, charset,
                           walk->pool);
    return html ? limit_html(walk, text) : text;
}

/* Return the text of PART, which is of type text, with the property NAME in which
 * it is kept; READ reads it, once. */
static const char *once(crm_mail_walk_t *walk, GMimePart *part,
                        const char *name,
                        const char *(*read)(crm_mail_walk_t *walk,
                                            GMimePart *part))
{
    char *text = g_object_get_data(G_OBJECT(part), name);

    if (!text) {
        text = apr_pstrdup(walk->pool, read(walk, part));
        g_object_set_data(G_OBJECT(part), name, text);
    }
    return text;
}

static const char *source_of(crm_mail_walk_t *walk, GMimePart *part)
{
    return once(walk, part, SOURCE, read_source);
}

/* Return whether TEXT is a document of HTML: some programs declare one as
 * text/plain. */
static int is_document(const char *text)
{
    static const char *const begins[] = {"<!doctype html", "<html"};

    text += strspn(text, " \t\r\n");
    for (size_t i = 0; i < CRM_NELTS(begins); i++) {
        size_t len = strlen(begins[i]);

        if (!strncasecmp(text, begins[i], len) && text[len]
            && strchr(" \t\r\n>", text[len])) {
            return strcasestr(text, "</html>") != NULL;
        }
    }
    return 0;
}

/* Read the text of PART as it is shown. */
static const char *read_text(crm_mail_walk_t *walk, GMimePart *part)
{
    GMimeObject *object = GMIME_OBJECT(part);
    const char *format = crm_mail_type_parameter(object, "format");
    const char *delsp = crm_mail_type_parameter(object, "delsp");
    const char *text = source_of(walk, part);

    if (crm_mail_type_is(object, "text", "html")) {
        return crm_mail_text(&walk->mail->cut, text, strlen(text),
                             walk->pool);
    }
    if (is_document(text)) {
        const char *html = limit_html(walk, text);

        html = crm_mail_text(&walk->mail->cut, html, strlen(html), walk->pool);
        return crm_text_shows(html) ? html : text;
    }
    if (format && !strcasecmp(format, "flowed")) {
        text = crm_mail_unflow(text, delsp && !strcasecmp(delsp, "yes"),
                               walk->pool);
    }
    return crm_mail_unarmor(text, walk->pool);
}

static const char *text_of(crm_mail_walk_t *walk, GMimePart *part)
{
    return once(walk, part, TEXT, read_text);
}

/* Add PART to what a mail with HTML shows. */
static void add_display(crm_mail_walk_t *walk, GMimePart *part)
{
    const char *text = source_of(walk, part);

    if (!walk->options->keep_original) {
        return;
    }
    if (crm_mail_type_is(GMIME_OBJECT(part), "text", "html")) {
        walk->shows_html = 1;
        crm_mail_display(&walk->display, &walk->mail->cut, text, strlen(text),
                         walk->pool);
    }
    else {
        crm_mail_display_text(&walk->display, &walk->mail->cut,
                              text_of(walk, part));
    }
}

/* Add the text of PART to the mail's text, if it shows anything. */
static void add_text(crm_mail_walk_t *walk, GMimePart *part)
{
    const char *text = text_of(walk, part);

    if (!crm_text_shows(text)) {
        return;
    }
    if (crm_mail_type_is(GMIME_OBJECT(part), "text", "html")) {
        walk->mail->html = 1;
    }
    if (walk->text.len && walk->text.data[walk->text.len - 1] != '\n') {
        crm_buf_putc(&walk->text, '\n');
    }
    crm_buf_puts(&walk->text, text);
}

/* Return the words of PART, without the URLs of links. */
static const char *words_of(crm_mail_walk_t *walk, GMimePart *part)
{
    char *made = apr_pstrdup(walk->pool, text_of(walk, part)), *out = made;
    const char *end;

    for (const char *c = made; *c;) {
        int link = *c == '<' && (!strncasecmp(c + 1, "http", 4)
                                 || !strncasecmp(c + 1, "mailto:", 7));

        end = link ? c + 1 + strcspn(c + 1, "<> \n") : c;
        if (*end == '>') {
            c = end + 1;
        }
        else {
            *out++ = *c++;
        }
    }
    *out = '\0';
    return crm_text_bare(made, walk->pool);
}

/* Return whether PART has the words of the part that was shown last, one of them as
 * HTML: some programs put both forms of a text into multipart/mixed. */
static int repeats(crm_mail_walk_t *walk, GMimePart *part)
{
    GMimePart *shown = walk->shown;
    const char *words;

    if (!shown || crm_mail_type_is(GMIME_OBJECT(part), "text", "html")
                  == crm_mail_type_is(GMIME_OBJECT(shown), "text", "html")) {
        return 0;
    }
    words = words_of(walk, part);
    return *words && !strcmp(words, words_of(walk, shown));
}

/* Add PART to the mail's text and to what a mail with HTML shows: once, if it comes in
 * two forms. */
static void show(crm_mail_walk_t *walk, GMimePart *part)
{
    if (!repeats(walk, part)) {
        walk->shown = part;
        walk->shown_at = walk->display.len;
        add_text(walk, part);
        add_display(walk, part);
        return;
    }
    if (crm_mail_type_is(GMIME_OBJECT(part), "text", "html")) {
        walk->display.len = walk->shown_at;
        add_display(walk, part);
    }
    walk->shown = NULL;
}

/* ---- parts --------------------------------------------------------------- */

/* Return whether PART may be the mail's text, by its type and disposition. */
static int may_be_text(const crm_mail_walk_t *walk, GMimePart *part)
{
    GMimeObject *object = GMIME_OBJECT(part);
    GMimeContentDisposition *disposition =
        g_mime_object_get_content_disposition(object);

    if (!crm_mail_type_is(object, "text", "plain")
        && !crm_mail_type_is(object, "text", "html")) {
        return 0;
    }
    if (disposition
        && g_mime_content_disposition_is_attachment(disposition)) {
        return 0;
    }
    return !walk->text.len || !g_mime_part_get_filename(part);
}

/* Add the parts of type text/SUBTYPE in OBJECT that may be the mail's text and show
 * something to PARTS, of GMimePart *: of alternatives those of the first that has
 * any. Return whether there are some. */
static int find_texts(apr_array_header_t *parts, crm_mail_walk_t *walk,
                      GMimeObject *object, const char *subtype)
{
    int found = 0;

    if (GMIME_IS_MULTIPART(object)) {
        GMimeMultipart *multipart = GMIME_MULTIPART(object);
        int count = g_mime_multipart_get_count(multipart);
        int one = crm_mail_type_is(object, "multipart", "alternative");

        for (int i = 0; i < count && i < CRM_MAIL_LIST_MAX && !(one && found);
             i++) {
            found |= find_texts(parts, walk,
                                g_mime_multipart_get_part(multipart, i),
                                subtype);
        }
    }
    else if (GMIME_IS_PART(object) && crm_mail_type_is(object, "text", subtype)
             && may_be_text(walk, GMIME_PART(object))
             && (!parts->nelts || !g_mime_part_get_filename(GMIME_PART(object)))
             && crm_text_shows(text_of(walk, GMIME_PART(object)))) {
        APR_ARRAY_PUSH(parts, GMimePart *) = GMIME_PART(object);
        found = 1;
    }
    return found;
}

/* Return the parts of MULTIPART, alternatives, that find_texts() finds. */
static const apr_array_header_t *texts_of(crm_mail_walk_t *walk,
                                          GMimeMultipart *multipart,
                                          const char *subtype)
{
    apr_array_header_t *parts = apr_array_make(walk->pool, 2,
                                               sizeof(GMimePart *));

    find_texts(parts, walk, GMIME_OBJECT(multipart), subtype);
    return parts;
}

/* Call ADD for each of PARTS. */
static void add_each(crm_mail_walk_t *walk, const apr_array_header_t *parts,
                     void (*add)(crm_mail_walk_t *walk, GMimePart *part))
{
    for (int i = 0; i < parts->nelts; i++) {
        add(walk, APR_ARRAY_IDX(parts, i, GMimePart *));
    }
}

/* Bytes of the words of a text that only speaks of the HTML beside it. */
#define STUB_BYTES 400

/* What a text speaks of that asks to look at the HTML, or at a page instead. */
static const char *const elsewhere[] = {
    "html", "mimeformat", "browser", "navegador", "navigateur"
};

/* Return whether PLAIN, the texts of alternatives, is one that may only say that the
 * mail has HTML. */
static int may_be_stub(crm_mail_walk_t *walk, const apr_array_header_t *plain)
{
    const char *words = plain->nelts == 1 ? words_of(
        walk, APR_ARRAY_IDX(plain, 0, GMimePart *)) : "";

    for (size_t i = 0; i < CRM_NELTS(elsewhere); i++) {
        if (strlen(words) <= STUB_BYTES && strstr(words, elsewhere[i])) {
            return 1;
        }
    }
    return 0;
}

/* Return whether HTML, the texts beside PLAIN, have other words. */
static int has_others(crm_mail_walk_t *walk, const apr_array_header_t *plain,
                      const apr_array_header_t *html)
{
    const char *words = words_of(walk, APR_ARRAY_IDX(plain, 0, GMimePart *));

    for (int i = 0; i < html->nelts; i++) {
        if (strstr(words_of(walk, APR_ARRAY_IDX(html, i, GMimePart *)),
                   words)) {
            return 0;
        }
    }
    return html->nelts > 0;
}

/* Of alternatives (RFC 2046, 5.1.4) use the plain text, unless it only says that
 * there is HTML, else the HTML; show the HTML, if there is any. Other parts are
 * attachments, unless they are another form of the text. */
static void walk_alternative(crm_mail_walk_t *walk, GMimeMultipart *multipart,
                             int text)
{
    int count = g_mime_multipart_get_count(multipart), stub;
    const apr_array_header_t *plain, *html;

    if (text) {
        plain = texts_of(walk, multipart, "plain");
        stub = may_be_stub(walk, plain);
        html = !plain->nelts || stub || walk->options->keep_original
               ? texts_of(walk, multipart, "html") : plain;
        stub = stub && has_others(walk, plain, html);
        add_each(walk, plain->nelts && !stub ? plain : html, add_text);
        add_each(walk, html->nelts ? html : plain, add_display);
    }
    for (int i = 0; i < count; i++) {
        crm_mail_walk(walk, g_mime_multipart_get_part(multipart, i), 0);
    }
}

static void walk_multipart(crm_mail_walk_t *walk, GMimeMultipart *multipart,
                           int text)
{
    int count = g_mime_multipart_get_count(multipart);

    if (crm_mail_type_is(GMIME_OBJECT(multipart), "multipart", "alternative")) {
        walk_alternative(walk, multipart, text);
        return;
    }
    for (int i = 0; i < count; i++) {
        crm_mail_walk(walk, g_mime_multipart_get_part(multipart, i), text);
    }
}

void crm_mail_walk(crm_mail_walk_t *walk, GMimeObject *object, int text)
{
    if (!object) {
        return;
    }
    if (GMIME_IS_MULTIPART(object)) {
        walk_multipart(walk, GMIME_MULTIPART(object), text);
    }
    else if (GMIME_IS_MESSAGE_PART(object)) {
        crm_mail_attach_message(walk, GMIME_MESSAGE_PART(object));
    }
    else if (!GMIME_IS_PART(object)) {
        walk->mail->more_attachments++;
    }
    else if (!may_be_text(walk, GMIME_PART(object))) {
        if (text) {
            crm_mail_attach_signed(walk, GMIME_PART(object));
        }
        crm_mail_attach(walk, GMIME_PART(object), !text);
    }
    else if (text) {
        show(walk, GMIME_PART(object));
        if (g_mime_object_get_content_disposition_parameter(object,
                                                            "filename")) {
            crm_mail_attach(walk, GMIME_PART(object), 0);   /* shown inline */
        }
    }
    else if (g_mime_part_get_filename(GMIME_PART(object))) {
        crm_mail_attach(walk, GMIME_PART(object), 0);
    }
}

/* Return the text of MIME, which is MAIL, if it is a multipart without parts: its
 * boundary is not declared, or never used. Otherwise return "". */
static const char *stray_text(crm_mail_t *mail, GMimeMessage *mime,
                              apr_pool_t *pool)
{
    GMimeObject *top = g_mime_message_get_mime_part(mime);
    const char *stray;

    if (!top || !GMIME_IS_MULTIPART(top)
        || g_mime_multipart_get_count(GMIME_MULTIPART(top))) {
        return "";
    }
    stray = g_mime_multipart_get_prologue(GMIME_MULTIPART(top));
    return stray ? crm_mail_source(mail, CRM_MAIL_CUT_TEXT, stray,
                                   strlen(stray), NULL, pool) : "";
}

/* Return TEXT without lines that show nothing at both ends, in POOL. */
static const char *trim(const char *text, apr_pool_t *pool)
{
    apr_size_t blank = crm_text_blank_span(text), len;
    char *made;

    while (blank && text[blank - 1] != '\n') {
        blank--;                /* the indent of the first line stays */
    }
    made = apr_pstrdup(pool, crm_text_shows(text) ? text + blank : "");
    len = strlen(made);
    for (apr_size_t at = len; at; at--) {
        if (made[at - 1] == '\n') {
            if (crm_text_shows(made + at - 1)) {
                break;
            }
            len = at - 1;
            made[len] = '\0';
        }
    }
    for (; len && strchr(" \t", made[len - 1]); len--) {
    }
    return apr_pstrmemdup(pool, made, len);
}

/* Return what WALK has found beside the text, as a text. */
static const char *other_text(crm_mail_walk_t *walk)
{
    crm_mail_other_t kind = walk->other_kind;
    const char *text = walk->other;
    apr_size_t len = walk->other_len;

    if (kind == CRM_MAIL_OTHER_RTF) {
        return crm_mail_rtf(text, len, walk->pool);
    }
    if (kind == CRM_MAIL_OTHER_CALENDAR) {
        text = crm_mail_unfold(&len, text, len, walk->pool);
    }
    text = crm_mail_source(walk->mail, CRM_MAIL_CUT_TEXT, text, len,
                           walk->other_charset, walk->pool);
    switch (kind) {
    case CRM_MAIL_OTHER_HTML:
        text = limit_html(walk, text);
        return crm_mail_text(&walk->mail->cut, text, strlen(text), walk->pool);
    case CRM_MAIL_OTHER_ENRICHED:
    case CRM_MAIL_OTHER_RICHTEXT:
        return crm_mail_enriched(text, kind == CRM_MAIL_OTHER_RICHTEXT, walk->pool);
    case CRM_MAIL_OTHER_CALENDAR:
        return crm_mail_calendar(text, walk->pool);
    default:
        return text;
    }
}

void crm_mail_body(crm_mail_t *mail, GMimeMessage *mime,
                   const crm_mail_options_t *options, apr_pool_t *pool)
{
    crm_mail_walk_t walk = {
        .mail = mail, .options = options, .hint = crm_mail_hint(mime),
        .pool = pool
    };
    const char *text = crm_mail_header(mime, "X-Trasporto", 100, pool);

    walk.certified = text && !strcasecmp(text, "posta-certificata");
    crm_buf_init(&walk.text, 4096, pool);
    crm_buf_init(&walk.display, 4096, pool);
    crm_mail_walk(&walk, g_mime_message_get_mime_part(mime), 1);
    crm_buf_putc(&walk.text, '\0');
    text = walk.text.data;
    if (!crm_text_shows(text) && walk.other) {
        text = other_text(&walk);
    }
    if (!crm_text_shows(text)) {
        text = stray_text(mail, mime, pool);
    }
    if (walk.shows_html) {
        crm_buf_putc(&walk.display, '\0');
        mail->display = walk.display.data;
    }
    mail->text = crm_mail_cut(&mail->text_cut,
                              trim(crm_text_unfill(text, pool), pool),
                              CRM_MAIL_TEXT_MAX, pool);
}
