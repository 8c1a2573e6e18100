/* SPDX-License-Identifier: Apache-2.0 */
/* mail_returned.c: the mail that a report returns (contract 18.5) */
#include "mail_returned.h"

#include <string.h>
#include <strings.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_array.h"
#include "mail_id.h"
#include "mail_read.h"

#define DEPTH 8

/* Bytes of a text or file that are looked at. */
#define TEXT_BYTES 65536

/* ---- parts --------------------------------------------------------------- */

/* Add what ORIGINAL, a returned mail, is known by to MAIL. Return whether it
 * has a Message-ID or a token. */
static int add_original(crm_mail_t *mail, GMimeMessage *original,
                        apr_pool_t *pool)
{
    apr_array_header_t *ids = apr_array_make(pool, 1, sizeof(const char *));
    const char *token = crm_mail_header(original, CRM_MAIL_TOKEN_HEADER, 100,
                                        pool);

    crm_mail_ids(ids, original, "Message-ID", pool);
    if (ids->nelts) {
        crm_mail_ids(mail->references, original, "Message-ID", pool);
    }
    return (token && crm_mail_add_token(mail->tokens, token)) || ids->nelts;
}

/* The same for PART, whose header some servers make of the mail's. */
static int add_own(crm_mail_t *mail, GMimeObject *part)
{
    const char *token = g_mime_object_get_header(part, CRM_MAIL_TOKEN_HEADER);

    crm_mail_add_ids(mail->references,
                     g_mime_object_get_header(part, "Message-ID"));
    if (token) {
        crm_mail_add_token(mail->tokens, token);
    }
    return 1;
}

/* Return whether TYPE is a mail, here one that is encoded, or its header. */
static int is_mail(GMimeContentType *type)
{
    static const char *const subtypes[] = {
        "rfc822", "global", "rfc822-headers", "global-headers"
    };

    for (size_t i = 0; i < CRM_NELTS(subtypes); i++) {
        if (g_mime_content_type_is_type(type, "message", subtypes[i])) {
            return 1;
        }
    }
    return g_mime_content_type_is_type(type, "text", "rfc822-headers");
}

/* Add what PART, a leaf of a mail, returns to MAIL; return how many mails. Some
 * servers attach a mail, or its header, as a text or as a file. */
static int read_part(crm_mail_t *mail, GMimePart *part, apr_pool_t *pool)
{
    GMimeContentType *type =
        g_mime_object_get_content_type(GMIME_OBJECT(part));
    GMimeMessage *original;
    const char *bytes, *ignored;
    apr_size_t len;
    int found;

    if (!is_mail(type)
        && !g_mime_content_type_is_type(type, "text", "plain")
        && !g_mime_content_type_is_type(type, "application",
                                        "octet-stream")) {
        return 0;
    }
    bytes = crm_mail_bytes(&len, part, pool);
    if (!is_mail(type)) {
        len = len < TEXT_BYTES ? len : TEXT_BYTES;
        return crm_mail_returned_text(&ignored, mail, crm_mail_source(
                                          mail, CRM_MAIL_CUT_TEXT, bytes, len,
                                          NULL, pool), pool);
    }
    original = crm_mail_parse_head(&mail->cut, bytes, len, pool);
    found = add_original(mail, original, pool);
    g_object_unref(original);
    return found;
}

static int walk(crm_mail_t *mail, GMimeObject *object, int depth,
                apr_pool_t *pool)
{
    int found = 0;

    if (GMIME_IS_MULTIPART(object) && depth < DEPTH) {
        GMimeMultipart *multipart = GMIME_MULTIPART(object);
        int count = g_mime_multipart_get_count(multipart);

        for (int i = 0; i < count && i < CRM_MAIL_LIST_MAX; i++) {
            found += walk(mail, g_mime_multipart_get_part(multipart, i),
                          depth + 1, pool);
        }
    }
    else if (GMIME_IS_MESSAGE_PART(object)) {
        GMimeMessage *original =
            g_mime_message_part_get_message(GMIME_MESSAGE_PART(object));

        found = original && add_original(mail, original, pool);
    }
    else if (GMIME_IS_PART(object)) {
        found = read_part(mail, GMIME_PART(object), pool);
        if (depth && g_mime_object_get_header(object, "Message-ID")) {
            found += add_own(mail, object);
        }
    }
    return found;
}

int crm_mail_returned_parts(crm_mail_t *mail, GMimeMessage *mime,
                            apr_pool_t *pool)
{
    GMimeObject *top = g_mime_message_get_mime_part(mime);

    return top ? walk(mail, top, 0, pool) : 0;
}

/* ---- text ---------------------------------------------------------------- */

/* Return the value of the header NAME in LINE; NULL if it is another one. */
static const char *value_of(const char *line, const char *name)
{
    size_t len = strlen(name);

    return !strncasecmp(line, name, len) && line[len] == ':'
           ? line + len + 1 : NULL;
}

/* Return whether LINE begins a header of a mail. The fields of RFC 3464 belong
 * to the explanation. */
static int begins_header(const char *line)
{
    static const char *const fields[] = {
        "Action", "Diagnostic-Code", "Final-Recipient", "Original-Recipient",
        "Remote-MTA", "Reporting-MTA", "Status"
    };
    const char *c = line;

    while (apr_isalnum(*c) || *c == '-') {
        c++;
    }
    for (size_t i = 0; i < CRM_NELTS(fields); i++) {
        if (value_of(line, fields[i])) {
            return 0;
        }
    }
    return apr_isalpha(*line) && *c == ':';
}

/* Add what LINE, a header, names to MAIL. NEXT follows it. Return whether it
 * names something. */
static int add_line(crm_mail_t *mail, const char *line, const char *next)
{
    const char *value = value_of(line, "Message-ID");
    int before = mail->references->nelts;

    if (value) {
        apr_pool_t *pool = mail->references->pool;
        const char *end = value + strcspn(value, "\n");

        if (strspn(value, " \t\r") >= (size_t)(end - value)) {
            value = next;       /* it is folded */
            end = value + strcspn(value, "\n");
        }
        crm_mail_add_ids(mail->references, apr_pstrmemdup(
                             pool, value, (apr_size_t)(end - value)));
        return mail->references->nelts > before
               || memchr(value, '<', (size_t)(end - value));
    }
    value = value_of(line, CRM_MAIL_TOKEN_HEADER);
    return value && crm_mail_add_token(mail->tokens, value);
}

int crm_mail_returned_text(const char **explained_p, crm_mail_t *mail,
                           const char *text, apr_pool_t *pool)
{
    const char *run = NULL;     /* the first of the headers up to LINE */
    const char *first = NULL;
    int found = 0;

    for (const char *line = text; *line && found < CRM_MAIL_LIST_MAX;) {
        const char *next = line + strcspn(line, "\n");
        const char *bare = line + strspn(line, "> \t|");

        next += *next == '\n';
        if (begins_header(bare)) {
            run = run ? run : line;
            if (add_line(mail, bare, next)) {
                first = first ? first : run;
                found++;
            }
        }
        else if (!apr_isspace(*line) || !*bare || *bare == '\n') {
            run = NULL;         /* it continues no header */
        }
        line = next;
    }
    *explained_p = first ? apr_pstrmemdup(pool, text,
                                          (apr_size_t)(first - text)) : text;
    return found;
}
