/* SPDX-License-Identifier: Apache-2.0 */
/* mail_bounce.c: reports that a mail was not delivered */
#include "mail_bounce.h"

#include <string.h>
#include <strings.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_text.h"
#include "mail_address.h"
#include "mail_charset.h"
#include "mail_read.h"

#define TEXT_CHARS 1000
#define ORIGINAL_DEPTH 8
#define GROUPS (2 * CRM_MAIL_LIST_MAX)

/* ---- RFC 3464 ------------------------------------------------------------ */

/* Return whether STATUS (RFC 3463) is a permanent failure of the address. A
 * full mailbox (5.2.2) is temporary; a mail that is too large (5.2.3, 5.3.4)
 * does not concern the address. */
static int is_hard(const char *status)
{
    return status && *status == '5' && strcmp(status, "5.2.2")
           && strcmp(status, "5.2.3") && strcmp(status, "5.3.4");
}

/* Return the first status (RFC 3463) in TEXT, in POOL, or NULL. */
static const char *find_status(const char *text, apr_pool_t *pool)
{
    for (const char *c = text; c && *c; c++) {
        apr_size_t len;

        if (!strchr("245", *c) || c[1] != '.'
            || (c > text && (apr_isalnum(c[-1]) || c[-1] == '.'))) {
            continue;
        }
        len = strspn(c, "0123456789.");
        while (len && c[len - 1] == '.') {
            len--;
        }
        if (len >= 5 && len <= 9 && strspn(c + 2, "0123456789") < len - 2
            && c[2] != '.' && !memchr(c + 2 + strspn(c + 2, "0123456789") + 1,
                                      '.', len - 3
                                      - strspn(c + 2, "0123456789"))) {
            return apr_pstrmemdup(pool, c, len);
        }
    }
    return NULL;
}

/* Return the value of the field NAME in GROUP, LEN bytes of fields, unfolded
 * and as one line in POOL; NULL if it is missing. */
static const char *field(const char *group, apr_size_t len, const char *name,
                         apr_pool_t *pool)
{
    apr_size_t n = strlen(name);
    const char *end = group + len;

    while (group < end) {
        const char *next = memchr(group, '\n', (apr_size_t)(end - group));

        while (next && next + 1 < end && (next[1] == ' ' || next[1] == '\t')) {
            next = memchr(next + 1, '\n', (apr_size_t)(end - next - 1));
        }
        next = next ? next + 1 : end;
        if ((apr_size_t)(next - group) > n && group[n] == ':'
            && !strncasecmp(group, name, n)) {
            return crm_mail_line(apr_pstrmemdup(pool, group + n + 1,
                                                (apr_size_t)(next - group)
                                                - n - 1), TEXT_CHARS, pool);
        }
        group = next;
    }
    return NULL;
}

/* Return the address in VALUE, "rfc822; ada@example.org" or an address alone,
 * in POOL; NULL if there is none. */
static const char *address_in(const char *value, apr_pool_t *pool)
{
    const char *semicolon = value ? strchr(value, ';') : NULL;
    apr_size_t len;

    if (semicolon) {
        if (strncasecmp(value, "rfc822", 6) && strncasecmp(value, "utf-8", 5)) {
            return NULL;        /* x400, x-unix-user */
        }
        value = semicolon + 1;
    }
    if (!value) {
        return NULL;
    }
    value += strspn(value, " \t<");
    len = strcspn(value, " \t>");
    return crm_text_email(value, len) ? NULL
           : apr_pstrmemdup(pool, value, len);
}

/* Add the recipient that GROUP, LEN bytes of fields, reports to MAIL. */
static void read_group(crm_mail_t *mail, const char *group, apr_size_t len,
                       apr_pool_t *pool)
{
    crm_mail_bounce_t one = {0};

    /* The recipient before any forwarding. */
    one.address = address_in(field(group, len, "Original-Recipient", pool),
                             pool);
    if (!one.address) {
        one.address = address_in(field(group, len, "Final-Recipient", pool),
                                 pool);
    }
    one.action = field(group, len, "Action", pool);
    one.diagnostic = field(group, len, "Diagnostic-Code", pool);
    one.status = find_status(field(group, len, "Status", pool), pool);
    if (!one.status) {
        one.status = find_status(one.diagnostic, pool);
    }
    one.hard = one.action && !strncasecmp(one.action, "failed", 6)
               && is_hard(one.status);
    if (one.address && mail->bounces->nelts < CRM_MAIL_LIST_MAX) {
        APR_ARRAY_PUSH(mail->bounces, crm_mail_bounce_t) = one;
    }
}

/* Add the recipients that PART, message/delivery-status, reports to MAIL. */
static void read_status(crm_mail_t *mail, GMimePart *part, apr_pool_t *pool)
{
    apr_size_t len;
    const char *bytes = crm_mail_bytes(&len, part, pool);
    const char *text = crm_mail_utf8(bytes, len, NULL, pool);

    for (int i = 0; *text && i < GROUPS; i++) {
        const char *end = strstr(text, "\n\n");

        len = end ? (apr_size_t)(end + 1 - text) : strlen(text);
        read_group(mail, text, len, pool);
        text += len;
        text += strspn(text, "\n");
    }
}

/* ---- the returned mail --------------------------------------------------- */

/* Add the Message-ID of ORIGINAL, the returned mail, to MAIL's references. */
static void read_original(crm_mail_t *mail, GMimeMessage *original,
                          apr_pool_t *pool)
{
    apr_array_header_t *to = apr_array_make(pool, 2, sizeof(const char *));
    int before = mail->references->nelts;

    crm_mail_ids(mail->references, original, "Message-ID", pool);
    if (mail->references->nelts == before) {
        return;
    }
    crm_mail_addresses(to, original, "To", pool);
    if (to->nelts == 1 && mail->bounces->nelts == 1
        && crm_mail_step(APR_ARRAY_IDX(mail->references,
                                       mail->references->nelts - 1,
                                       const char *), pool)) {
        /* A mail of crmapid has one recipient: that address failed, even if
         * the mail was forwarded from there. */
        APR_ARRAY_IDX(mail->bounces, 0, crm_mail_bounce_t).address =
            APR_ARRAY_IDX(to, 0, const char *);
    }
}

/* The same for an original of which BYTES, LEN of them, begin with its
 * header. */
static void read_original_bytes(crm_mail_t *mail, const char *bytes,
                                apr_size_t len, apr_pool_t *pool)
{
    GMimeMessage *original = crm_mail_parse(bytes, len, pool);

    read_original(mail, original, pool);
    g_object_unref(original);
}

/* Read the parts of a report in OBJECT: with ORIGINALS 0 the delivery status,
 * with 1 the returned mail. */
static void walk(crm_mail_t *mail, GMimeObject *object, int originals,
                 int depth, apr_pool_t *pool)
{
    GMimeContentType *type = g_mime_object_get_content_type(object);

    if (GMIME_IS_MULTIPART(object) && depth < ORIGINAL_DEPTH) {
        GMimeMultipart *multipart = GMIME_MULTIPART(object);
        int count = g_mime_multipart_get_count(multipart);

        for (int i = 0; i < count && i < CRM_MAIL_LIST_MAX; i++) {
            walk(mail, g_mime_multipart_get_part(multipart, i), originals,
                 depth + 1, pool);
        }
    }
    else if (GMIME_IS_MESSAGE_PART(object)) {
        GMimeMessage *original =
            g_mime_message_part_get_message(GMIME_MESSAGE_PART(object));

        if (originals && original) {
            read_original(mail, original, pool);
        }
    }
    else if (GMIME_IS_PART(object)) {
        apr_size_t len;

        if (!originals
            && (g_mime_content_type_is_type(type, "message",
                                            "delivery-status")
                || g_mime_content_type_is_type(type, "message",
                                               "global-delivery-status"))) {
            read_status(mail, GMIME_PART(object), pool);
        }
        else if (originals
                 && (g_mime_content_type_is_type(type, "text",
                                                 "rfc822-headers")
                     || g_mime_content_type_is_type(type, "message",
                                                    "global-headers"))) {
            const char *bytes = crm_mail_bytes(&len, GMIME_PART(object),
                                               pool);

            read_original_bytes(mail, bytes, len, pool);
        }
    }
}

/* ---- bounces without MIME ------------------------------------------------ */

/* Read a bounce of qmail (QSBMF): paragraphs that begin with an address in
 * brackets, and the returned mail below a separator. Return 0 if it is none. */
static int read_qmail(crm_mail_t *mail, apr_pool_t *pool)
{
    static const char below[] = "\n--- Below this line is a copy of the"
                                " message.";
    const char *text = mail->text;
    const char *end = strstr(text, below);

    if (strncmp(text, "Hi. This is the", 15)) {
        return 0;
    }
    text = end ? apr_pstrmemdup(pool, text, (apr_size_t)(end - text)) : text;
    for (; (text = strstr(text, "\n<")); text++) {
        apr_size_t len = strcspn(text + 2, ">\n");
        const char *stop = strstr(text + 1, "\n\n");
        crm_mail_bounce_t one = {0};
        const char *said;

        if (strncmp(text + 2 + len, ">:\n", 3)
            || crm_text_email(text + 2, len)
            || mail->bounces->nelts >= CRM_MAIL_LIST_MAX) {
            continue;
        }
        one.address = apr_pstrmemdup(pool, text + 2, len);
        said = text + len + 5;
        one.diagnostic = crm_mail_line(
            stop ? apr_pstrmemdup(pool, said, stop > said
                                  ? (apr_size_t)(stop - said) : 0) : said,
            TEXT_CHARS, pool);
        one.status = find_status(one.diagnostic, pool);
        if (!one.status && one.diagnostic) {
            const char *remote = strstr(one.diagnostic, "said: ");

            one.status = remote && remote[6] == '5' ? "5.0.0" : NULL;
        }
        one.action = "failed";
        one.hard = is_hard(one.status);
        APR_ARRAY_PUSH(mail->bounces, crm_mail_bounce_t) = one;
    }
    if (end && (end = strstr(end + sizeof(below) - 1, "\n\n"))) {
        end += strspn(end, "\n");
        read_original_bytes(mail, end, strlen(end), pool);
    }
    return 1;
}

/* Read a bounce of an old Exim: addresses in a header, and the returned mail
 * below a separator. Exim sends it after the last attempt. Return 0 if it is
 * none. */
static int read_exim(crm_mail_t *mail, GMimeMessage *mime, apr_pool_t *pool)
{
    apr_array_header_t *failed = apr_array_make(pool, 2,
                                                sizeof(const char *));
    const char *copy = strstr(mail->text, "------ This is a copy of ");

    crm_mail_addresses(failed, mime, "X-Failed-Recipients", pool);
    for (int i = 0; i < failed->nelts; i++) {
        crm_mail_bounce_t one = {0};
        const char *address = APR_ARRAY_IDX(failed, i, const char *);
        const char *about = strstr(mail->text, address);

        one.address = address;
        one.action = "failed";
        if (about) {
            const char *stop = strstr(about, "\n\n");

            one.diagnostic = crm_mail_line(
                stop ? apr_pstrmemdup(pool, about,
                                      (apr_size_t)(stop - about)) : about,
                TEXT_CHARS, pool);
        }
        one.status = find_status(one.diagnostic, pool);
        one.hard = one.status ? is_hard(one.status)
                   : one.diagnostic && (strstr(one.diagnostic, ": 55")
                                        || strcasestr(one.diagnostic,
                                                      "unrouteable")
                                        || strcasestr(one.diagnostic,
                                                      "unknown user"));
        APR_ARRAY_PUSH(mail->bounces, crm_mail_bounce_t) = one;
    }
    if (failed->nelts && copy && (copy = strstr(copy, "\n\n"))) {
        copy += strspn(copy, "\n");
        read_original_bytes(mail, copy, strlen(copy), pool);
    }
    return failed->nelts > 0;
}

int crm_mail_bounced(crm_mail_t *mail, GMimeMessage *mime, apr_pool_t *pool)
{
    GMimeObject *top = g_mime_message_get_mime_part(mime);
    const char *type;

    if (!top) {
        return 0;
    }
    type = g_mime_content_type_get_parameter(
        g_mime_object_get_content_type(top), "report-type");
    if (g_mime_content_type_is_type(g_mime_object_get_content_type(top),
                                    "multipart", "report")
        && (!type || !strcasecmp(type, "delivery-status"))) {
        walk(mail, top, 0, 0, pool);
        if (type || mail->bounces->nelts) {
            walk(mail, top, 1, 0, pool);
            return 1;
        }
    }
    return read_exim(mail, mime, pool) || read_qmail(mail, pool);
}
