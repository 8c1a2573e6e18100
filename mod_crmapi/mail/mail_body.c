/* SPDX-License-Identifier: Apache-2.0 */
/* mail_body.c: a mail's parts: its text and its attachments */
#include "mail_body.h"

#include <string.h>
#include <strings.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_array.h"
#include "crm_bare.h"
#include "crm_buf.h"
#include "crm_disposition.h"
#include "mail_address.h"
#include "mail_calendar.h"
#include "mail_charset.h"
#include "mail_display.h"
#include "mail_flowed.h"
#include "mail_html.h"
#include "mail_label.h"
#include "mail_read.h"
#include "mail_smime.h"
#include "mail_text.h"
#include "mail_tnef.h"
#include "mail_tree.h"

/* The properties of a part with its text. */
#define TEXT "crm-text"
#define SOURCE "crm-source"     /* as it came, in UTF-8 */

#define NAME_CHARS 255

/* Maximum number of signed messages in a mail that are read. */
#define SIGNED 4

/* The state of a walk through the parts of a mail. */
typedef struct walk_t {
    crm_mail_t *mail;
    const crm_mail_options_t *options;
    const char *hint;           /* charset of headers that declare none */
    crm_buf_t text;
    crm_buf_t display;          /* crm_mail_t.display */
    int shows_html;             /* there is HTML in it */
    GMimePart *shown;           /* the last part that was added to both */
    apr_size_t shown_at;        /* where it begins in DISPLAY */
    const char *other;          /* bytes of the first attached text, used if
                                   there is no other text */
    apr_size_t other_len;
    const char *other_charset;  /* or NULL */
    int other_html;             /* it is HTML */
    int other_calendar;         /* it is a calendar */
    apr_size_t html;            /* bytes of HTML that were read */
    int enclosed;               /* number of signed messages that were read */
    int certified;              /* it encloses what somebody wrote: RFC 6109 */
    apr_pool_t *pool;
} walk_t;

/* Add OBJECT to the mail. TEXT: its parts may be the mail's text; otherwise they
 * are attachments or left out. */
static void walk_part(walk_t *walk, GMimeObject *object, int text);

static int is_type(GMimeObject *object, const char *type, const char *subtype)
{
    return g_mime_content_type_is_type(g_mime_object_get_content_type(object),
                                       type, subtype);
}

static const char *parameter(GMimeObject *object, const char *name)
{
    return g_mime_content_type_get_parameter(
        g_mime_object_get_content_type(object), name);
}

/* ---- text ---------------------------------------------------------------- */

/* Return the charset declared in the LEN bytes of HTML, in POOL; NULL if there
 * is none. */
static const char *html_charset(const char *bytes, apr_size_t len,
                                apr_pool_t *pool)
{
    static const char word[] = "charset=";
    const char *head = apr_pstrmemdup(pool, bytes, len < 4096 ? len : 4096);
    const char *at = strcasestr(head, word);

    if (!at) {
        return NULL;
    }
    at += sizeof(word) - 1;
    at += strspn(at, "\"' ");
    at = apr_pstrmemdup(pool, at, strcspn(at, "\"'> ;/"));
    /* what says so in ASCII is not UTF-16 (HTML, 13.2.3.2) */
    return crm_mail_label(at).coding == CRM_MAIL_WIDE ? NULL : at;
}

/* Return HTML (UTF-8), as far as the mail has not too much of it. */
static const char *limit_html(walk_t *walk, const char *html)
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
static const char *read_source(walk_t *walk, GMimePart *part)
{
    GMimeObject *object = GMIME_OBJECT(part);
    const char *charset = parameter(object, "charset");
    int html = is_type(object, "text", "html");
    apr_size_t len;
    const char *bytes = crm_mail_bytes(&len, part, walk->pool);
    const char *text;

    if (!charset && html) {
        charset = html_charset(bytes, len, walk->pool);
    }
    text = crm_mail_source(walk->mail, html ? CRM_MAIL_CUT_HTML
                           : CRM_MAIL_CUT_TEXT, bytes, len, charset,
                           walk->pool);
    return html ? limit_html(walk, text) : text;
}

/* Return the text of PART, which is of type text, with the property NAME in which
 * it is kept; READ reads it, once. */
static const char *once(walk_t *walk, GMimePart *part, const char *name,
                        const char *(*read)(walk_t *walk, GMimePart *part))
{
    char *text = g_object_get_data(G_OBJECT(part), name);

    if (!text) {
        text = apr_pstrdup(walk->pool, read(walk, part));
        g_object_set_data(G_OBJECT(part), name, text);
    }
    return text;
}

static const char *source_of(walk_t *walk, GMimePart *part)
{
    return once(walk, part, SOURCE, read_source);
}

/* Read the text of PART as it is shown. */
static const char *read_text(walk_t *walk, GMimePart *part)
{
    GMimeObject *object = GMIME_OBJECT(part);
    const char *format = parameter(object, "format");
    const char *delsp = parameter(object, "delsp");
    const char *text = source_of(walk, part);

    if (is_type(object, "text", "html")) {
        return crm_mail_text(&walk->mail->cut, text, strlen(text),
                             walk->pool);
    }
    if (format && !strcasecmp(format, "flowed")) {
        return crm_mail_unflow(text, delsp && !strcasecmp(delsp, "yes"),
                               walk->pool);
    }
    return text;
}

static const char *text_of(walk_t *walk, GMimePart *part)
{
    return once(walk, part, TEXT, read_text);
}

/* Add PART to what a mail with HTML shows. */
static void add_display(walk_t *walk, GMimePart *part)
{
    const char *text = source_of(walk, part);

    if (!walk->options->keep_original) {
        return;
    }
    if (is_type(GMIME_OBJECT(part), "text", "html")) {
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
static void add_text(walk_t *walk, GMimePart *part)
{
    const char *text = text_of(walk, part);

    if (!crm_text_shows(text)) {
        return;
    }
    if (is_type(GMIME_OBJECT(part), "text", "html")) {
        walk->mail->html = 1;
    }
    if (walk->text.len && walk->text.data[walk->text.len - 1] != '\n') {
        crm_buf_putc(&walk->text, '\n');
    }
    crm_buf_puts(&walk->text, text);
}

/* Return the words of PART, without the URLs of links. */
static const char *words_of(walk_t *walk, GMimePart *part)
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
static int repeats(walk_t *walk, GMimePart *part)
{
    GMimePart *shown = walk->shown;
    const char *words;

    if (!shown || is_type(GMIME_OBJECT(part), "text", "html")
                  == is_type(GMIME_OBJECT(shown), "text", "html")) {
        return 0;
    }
    words = words_of(walk, part);
    return *words && !strcmp(words, words_of(walk, shown));
}

/* Add PART to the mail's text and to what a mail with HTML shows: once, if it comes in
 * two forms. */
static void show(walk_t *walk, GMimePart *part)
{
    if (!repeats(walk, part)) {
        walk->shown = part;
        walk->shown_at = walk->display.len;
        add_text(walk, part);
        add_display(walk, part);
        return;
    }
    if (is_type(GMIME_OBJECT(part), "text", "html")) {
        walk->display.len = walk->shown_at;
        add_display(walk, part);
    }
    walk->shown = NULL;
}

/* ---- attachments --------------------------------------------------------- */

/* Return the length of the character at C if it shows what follows in another
 * direction, 0 if not: a file that looks as "photo-exe.jpg" may be an exe. */
static apr_size_t turns(const char *c)
{
    unsigned char last = *c == '\xe2' && c[1] ? (unsigned char)c[2] : 0;

    return (c[1] == '\x80' && last >= 0xaa && last <= 0xae)
           || (c[1] == '\x81' && last >= 0xa6 && last <= 0xa9) ? 3 : 0;
}

/* Return NAME as a file name, without slashes and what turns it, in POOL; NULL if it is
 * blank. */
static const char *file_name(const char *name, apr_pool_t *pool)
{
    char *made = apr_pstrdup(pool, crm_mail_line(name, NAME_CHARS, pool));
    char *out = made;

    for (const char *c = made; c && *c; c++) {
        apr_size_t len = turns(c);

        if (len) {
            c += len - 1;
            continue;
        }
        *out++ = *c == '/' || *c == '\\' ? '_' : *c;
    }
    if (out) {
        *out = '\0';
    }
    return made && *made ? made : NULL;
}

/* Return the media type of OBJECT in lower case (RFC 2045, 5.1). */
static const char *type_of(GMimeObject *object, apr_pool_t *pool)
{
    char *made = g_mime_content_type_get_mime_type(
        g_mime_object_get_content_type(object));
    char *type = apr_pstrdup(pool, crm_mail_line(made, NAME_CHARS, pool));

    g_free(made);
    for (char *c = type; c && *c; c++) {
        *c = (char)apr_tolower(*c);
    }
    return type ? type : "application/octet-stream";
}

/* Return whether a further attachment is listed; else count it. What is not
 * listed is not read either. */
static int is_listed(walk_t *walk)
{
    int listed = walk->mail->attachments->nelts < CRM_MAIL_LIST_MAX;

    walk->mail->more_attachments += !listed;
    return listed;
}

/* Add an attachment NAME with the LEN BYTES; return it, without a type. */
static crm_mail_attachment_t *add_file(walk_t *walk, const char *name,
                                       const char *bytes, apr_size_t len)
{
    crm_mail_attachment_t *one = apr_array_push(walk->mail->attachments);

    one->name = file_name(name, walk->pool);
    one->type = "application/octet-stream";
    one->content_id = NULL;
    one->size = len;
    one->body = walk->options->attachment_bytes
                && len <= walk->options->attachment_bytes ? bytes : NULL;
    return one;
}

/* Add OBJECT as an attachment NAME with the LEN BYTES. */
static void add_attachment(walk_t *walk, GMimeObject *object, const char *name,
                           const char *bytes, apr_size_t len)
{
    const char *id = g_mime_object_get_content_id(object);
    crm_mail_attachment_t *one = add_file(walk, name, bytes, len);

    one->type = type_of(object, walk->pool);
    one->content_id = id ? crm_mail_line(id, NAME_CHARS, walk->pool) : NULL;
}

/* Add the text and the files in the LEN BYTES, if they are winmail.dat. */
static void add_tnef(walk_t *walk, const char *bytes, apr_size_t len)
{
    crm_mail_tnef_t body;
    const apr_array_header_t *files = crm_mail_tnef(&body, bytes, len,
                                                    walk->pool);

    if (body.bytes && !walk->other) {
        walk->other = body.bytes;
        walk->other_len = body.len;
        walk->other_html = !strcmp(body.type, "text/html");
        walk->other_charset = html_charset(body.bytes, body.len, walk->pool);
    }
    for (int i = 0; i < files->nelts; i++) {
        const crm_mail_tnef_t *file = &APR_ARRAY_IDX(files, i,
                                                     crm_mail_tnef_t);

        if (file->bytes && is_listed(walk)) {
            crm_mail_attachment_t *one = add_file(walk, file->name,
                                                  file->bytes, file->len);

            one->type = crm_disposition_type(file->type, walk->pool);
            one->content_id = file->content_id;
        }
    }
}

/* Return whether PART is declared as a file. */
static int is_file(GMimePart *part)
{
    GMimeContentDisposition *disposition =
        g_mime_object_get_content_disposition(GMIME_OBJECT(part));

    return (disposition
            && g_mime_content_disposition_is_attachment(disposition))
           || g_mime_part_get_filename(part);
}

/* Return whether PART may stand for the text of a mail without one. What people do
 * not read as a text (CSV, XML, cards) may not, if it is a file. */
static int may_be_other(GMimePart *part)
{
    static const char *const texts[] = {"plain", "html", "calendar"};
    GMimeObject *object = GMIME_OBJECT(part);

    for (size_t i = 0; i < CRM_NELTS(texts); i++) {
        if (is_type(object, "text", texts[i])) {
            return 1;
        }
    }
    return is_type(object, "text", "*")
           && !is_type(object, "text", "rfc822-headers") && !is_file(part);
}

/* Attach PART. FORM: it is one of alternatives. Then it is no file if it is only
 * another form of the text, as AMP is. */
static void attach_part(walk_t *walk, GMimePart *part, int form)
{
    GMimeObject *object = GMIME_OBJECT(part);
    apr_size_t len;
    const char *bytes = crm_mail_bytes(&len, part, walk->pool);

    if (!walk->other && may_be_other(part)) {
        walk->other = bytes;
        walk->other_len = len;
        walk->other_charset = apr_pstrdup(walk->pool,
                                          parameter(object, "charset"));
        walk->other_html = is_type(object, "text", "html");
        walk->other_calendar = is_type(object, "text", "calendar");
    }
    form = form && is_type(object, "text", "*")
           && !is_type(object, "text", "calendar") && !is_file(part);
    if (!form && is_listed(walk)) {
        add_attachment(walk, object, crm_mail_file_name(object, walk->hint,
                                                        walk->pool),
                       bytes, len);
        add_tnef(walk, bytes, len);
    }
}

/* Add the parts of INNER, an enclosed mail, to the mail, and free INNER. */
static void walk_inner(walk_t *walk, GMimeMessage *inner)
{
    walk_part(walk, g_mime_message_get_mime_part(inner), 1);
    walk->shown = NULL;         /* it may be one of them */
    g_object_unref(inner);
}

/* Read PART if it is a signed message that encloses what was signed (RFC 8551,
 * 3.5.2). */
static void read_signed(walk_t *walk, GMimePart *part)
{
    int read = walk->enclosed < SIGNED
               && walk->mail->attachments->nelts < CRM_MAIL_LIST_MAX;
    apr_size_t len;
    const char *bytes = read ? crm_mail_signed(&len, part, walk->pool) : NULL;

    if (bytes) {
        walk->enclosed++;
        walk_inner(walk, crm_mail_parse(&walk->mail->cut, bytes, len,
                                        walk->pool));
    }
}

/* Read the LEN BYTES of the mail NAME that a provider of certified mail encloses in its
 * own (RFC 6109, 3.1.3): it is what the sender wrote, and what that answers. */
static void read_certified(walk_t *walk, const char *name, const char *bytes,
                           apr_size_t len)
{
    apr_array_header_t *references = walk->mail->references;
    GMimeMessage *inner;

    if (!walk->certified || !name || strcasecmp(name, "postacert.eml")) {
        return;
    }
    walk->certified = 0;        /* one is enough */
    inner = crm_mail_parse(&walk->mail->cut, bytes, len, walk->pool);
    crm_mail_ids(references, inner, "References", walk->pool);
    crm_mail_ids(references, inner, "In-Reply-To", walk->pool);
    walk_inner(walk, inner);
}

/* Attach an enclosed mail, unchanged. */
static void attach_message(walk_t *walk, GMimeMessagePart *part)
{
    GMimeMessage *inner = g_mime_message_part_get_message(part);
    const char *subject, *name, *bytes;
    apr_size_t len;

    if (!is_listed(walk)) {
        return;
    }
    subject = inner ? crm_mail_header(inner, "Subject", 200, walk->pool)
                    : NULL;
    bytes = crm_mail_enclosed(&len, part);
    name = crm_mail_file_name(GMIME_OBJECT(part), walk->hint, walk->pool);
    add_attachment(walk, GMIME_OBJECT(part), name ? name : subject
                   ? apr_pstrcat(walk->pool, subject, ".eml", NULL) : NULL,
                   apr_pstrmemdup(walk->pool, bytes, len), len);
    read_certified(walk, name, bytes, len);
}

/* ---- parts --------------------------------------------------------------- */

/* Return whether PART may be the mail's text, by its type and disposition. */
static int may_be_text(const walk_t *walk, GMimePart *part)
{
    GMimeObject *object = GMIME_OBJECT(part);
    GMimeContentDisposition *disposition =
        g_mime_object_get_content_disposition(object);

    if (!is_type(object, "text", "plain") && !is_type(object, "text", "html")) {
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
static int find_texts(apr_array_header_t *parts, walk_t *walk,
                      GMimeObject *object, const char *subtype)
{
    int found = 0;

    if (GMIME_IS_MULTIPART(object)) {
        GMimeMultipart *multipart = GMIME_MULTIPART(object);
        int count = g_mime_multipart_get_count(multipart);
        int one = is_type(object, "multipart", "alternative");

        for (int i = 0; i < count && i < CRM_MAIL_LIST_MAX && !(one && found);
             i++) {
            found |= find_texts(parts, walk,
                                g_mime_multipart_get_part(multipart, i),
                                subtype);
        }
    }
    else if (GMIME_IS_PART(object) && is_type(object, "text", subtype)
             && may_be_text(walk, GMIME_PART(object))
             && (!parts->nelts || !g_mime_part_get_filename(GMIME_PART(object)))
             && crm_text_shows(text_of(walk, GMIME_PART(object)))) {
        APR_ARRAY_PUSH(parts, GMimePart *) = GMIME_PART(object);
        found = 1;
    }
    return found;
}

/* Return the parts of MULTIPART, alternatives, that find_texts() finds. */
static const apr_array_header_t *texts_of(walk_t *walk,
                                          GMimeMultipart *multipart,
                                          const char *subtype)
{
    apr_array_header_t *parts = apr_array_make(walk->pool, 2,
                                               sizeof(GMimePart *));

    find_texts(parts, walk, GMIME_OBJECT(multipart), subtype);
    return parts;
}

/* Call ADD for each of PARTS. */
static void add_each(walk_t *walk, const apr_array_header_t *parts,
                     void (*add)(walk_t *walk, GMimePart *part))
{
    for (int i = 0; i < parts->nelts; i++) {
        add(walk, APR_ARRAY_IDX(parts, i, GMimePart *));
    }
}

/* Of alternatives (RFC 2046, 5.1.4) use the plain text, else the HTML; show the
 * HTML, if there is any. Other parts are attachments, unless they are another
 * form of the text. */
static void walk_alternative(walk_t *walk, GMimeMultipart *multipart,
                             int text)
{
    int count = g_mime_multipart_get_count(multipart);
    const apr_array_header_t *plain, *html;

    if (text) {
        plain = texts_of(walk, multipart, "plain");
        html = !plain->nelts || walk->options->keep_original
               ? texts_of(walk, multipart, "html") : plain;
        add_each(walk, plain->nelts ? plain : html, add_text);
        add_each(walk, html->nelts ? html : plain, add_display);
    }
    for (int i = 0; i < count; i++) {
        walk_part(walk, g_mime_multipart_get_part(multipart, i), 0);
    }
}

static void walk_multipart(walk_t *walk, GMimeMultipart *multipart, int text)
{
    int count = g_mime_multipart_get_count(multipart);

    if (is_type(GMIME_OBJECT(multipart), "multipart", "alternative")) {
        walk_alternative(walk, multipart, text);
        return;
    }
    for (int i = 0; i < count; i++) {
        walk_part(walk, g_mime_multipart_get_part(multipart, i), text);
    }
}

static void walk_part(walk_t *walk, GMimeObject *object, int text)
{
    if (!object) {
        return;
    }
    if (GMIME_IS_MULTIPART(object)) {
        walk_multipart(walk, GMIME_MULTIPART(object), text);
    }
    else if (GMIME_IS_MESSAGE_PART(object)) {
        attach_message(walk, GMIME_MESSAGE_PART(object));
    }
    else if (!GMIME_IS_PART(object)) {
        walk->mail->more_attachments++;
    }
    else if (!may_be_text(walk, GMIME_PART(object))) {
        if (text) {
            read_signed(walk, GMIME_PART(object));
        }
        attach_part(walk, GMIME_PART(object), !text);
    }
    else if (text) {
        show(walk, GMIME_PART(object));
        if (g_mime_object_get_content_disposition_parameter(object,
                                                            "filename")) {
            attach_part(walk, GMIME_PART(object), 0);   /* shown inline */
        }
    }
    else if (g_mime_part_get_filename(GMIME_PART(object))) {
        attach_part(walk, GMIME_PART(object), 0);
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

void crm_mail_body(crm_mail_t *mail, GMimeMessage *mime,
                   const crm_mail_options_t *options, apr_pool_t *pool)
{
    walk_t walk = {
        .mail = mail, .options = options, .hint = crm_mail_hint(mime),
        .pool = pool
    };
    const char *text = crm_mail_header(mime, "X-Trasporto", 100, pool);

    walk.certified = text && !strcasecmp(text, "posta-certificata");
    crm_buf_init(&walk.text, 4096, pool);
    crm_buf_init(&walk.display, 4096, pool);
    walk_part(&walk, g_mime_message_get_mime_part(mime), 1);
    crm_buf_putc(&walk.text, '\0');
    text = walk.text.data;
    if (!crm_text_shows(text) && walk.other) {
        text = crm_mail_source(mail, CRM_MAIL_CUT_TEXT, walk.other,
                               walk.other_len, walk.other_charset, pool);
        if (walk.other_html) {
            text = limit_html(&walk, text);
            text = crm_mail_text(&mail->cut, text, strlen(text), pool);
        }
        else if (walk.other_calendar) {
            text = crm_mail_calendar(text, pool);
        }
    }
    if (!crm_text_shows(text)) {
        text = stray_text(mail, mime, pool);
    }
    if (walk.shows_html) {
        crm_buf_putc(&walk.display, '\0');
        mail->display = walk.display.data;
    }
    mail->text = crm_mail_cut(&mail->text_cut, trim(text, pool),
                              CRM_MAIL_TEXT_MAX, pool);
}
