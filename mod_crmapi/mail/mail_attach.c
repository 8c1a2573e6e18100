/* SPDX-License-Identifier: Apache-2.0 */
/* mail_attach.c: a mail's attachments, and what enclosed mails say */
#include "mail_attach.h"

#include <string.h>
#include <strings.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_array.h"
#include "crm_disposition.h"
#include "mail_body.h"
#include "mail_charset.h"
#include "mail_id.h"
#include "mail_label.h"
#include "mail_file.h"
#include "mail_read.h"
#include "mail_rtf.h"
#include "mail_smime.h"
#include "mail_tnef.h"
#include "mail_tree.h"

#define NAME_CHARS 255

/* Maximum number of signed messages in a mail that are read. */
#define SIGNED 4
/* Return the length of the character at C if it shows what follows in another
 * direction, 0 if not: a file that looks as "photo-exe.jpg" may be an exe. */
static apr_size_t turns(const char *c)
{
    unsigned char last = *c == '\xe2' && c[1] ? (unsigned char)c[2] : 0;

    return (c[1] == '\x80' && last >= 0xaa && last <= 0xae)
           || (c[1] == '\x81' && last >= 0xa6 && last <= 0xa9) ? 3 : 0;
}

/* Return what follows the folders of NAME, a path of Windows; else NAME. */
static const char *without_folders(const char *name)
{
    const char *last = name && apr_isalpha(*name) && name[1] == ':' && name[2] == '\\'
                       ? strrchr(name, '\\') : NULL;

    return last ? last + 1 : name;
}

/* Return NAME as a file name, without folders, slashes and what turns it, in POOL; NULL
 * if it is blank. */
static const char *file_name(const char *name, apr_pool_t *pool)
{
    char *made = apr_pstrdup(pool, crm_mail_line(name, NAME_CHARS, pool));
    char *out = made;

    for (const char *c = without_folders(made); c && *c; c++) {
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
static int is_listed(crm_mail_walk_t *walk)
{
    int listed = walk->mail->attachments->nelts < CRM_MAIL_LIST_MAX;

    walk->mail->more_attachments += !listed;
    return listed;
}

/* Add an attachment NAME with the LEN BYTES; return it, without a type. */
static crm_mail_attachment_t *add_file(crm_mail_walk_t *walk, const char *name,
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
static void add_attachment(crm_mail_walk_t *walk, GMimeObject *object,
                           const char *name, const char *bytes,
                           apr_size_t len)
{
    const char *id = g_mime_object_get_content_id(object);
    crm_mail_attachment_t *one = add_file(walk, name, bytes, len);

    one->type = type_of(object, walk->pool);
    one->content_id = id ? crm_mail_line(id, NAME_CHARS, walk->pool) : NULL;
}

/* Add the text and the files in the LEN BYTES, if they are winmail.dat. */
static void add_tnef(crm_mail_walk_t *walk, const char *bytes, apr_size_t len)
{
    crm_mail_tnef_t body;
    const apr_array_header_t *files = crm_mail_tnef(&body, bytes, len,
                                                    walk->pool);

    if (body.bytes && !walk->other) {
        walk->other = body.bytes;
        walk->other_len = body.len;
        walk->other_kind = !strcmp(body.type, "text/html") ? CRM_MAIL_OTHER_HTML
                           : !strcmp(body.type, "text/rtf") ? CRM_MAIL_OTHER_RTF
                           : CRM_MAIL_OTHER_TEXT;
        walk->other_charset = crm_mail_label_in_html(body.bytes, body.len,
                                                     walk->pool);
        if (walk->other_kind == CRM_MAIL_OTHER_RTF) {
            walk->other = crm_mail_rtf_unpack(&walk->other_len, body.bytes,
                                              body.len, walk->pool);
        }
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

/* Return what the bytes of OBJECT, the file NAME or NULL, are, if they stand for the
 * text of a mail. */
static crm_mail_other_t kind_of(GMimeObject *object, const char *name)
{
    apr_size_t len = name ? strlen(name) : 0;
    static const struct {
        const char *type, *subtype;
        crm_mail_other_t kind;
    } kinds[] = {
        {"text", "html", CRM_MAIL_OTHER_HTML},
        {"text", "calendar", CRM_MAIL_OTHER_CALENDAR},
        {"text", "x-vcalendar", CRM_MAIL_OTHER_CALENDAR},
        {"application", "ics", CRM_MAIL_OTHER_CALENDAR},
        {"text", "rtf", CRM_MAIL_OTHER_RTF},
        {"application", "rtf", CRM_MAIL_OTHER_RTF},
        {"text", "enriched", CRM_MAIL_OTHER_ENRICHED},
        {"text", "richtext", CRM_MAIL_OTHER_RICHTEXT},
    };

    if (len > 4 && !strcasecmp(name + len - 4, ".ics")) {
        return CRM_MAIL_OTHER_CALENDAR;
    }
    for (size_t i = 0; i < CRM_NELTS(kinds); i++) {
        if (crm_mail_type_is(object, kinds[i].type, kinds[i].subtype)) {
            return kinds[i].kind;
        }
    }
    return CRM_MAIL_OTHER_TEXT;
}

/* Return whether PART, of KIND, may stand for the text of a mail without one. What
 * people do not read as a text (CSV, XML, cards) may not, if it is a file. */
static int may_be_other(GMimePart *part, crm_mail_other_t kind)
{
    GMimeObject *object = GMIME_OBJECT(part);

    if (kind == CRM_MAIL_OTHER_HTML || kind == CRM_MAIL_OTHER_CALENDAR
        || crm_mail_type_is(object, "text", "plain")) {
        return 1;
    }
    return (crm_mail_type_is(object, "text", "*") || kind == CRM_MAIL_OTHER_RTF)
           && !crm_mail_type_is(object, "text", "rfc822-headers")
           && !is_file(part);
}

void crm_mail_attach(crm_mail_walk_t *walk, GMimePart *part, int form)
{
    GMimeObject *object = GMIME_OBJECT(part);
    apr_size_t len;
    const char *bytes = crm_mail_bytes(&len, part, walk->pool);
    const char *name = crm_mail_file_name(object, walk->hint, walk->pool);
    crm_mail_other_t kind = kind_of(object, name);

    if (!walk->other && may_be_other(part, kind)) {
        walk->other = bytes;
        walk->other_len = len;
        walk->other_charset = apr_pstrdup(
            walk->pool, crm_mail_type_parameter(object, "charset"));
        walk->other_kind = kind;
    }
    form = form && crm_mail_type_is(object, "text", "*")
           && !crm_mail_type_is(object, "text", "calendar") && !is_file(part);
    if (!form && is_listed(walk)) {
        add_attachment(walk, object, name, bytes, len);
        add_tnef(walk, bytes, len);
    }
}

/* Add the parts of INNER, an enclosed mail, to the mail, and free INNER. */
static void walk_inner(crm_mail_walk_t *walk, GMimeMessage *inner)
{
    crm_mail_walk(walk, g_mime_message_get_mime_part(inner), 1);
    walk->shown = NULL;         /* it may be one of them */
    g_object_unref(inner);
}

void crm_mail_attach_signed(crm_mail_walk_t *walk, GMimePart *part)
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
static void read_certified(crm_mail_walk_t *walk, const char *name,
                           const char *bytes, apr_size_t len)
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

void crm_mail_attach_message(crm_mail_walk_t *walk, GMimeMessagePart *part)
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
