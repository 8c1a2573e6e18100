/* SPDX-License-Identifier: Apache-2.0 */
/* mail_read.c: parsing a mail, and reading its headers */
#include "mail_read.h"

#include <pthread.h>
#include <string.h>
#include <strings.h>

#include <libxml/parser.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_mail.h"
#include "crm_text.h"
#include "mail_address.h"
#include "mail_auth.h"
#include "mail_body.h"
#include "mail_charset.h"
#include "mail_kind.h"

#define LINE_CHARS 1000

static pthread_once_t once = PTHREAD_ONCE_INIT;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* GMime registers its types at their first use, without a lock. crm_mail_init()
 * reads this mail, which uses all of them. */
static const char sample[] =
    "From: A <a@example.com>\nTo: g: b@example.com;\n"
    "Subject: =?iso-8859-1?Q?=E4?=\nDate: Sat, 1 Jan 2000 00:00:00 +0000\n"
    "Message-ID: <1@example.com>\nReferences: <0@example.com>\n"
    "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n"
    "--b\nContent-Type: text/html; charset=iso-8859-1\n"
    "Content-Transfer-Encoding: quoted-printable\n\n<p>=E4</p>\n"
    "--b\nContent-Type: multipart/signed; boundary=c\n\n--c\n\nx\n--c--\n"
    "--b\nContent-Type: multipart/encrypted; boundary=d\n\n--d\n\nx\n--d--\n"
    "--b\nContent-Type: application/pkcs7-mime; name=\"a\"\n"
    "Content-Disposition: attachment; filename*=utf-8''a\n"
    "Content-Transfer-Encoding: base64\n\nYQ==\n"
    "--b\nContent-Type: message/partial; id=x; number=1\n\nx\n"
    "--b\nContent-Type: message/rfc822\n\nSubject: x\n\nx\n--b--\n";

/* ---- bytes --------------------------------------------------------------- */

/* Return whether the LEN BYTES begin with the name of a header and a colon. */
static int has_header(const char *bytes, apr_size_t len)
{
    apr_size_t i = 0;

    while (i < len && bytes[i] > ' ' && bytes[i] != ':'
           && (unsigned char)bytes[i] < 0x7f) {
        i++;
    }
    while (i < len && (bytes[i] == ' ' || bytes[i] == '\t')) {
        i++;
    }
    return i && i < len && bytes[i] == ':';
}

/* Skip the line "From " that a mailbox file has before a mail. */
static void skip_from(const char **bytes_p, apr_size_t *len_p)
{
    const char *end = memchr(*bytes_p, '\n', *len_p);
    const char *bytes = *bytes_p;

    if (end && *len_p > 6
        && (!memcmp(bytes, "From ", 5) || !memcmp(bytes, ">From ", 6))) {
        *len_p -= (apr_size_t)(end + 1 - bytes);
        *bytes_p = end + 1;
    }
}

/* Maximum colons in a header of addresses. Each may begin a group, and GMime
 * recurses for a group within a group. */
#define COLONS 200

/* Return whether LINE, LEN bytes, begins a header of addresses. */
static int is_addresses(const char *line, apr_size_t len)
{
    static const char *const names[] = {
        "From", "Sender", "To", "Cc", "Bcc", "Reply-To", "Return-Path",
        "Delivered-To", "Envelope-To", "X-Original-To", "Errors-To",
        "X-Failed-Recipients", "Disposition-Notification-To",
        "Mail-Followup-To", "Mail-Reply-To", "Resent-From", "Resent-Sender",
        "Resent-To", "Resent-Cc", "Resent-Bcc", "Resent-Reply-To"
    };

    for (size_t i = 0; i < CRM_NELTS(names); i++) {
        size_t n = strlen(names[i]);

        if (n < len && !strncasecmp(line, names[i], n)
            && strchr(": \t", line[n]) && line[n]) {
            return 1;
        }
    }
    return 0;
}

/* Return the LEN BYTES with spaces instead of excess colons in headers of
 * addresses. All lines are checked, since enclosed mails have headers, too. */
static const char *limit_colons(const char *bytes, apr_size_t len,
                                apr_pool_t *pool)
{
    const char *line = bytes, *end = bytes + len;
    char *made = NULL;
    int inside = 0, colons = 0;

    while (line < end) {
        const char *next = memchr(line, '\n', (apr_size_t)(end - line));

        next = next ? next + 1 : end;
        if (*line != ' ' && *line != '\t') {
            inside = is_addresses(line, (apr_size_t)(next - line));
            colons = 0;
        }
        for (const char *c = line; inside && c < next; c++) {
            if (*c == ':' && ++colons > COLONS) {
                made = made ? made : apr_pmemdup(pool, bytes, len);
                made[c - bytes] = ' ';
            }
        }
        line = next;
    }
    return made ? made : bytes;
}

/* Return the LEN BYTES, *LEN_P after the change, in a form that GMime can
 * parse: if all lines end with CR alone they get LF; NULs are removed. */
static const char *prepare(apr_size_t *len_p, const char *bytes,
                           apr_size_t len, apr_pool_t *pool)
{
    int old = !memchr(bytes, '\n', len) && memchr(bytes, '\r', len);
    char *made, *out;

    *len_p = len;
    if (!len || (!old && !memchr(bytes, '\0', len))) {
        return bytes;
    }
    made = out = apr_palloc(pool, len + 1);
    for (apr_size_t i = 0; i < len; i++) {
        if (bytes[i]) {
            *out++ = old && bytes[i] == '\r' ? '\n' : bytes[i];
        }
    }
    *len_p = (apr_size_t)(out - made);
    return made;
}

/* Return the parser's options: headers that are not encoded are UTF-8, else
 * Windows-1252. */
static GMimeParserOptions *parser_options(void)
{
    static const char *charsets[] = {"utf-8", "cp1252", NULL};
    GMimeParserOptions *options = g_mime_parser_options_new();

    g_mime_parser_options_set_fallback_charsets(options, charsets);
    return options;
}

GMimeMessage *crm_mail_parse(const char *bytes, apr_size_t len,
                             apr_pool_t *pool)
{
    GMimeParserOptions *options = parser_options();
    GMimeMessage *message;
    GMimeStream *stream;
    GMimeParser *parser;

    bytes = limit_colons(prepare(&len, bytes, len, pool), len, pool);
    skip_from(&bytes, &len);
    if (len && !has_header(bytes, len) && *bytes != '\n' && *bytes != '\r') {
        char *made = apr_palloc(pool, len + 1);

        made[0] = '\n';         /* there is no header: all is the body */
        memcpy(made + 1, bytes, len++);
        bytes = made;
    }
    stream = g_mime_stream_mem_new_with_buffer(bytes, len);
    parser = g_mime_parser_new_with_stream(stream);
    message = g_mime_parser_construct_message(parser, options);
    g_object_unref(parser);
    g_object_unref(stream);
    g_mime_parser_options_free(options);
    return message ? message : g_mime_message_new(FALSE);
}

const char *crm_mail_bytes(apr_size_t *len_p, GMimePart *part,
                           apr_pool_t *pool)
{
    GMimeDataWrapper *content = g_mime_part_get_content(part);
    GMimeStream *stream = g_mime_stream_mem_new();
    GByteArray *array;
    const char *bytes;

    if (content) {
        g_mime_data_wrapper_write_to_stream(content, stream);
    }
    array = g_mime_stream_mem_get_byte_array(GMIME_STREAM_MEM(stream));
    *len_p = array->len;
    bytes = array->len ? apr_pstrmemdup(pool, (const char *)array->data,
                                        array->len) : "";
    g_object_unref(stream);
    return bytes;
}

/* ---- headers ------------------------------------------------------------- */

const char *crm_mail_header(GMimeMessage *mime, const char *name,
                            apr_size_t max, apr_pool_t *pool)
{
    return crm_mail_line(g_mime_object_get_header(GMIME_OBJECT(mime), name),
                         max, pool);
}

int crm_mail_count(GMimeMessage *mime, const char *name)
{
    GMimeHeaderList *list = g_mime_object_get_header_list(GMIME_OBJECT(mime));
    int count = g_mime_header_list_get_count(list), found = 0;

    for (int i = 0; i < count; i++) {
        found += !strcasecmp(name, g_mime_header_get_name(
                                 g_mime_header_list_get_header_at(list, i)));
    }
    return found;
}

/* Return the Date of MIME in UTC (RFC 3339), unchanged if it is malformed, in
 * POOL. */
static const char *date_of(GMimeMessage *mime, apr_pool_t *pool)
{
    GDateTime *date = g_mime_message_get_date(mime);
    GDateTime *utc = date ? g_date_time_to_utc(date) : NULL;
    char *made = utc && g_date_time_get_year(utc) > 1
                 ? g_date_time_format(utc, "%Y-%m-%dT%H:%M:%SZ") : NULL;
    const char *text = made ? apr_pstrdup(pool, made)
                       : crm_mail_header(mime, "Date", 100, pool);

    g_free(made);
    if (utc) {
        g_date_time_unref(utc);
    }
    return text;
}

static void read_from(crm_mail_t *mail, GMimeMessage *mime,
                      const crm_mail_options_t *options, apr_pool_t *pool)
{
    static const char *const names[] = {
        "From", "Sender", "Reply-To", "Return-Path"
    };

    for (size_t i = 0; i < CRM_NELTS(names); i++) {
        if (crm_mail_mailbox(&mail->from, &mail->from_name, mime, names[i],
                             pool)) {
            return;
        }
    }
    if (options->sender
        && !crm_text_email(options->sender, strlen(options->sender))) {
        mail->from = apr_pstrdup(pool, options->sender);
    }
}

static void read_headers(crm_mail_t *mail, GMimeMessage *mime,
                         const crm_mail_options_t *options, apr_pool_t *pool)
{
    static const char *const names[] = {
        "Delivered-To", "X-Original-To", "Envelope-To", "To", "Cc"
    };
    apr_array_header_t *ids = apr_array_make(pool, 2, sizeof(const char *));

    for (size_t i = 0; i < CRM_NELTS(names); i++) {
        crm_mail_addresses(mail->recipients, mime, names[i], pool);
    }
    read_from(mail, mime, options, pool);
    mail->to = crm_mail_header(mime, "To", LINE_CHARS, pool);
    mail->cc = crm_mail_header(mime, "Cc", LINE_CHARS, pool);
    mail->subject = crm_mail_header(mime, "Subject", LINE_CHARS, pool);
    mail->date = date_of(mime, pool);
    crm_mail_ids(mail->references, mime, "References", pool);
    crm_mail_ids(mail->references, mime, "In-Reply-To", pool);
    crm_mail_ids(ids, mime, "Message-ID", pool);
    if (ids->nelts) {
        mail->message_id = APR_ARRAY_IDX(ids, 0, const char *);
    }
}

static void read_mail(crm_mail_t *mail, const char *bytes, apr_size_t len,
                      const crm_mail_options_t *options,
                      apr_pool_t *result_pool)
{
    GMimeMessage *mime;

    memset(mail, 0, sizeof(*mail));
    mail->recipients = apr_array_make(result_pool, 4, sizeof(const char *));
    mail->references = apr_array_make(result_pool, 4, sizeof(const char *));
    mail->attachments = apr_array_make(result_pool, 4,
                                       sizeof(crm_mail_attachment_t));
    mail->bounces = apr_array_make(result_pool, 1,
                                   sizeof(crm_mail_bounce_t));
    mail->steps = apr_array_make(result_pool, 2, sizeof(const char *));
    mime = crm_mail_parse(bytes, len, result_pool);
    read_headers(mail, mime, options, result_pool);
    crm_mail_body(mail, mime, options, result_pool);
    crm_mail_kind(mail, mime, options, result_pool);
    mail->verified = crm_mail_verified(mail, mime, options->authserv_ids,
                                       result_pool);
    g_object_unref(mime);
}

/* ---- the library --------------------------------------------------------- */

static void init_library(void)
{
    static const crm_mail_options_t options = {.attachment_bytes = 1};
    crm_mail_t mail;
    apr_pool_t *pool;

    g_mime_init();
    xmlInitParser();
    apr_pool_create(&pool, NULL);
    read_mail(&mail, sample, sizeof(sample) - 1, &options, pool);
    apr_pool_destroy(pool);
}

void crm_mail_init(void)
{
    pthread_once(&once, init_library);
}

void crm_mail_lock(void)
{
    crm_mail_init();
    pthread_mutex_lock(&lock);
}

void crm_mail_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void crm_mail_read(crm_mail_t *mail, const char *bytes, apr_size_t len,
                   const crm_mail_options_t *options, apr_pool_t *result_pool)
{
    crm_mail_lock();
    read_mail(mail, bytes, len, options, result_pool);
    crm_mail_unlock();
}
