/* SPDX-License-Identifier: Apache-2.0 */
/* mail_bounce.c: reports that a mail was not delivered */
#include "mail_bounce.h"

#include <string.h>
#include <strings.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_text.h"
#include "mail_address.h"
#include "mail_charset.h"
#include "mail_id.h"
#include "mail_read.h"
#include "mail_returned.h"

#define TEXT_CHARS 1000

/* Bytes of what a text says of one address that are read. */
#define SAID_BYTES 4000
#define DEPTH 8
#define GROUPS (2 * CRM_MAIL_LIST_MAX)

/* ---- RFC 3464 ------------------------------------------------------------ */

/* Return the value of the field NAME in GROUP, LEN bytes of fields, unfolded
 * and as one line in POOL; NULL if it is missing. Blanks may stand before its
 * colon (RFC 5322, 4.5). */
static const char *field(const char *group, apr_size_t len, const char *name,
                         apr_pool_t *pool)
{
    apr_size_t n = strlen(name);
    const char *end = group + len;

    while (group < end) {
        const char *next = memchr(group, '\n', (apr_size_t)(end - group));
        const char *colon;

        while (next && next + 1 < end && (next[1] == ' ' || next[1] == '\t')) {
            next = memchr(next + 1, '\n', (apr_size_t)(end - next - 1));
        }
        next = next ? next + 1 : end;
        if ((apr_size_t)(next - group) > n && !strncasecmp(group, name, n)
            && *(colon = group + n + strspn(group + n, " \t")) == ':') {
            return crm_mail_line(apr_pstrmemdup(pool, colon + 1, (apr_size_t)
                                                (next - colon - 1)),
                                 TEXT_CHARS, pool);
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

/* Return the status in the field STATUS, in POOL. Return that in DIAGNOSTIC, which
 * is the remote server's own, if the field has none or one that says nothing
 * ("5.5.0"). Return it, too, if it is a failure and does not speak of the address,
 * which the field does: some servers make 5.1.1 of each refusal. Both may be
 * NULL. */
static const char *status_of(const char *status, const char *diagnostic,
                             apr_pool_t *pool)
{
    const char *found = crm_mail_status_find(status, pool), *other;

    if (!found) {
        crm_mail_status_read(&other, diagnostic, pool);
        return other;
    }
    other = crm_mail_status_find(diagnostic, pool);
    if (!other) {
        return found;
    }
    return !strcmp(strrchr(found, '.'), ".0")
           || (*other == '5'
               && crm_mail_status_failure(other, NULL, pool)
                  < crm_mail_status_failure(found, NULL, pool))
           ? other : found;
}

/* Add the recipient that GROUP, LEN bytes of fields, reports to MAIL. */
static void read_group(crm_mail_t *mail, const char *group, apr_size_t len,
                       apr_pool_t *pool)
{
    crm_mail_bounce_t one = {0};
    int failed;

    /* The recipient before any forwarding. */
    one.address = address_in(field(group, len, "Original-Recipient", pool),
                             pool);
    if (!one.address) {
        one.address = address_in(field(group, len, "Final-Recipient", pool),
                                 pool);
    }
    one.action = field(group, len, "Action", pool);
    one.diagnostic = field(group, len, "Diagnostic-Code", pool);
    one.status = status_of(field(group, len, "Status", pool),
                           one.diagnostic, pool);
    failed = !one.action || !strncasecmp(one.action, "fail", 4) /* "failure" */
             || !strncasecmp(one.action, "expired", 7);     /* SendGrid's */
    if (failed && !one.status && one.action) {
        one.status = "5.0.0";
    }
    if (failed) {
        one.failure = crm_mail_status_failure(one.status, one.diagnostic,
                                              pool);
    }
    if (failed && one.action && !one.failure) {
        one.failure = CRM_MAIL_FAILED;  /* the last try: 4.4.7 */
    }
    if (one.address && mail->bounces->nelts < CRM_MAIL_LIST_MAX) {
        APR_ARRAY_PUSH(mail->bounces, crm_mail_bounce_t) = one;
    }
}

/* Add the recipients that PART, message/delivery-status, reports to MAIL. */
static void read_status(crm_mail_t *mail, GMimePart *part, apr_pool_t *pool)
{
    static const char *const ids[] = {
        "Original-Envelope-Id",         /* the Message-ID: crmapid_smtp.c */
        "X-Original-Message-ID"         /* Gmail's */
    };
    apr_size_t len;
    const char *bytes = crm_mail_bytes(&len, part, pool);
    const char *text = crm_mail_source(mail, CRM_MAIL_CUT_TEXT, bytes, len,
                                       NULL, pool);

    for (int i = 0; *text && i < GROUPS; i++) {
        const char *end = strstr(text, "\n\n");

        len = end ? (apr_size_t)(end + 1 - text) : strlen(text);
        for (size_t k = 0; k < CRM_NELTS(ids); k++) {
            const char *id = field(text, len, ids[k], pool);

            if (id) {
                crm_mail_add_ids(mail->references, id);
            }
        }
        read_group(mail, text, len, pool);
        text += len;
        text += strspn(text, "\n");
    }
}

/* Return whether OBJECT is of the type message/SUBTYPE. */
static int is_message(GMimeObject *object, const char *subtype)
{
    return g_mime_content_type_is_type(g_mime_object_get_content_type(object),
                                       "message", subtype);
}

/* Bytes at the beginning of a file that are looked at for fields. */
#define FIELDS_BYTES 65536

/* Return whether OBJECT is a file with the fields of RFC 3464: some gateways make one
 * of the part. BATON is the pool. */
static int has_fields(GMimeObject *object, void *baton)
{
    static const char first[] = "Reporting-MTA:";
    apr_pool_t *pool = baton;
    apr_size_t len;
    const char *bytes;

    if (!g_mime_content_type_is_type(g_mime_object_get_content_type(object),
                                     "text", "plain")
        && !g_mime_content_type_is_type(g_mime_object_get_content_type(object),
                                        "application", "octet-stream")) {
        return 0;
    }
    bytes = crm_mail_bytes(&len, GMIME_PART(object), pool);
    return len < FIELDS_BYTES && !strncasecmp(bytes, first, sizeof(first) - 1)
           && strcasestr(bytes, "\nFinal-Recipient:")
           && strcasestr(bytes, "\nAction:");
}

static int is_delivery_status(GMimeObject *object, void *baton)
{
    (void)baton;
    return is_message(object, "delivery-status")
           || is_message(object, "global-delivery-status");
}

static int is_feedback_report(GMimeObject *object, void *baton)
{
    (void)baton;
    return is_message(object, "feedback-report");
}

/* Add the parts of OBJECT of which IS_ONE says so, for BATON, to PARTS, of
 * GMimePart *. */
static void find_parts(apr_array_header_t *parts, GMimeObject *object,
                       int (*is_one)(GMimeObject *object, void *baton),
                       void *baton, int depth)
{
    if (GMIME_IS_MULTIPART(object) && depth < DEPTH) {
        GMimeMultipart *multipart = GMIME_MULTIPART(object);
        int count = g_mime_multipart_get_count(multipart);

        for (int i = 0; i < count && i < CRM_MAIL_LIST_MAX; i++) {
            find_parts(parts, g_mime_multipart_get_part(multipart, i), is_one,
                       baton, depth + 1);
        }
    }
    else if (GMIME_IS_PART(object) && parts->nelts < GROUPS
             && is_one(object, baton)) {
        APR_ARRAY_PUSH(parts, GMimePart *) = GMIME_PART(object);
    }
}

/* ---- bounces in words ---------------------------------------------------- */

/* Add ADDRESS to MAIL's bounces. What follows it is the paragraph at SAID. */
static void add_said(crm_mail_t *mail, const char *address, const char *said,
                     apr_pool_t *pool)
{
    const char *stop = said ? strstr(said, "\n\n") : NULL;
    crm_mail_bounce_t one = {address, NULL, "failed", NULL,
                             CRM_MAIL_NO_FAILURE};

    if (said) {
        said = apr_pstrmemdup(pool, said, stop && stop - said < SAID_BYTES
                              ? (apr_size_t)(stop - said)
                              : strnlen(said, SAID_BYTES));
    }
    one.diagnostic = crm_mail_line(said, TEXT_CHARS, pool);
    one.failure = crm_mail_status_read(&one.status, said, pool);
    if (mail->bounces->nelts < CRM_MAIL_LIST_MAX) {
        APR_ARRAY_PUSH(mail->bounces, crm_mail_bounce_t) = one;
    }
}

/* Add the addresses in TEXT that begin a line, as "<ada@example.org>:", to
 * MAIL's bounces: qmail (QSBMF), Postfix, Yahoo. */
static void read_lines(crm_mail_t *mail, const char *text, apr_pool_t *pool)
{
    for (const char *line = text; line; line = strchr(line, '\n')) {
        apr_size_t len;

        line += *line == '\n';
        len = *line == '<' ? strcspn(line + 1, ">\n") : 0;
        if (len && !strncmp(line + 1 + len, ">:", 2)
            && !crm_text_email(line + 1, len)) {
            const char *said = line + len + 3;

            add_said(mail, apr_pstrmemdup(pool, line + 1, len),
                     said + strspn(said, " \t\n"), pool);
        }
    }
}

/* Where a report says only "5.0.0" of an address, read what TEXT, its
 * explanation, says in the line of the address. */
static void read_more(crm_mail_t *mail, const char *text, apr_pool_t *pool)
{
    for (int i = 0; i < mail->bounces->nelts; i++) {
        crm_mail_bounce_t *one = &APR_ARRAY_IDX(mail->bounces, i,
                                                crm_mail_bounce_t);
        const char *line = strstr(text, one->address), *status;
        apr_size_t len;

        if (!line || one->failure != CRM_MAIL_FAILED
            || strcmp(one->status, "5.0.0")) {
            continue;
        }
        for (len = strcspn(line, "\n");
             len < SAID_BYTES && line[len] && line[len + 1]
             && strchr(" \t", line[len + 1]);
             len += 1 + strcspn(line + len + 1, "\n")) {
        }
        line = apr_pstrmemdup(pool, line, len < SAID_BYTES ? len
                              : SAID_BYTES);
        if (crm_mail_status_read(&status, line, pool)
            != CRM_MAIL_NO_FAILURE) {
            one->failure = crm_mail_status_failure(status, line, pool);
            one->status = status ? status : one->status;
        }
    }
}

void crm_mail_given_up(crm_mail_t *mail, const char *text, apr_pool_t *pool)
{
    const char *status = mail->status ? mail->status : "5.0.0";

    if (mail->failure != CRM_MAIL_NO_FAILURE
        || !crm_mail_status_final(mail->status, apr_pstrcat(
               pool, mail->subject ? mail->subject : "", "\n", text, NULL),
               pool)) {
        return;
    }
    for (int i = 0; i < mail->bounces->nelts; i++) {
        crm_mail_bounce_t *one = &APR_ARRAY_IDX(mail->bounces, i,
                                                crm_mail_bounce_t);

        if (one->failure == CRM_MAIL_NO_FAILURE) {
            one->failure = CRM_MAIL_FAILED;
            one->status = one->status ? one->status : status;
        }
    }
    if (!mail->bounces->nelts) {
        mail->failure = CRM_MAIL_FAILED;
        mail->status = status;
    }
}

/* Read TEXT, the explanation of a bounce without fields of RFC 3464, into
 * MAIL's bounces. FAILED: the addresses that a header of it names (Exim). */
static void read_text(crm_mail_t *mail, const char *text,
                      const apr_array_header_t *failed, apr_pool_t *pool)
{
    for (int i = 0; i < failed->nelts; i++) {
        const char *address = APR_ARRAY_IDX(failed, i, const char *);

        add_said(mail, address, strstr(text, address), pool);
    }
    if (!mail->bounces->nelts) {
        read_lines(mail, text, pool);
    }
    if (mail->bounces->nelts <= 1) {
        mail->failure = crm_mail_status_read(&mail->status, text, pool);
    }
    crm_mail_given_up(mail, text, pool);
}

/* Read TEXT, by a mail server or the null sender, which returns no mail. It may
 * still be a bounce: the address that it came to may name the mail. A reply code
 * alone is not enough, since holiday notices have numbers, too. */
static void read_claim(crm_mail_t *mail, const char *text, apr_pool_t *pool)
{
    mail->failure = crm_mail_status_read(&mail->status, text, pool);
    if (mail->failure == CRM_MAIL_FAILED && !strcmp(mail->status, "5.0.0")) {
        mail->failure = CRM_MAIL_NO_FAILURE;
    }
}

/* Return whether MAIL begins as a bounce of qmail (QSBMF): "Hi. This is the
 * qmail-send program at example.org." */
static int is_qmail(const crm_mail_t *mail)
{
    static const char program[] = " program at ";
    const char *text = mail->text;

    return !strncmp(text, "Hi. This is the", 15)
           && memmem(text, strcspn(text, "\n"), program, sizeof(program) - 1);
}

/* ---- the mail ------------------------------------------------------------ */

const char *crm_mail_report_type(GMimeMessage *mime)
{
    GMimeObject *top = g_mime_message_get_mime_part(mime);
    GMimeContentType *type = top ? g_mime_object_get_content_type(top) : NULL;
    const char *of;

    if (!type || !g_mime_content_type_is_type(type, "multipart", "report")) {
        return NULL;
    }
    of = g_mime_content_type_get_parameter(type, "report-type");
    return of ? of : "";
}

/* Return the address that complains to Outlook.com about the mail which MAIL,
 * MIME, returns without a report (JMRP), in POOL; NULL if that is none. */
static const char *outlook_complainer(const crm_mail_t *mail,
                                      GMimeMessage *mime, apr_pool_t *pool)
{
    GMimeObject *top = g_mime_message_get_mime_part(mime), *part;
    GMimeMessage *inner = NULL;

    if (!mail->from || strcasecmp(mail->from, "staff@hotmail.com")
        || !GMIME_IS_MULTIPART(top)
        || !(part = g_mime_multipart_get_part(GMIME_MULTIPART(top), 0))) {
        return NULL;
    }
    if (GMIME_IS_MESSAGE_PART(part)) {
        inner = g_mime_message_part_get_message(GMIME_MESSAGE_PART(part));
    }
    return !inner ? NULL : address_in(crm_mail_header(
                                          inner, "X-HmXmrOriginalRecipient",
                                          TEXT_CHARS, pool), pool);
}

int crm_mail_complained(crm_mail_t *mail, GMimeMessage *mime,
                        apr_pool_t *pool)
{
    static const char *const others[] = {
        "not-spam", "auth-failure", "dmarc", "virus"
    };
    const char *type = crm_mail_report_type(mime), *kind = NULL;
    GMimeObject *top = g_mime_message_get_mime_part(mime);
    apr_array_header_t *parts = apr_array_make(pool, 1, sizeof(GMimePart *));

    if (top) {
        find_parts(parts, top, is_feedback_report, NULL, 0);
    }
    mail->complainer = outlook_complainer(mail, mime, pool);
    if (!parts->nelts && !mail->complainer
        && (!type || strcasecmp(type, "feedback-report"))) {
        return 0;
    }
    if (parts->nelts) {
        apr_size_t len;
        const char *bytes = crm_mail_bytes(
            &len, APR_ARRAY_IDX(parts, 0, GMimePart *), pool);

        kind = field(bytes, len, "Feedback-Type", pool);
        mail->complainer = address_in(field(bytes, len, "Original-Rcpt-To",
                                            pool), pool);
    }
    mail->complaint = !CRM_EQUALS_ONE_OF(kind, others);
    crm_mail_returned_parts(mail, mime, pool);
    return 1;
}

/* Read the delivery status of MIME, a report, into MAIL's bounces. Return
 * whether it has one. Some servers send a part for each recipient, or one with
 * words before the one with fields. */
static int read_report(crm_mail_t *mail, GMimeMessage *mime, apr_pool_t *pool)
{
    GMimeObject *top = g_mime_message_get_mime_part(mime);
    apr_array_header_t *parts = apr_array_make(pool, 2, sizeof(GMimePart *));

    find_parts(parts, top, is_delivery_status, NULL, 0);
    if (!parts->nelts) {
        find_parts(parts, top, has_fields, pool, 0);
    }
    for (int i = 0; i < parts->nelts; i++) {
        read_status(mail, APR_ARRAY_IDX(parts, i, GMimePart *), pool);
    }
    return parts->nelts > 0;
}

int crm_mail_bounced(crm_mail_t *mail, GMimeMessage *mime, int daemon,
                     apr_pool_t *pool)
{
    apr_array_header_t *failed = apr_array_make(pool, 2,
                                                sizeof(const char *));
    const char *type = crm_mail_report_type(mime), *explained;
    int is_bounce = type && !strcasecmp(type, "delivery-status");

    crm_mail_addresses(failed, mime, "X-Failed-Recipients", pool);
    if (type && *type && !is_bounce) {
        return 0;               /* another report, whoever sent it */
    }
    if (is_bounce || daemon || type) {
        is_bounce |= read_report(mail, mime, pool);
    }
    is_bounce |= failed->nelts || is_qmail(mail);
    if (!is_bounce && !daemon && !type) {
        return 0;
    }
    is_bounce |= crm_mail_returned_parts(mail, mime, pool) > 0;
    is_bounce |= crm_mail_returned_text(&explained, mail, mail->text, pool)
                 > 0;
    if (mail->bounces->nelts) {
        read_more(mail, explained, pool);
    }
    else if (is_bounce) {
        read_text(mail, explained, failed, pool);
    }
    else {
        read_claim(mail, explained, pool);
    }
    return is_bounce;
}
