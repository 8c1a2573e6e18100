/* SPDX-License-Identifier: Apache-2.0 */
/* crm_mail.c: reading a mail */
#include "crm_mail.h"

#include <pthread.h>
#include <string.h>
#include <strings.h>

#include <libxml/parser.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_array.h"
#include "crm_process.h"
#include "crm_time.h"
#include "mail_address.h"
#include "mail_auth.h"
#include "mail_body.h"
#include "mail_id.h"
#include "mail_kind.h"
#include "mail_person.h"
#include "mail_read.h"

#define LINE_CHARS 1000

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* GMime keeps nothing for the whole process but its types, its default options
 * and its names of charsets. It registers types at their first use, without a
 * lock. crm_mail_init() reads this mail, which uses all of them. */
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

/* ---- headers ------------------------------------------------------------- */

/* Return whether an offset is at TEXT whose hours and minutes SEPARATOR parts: ':', or
 * '\0' for nothing. */
static int is_offset(const char *text, char separator)
{
    const char *minutes = text + 3 + (separator != '\0');

    return (*text == '+' || *text == '-') && apr_isdigit(text[1])
           && apr_isdigit(text[2]) && (!separator || text[3] == separator)
           && apr_isdigit(minutes[0]) && apr_isdigit(minutes[1])
           && !apr_isdigit(minutes[2]);
}

/* Return DATE in the form of RFC 5322 as far as GMime would misread it, in POOL:
 * "+0200" for "+02:00" and "GMT+0200", "14:15:52" for "14.15.52". Comments stay. */
static const char *plain_date(const char *date, apr_pool_t *pool)
{
    char *made = apr_palloc(pool, strlen(date) + 1), *out = made;
    int dots = !strchr(date, ':');

    for (; *date && *date != '('; date++) {
        int colon = is_offset(date, ':');

        if ((colon || is_offset(date, '\0')) && out - made >= 3
            && (!strncasecmp(out - 3, "GMT", 3)
                || !strncasecmp(out - 3, "UTC", 3))) {
            out -= 3;
        }
        if (colon) {
            memcpy(out, date, 3);
            out += 3;
            date += 3;          /* at the colon */
            continue;
        }
        *out++ = dots && *date == '.' ? ':' : *date;
    }
    strcpy(out, date);
    return made;
}

/* Return DATE, which is malformed, as an ISO 8601 time in UTC, in POOL; DATE if it is
 * none. */
static const char *iso_date(const char *date, apr_pool_t *pool)
{
    char made[CRM_TIME_SIZE];
    apr_time_t time;

    if (!date || crm_time_parse(&time, date, strlen(date))) {
        return date;
    }
    crm_time_format_ms(made, time);
    return apr_pstrcat(pool, apr_pstrndup(pool, made, 19), "Z", NULL);
}

/* Return the Date of MIME in UTC (RFC 3339), unchanged if it is malformed, in
 * POOL. */
static const char *date_of(GMimeMessage *mime, apr_pool_t *pool)
{
    const char *text = crm_mail_header(mime, "Date", 100, pool);
    GDateTime *date = !text ? NULL
        : g_mime_utils_header_decode_date(plain_date(text, pool));
    GDateTime *utc = date ? g_date_time_to_utc(date) : NULL;
    char *made = utc && g_date_time_get_year(utc) > 1
                 ? g_date_time_format(utc, "%Y-%m-%dT%H:%M:%SZ") : NULL;

    text = made ? apr_pstrdup(pool, made) : iso_date(text, pool);
    g_free(made);
    if (utc) {
        g_date_time_unref(utc);
    }
    if (date) {
        g_date_time_unref(date);
    }
    return text;
}

/* Return the first id in the headers NAME of MIME, in POOL; NULL if there is
 * none. */
static const char *first_id(GMimeMessage *mime, const char *name,
                            apr_pool_t *pool)
{
    apr_array_header_t *ids = apr_array_make(pool, 2, sizeof(const char *));

    crm_mail_ids(ids, mime, name, pool);
    return ids->nelts ? APR_ARRAY_IDX(ids, 0, const char *) : NULL;
}

static void read_headers(crm_mail_t *mail, GMimeMessage *mime,
                         const crm_mail_options_t *options, apr_pool_t *pool)
{
    static const char *const names[] = {
        "Delivered-To", "X-Original-To", "Envelope-To", "X-Envelope-To",
        "X-Delivered-To", "To", "Cc", "Resent-To", "Resent-Cc", "Bcc",
        "X-Forwarded-To"
    };

    for (size_t i = 0; i < CRM_NELTS(names); i++) {
        crm_mail_addresses(mail->recipients, mime, names[i], pool);
    }
    crm_mail_people(mail, mime, options, pool);
    mail->to = crm_mail_header(mime, "To", LINE_CHARS, pool);
    mail->cc = crm_mail_header(mime, "Cc", LINE_CHARS, pool);
    mail->subject = crm_mail_header(mime, "Subject", LINE_CHARS, pool);
    mail->date = date_of(mime, pool);
    crm_mail_ids(mail->references, mime, "References", pool);
    mail->references_header = apr_array_copy(pool, mail->references);
    crm_mail_ids(mail->references, mime, "In-Reply-To", pool);
    mail->message_id = first_id(mime, "Message-ID", pool);
    mail->in_reply_to = first_id(mime, "In-Reply-To", pool);
    mail->thread_index = crm_mail_header(mime, "Thread-Index", LINE_CHARS, pool);
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
    mail->tokens = apr_array_make(result_pool, 2, sizeof(const char *));
    mime = crm_mail_parse(&mail->cut, bytes, len, result_pool);
    read_headers(mail, mime, options, result_pool);
    crm_mail_body(mail, mime, options, result_pool);
    crm_mail_kind(mail, mime, options, result_pool);
    mail->verified = crm_mail_verified(mail, mime, options->authserv_ids,
                                       result_pool);
    g_object_unref(mime);
}

/* ---- the library --------------------------------------------------------- */

/* A handler of GLib's errors, with which it ends the process. */
static void glib_failed(const char *domain, GLogLevelFlags level, const char *text,
                        void *baton)
{
    if (strstr(text, "failed to allocate")) {
        crm_process_no_memory();
    }
    g_log_default_handler(domain, level, text, baton);
}

static void init_library(void)
{
    static const crm_mail_options_t options = {.attachment_bytes = 1};
    crm_mail_t mail;
    apr_pool_t *pool;

    g_log_set_handler("GLib", G_LOG_LEVEL_ERROR | G_LOG_FLAG_FATAL
                      | G_LOG_FLAG_RECURSION, glib_failed, NULL);
    g_mime_init();
    g_type_ensure(GMIME_TYPE_FILTER_DOS2UNIX);  /* of mails that are made */
    g_type_ensure(GMIME_TYPE_FILTER_UNIX2DOS);
    xmlInitParser();
    apr_pool_create(&pool, NULL);
    read_mail(&mail, sample, sizeof(sample) - 1, &options, pool);
    apr_pool_destroy(pool);
}

void crm_mail_init(void)
{
    pthread_once(&once, init_library);
}

void crm_mail_read(crm_mail_t *mail, const char *bytes, apr_size_t len,
                   const crm_mail_options_t *options, apr_pool_t *result_pool)
{
    crm_mail_init();
    read_mail(mail, bytes, len, options, result_pool);
}
