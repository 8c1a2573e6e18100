/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_mime.c: a message as a mail (RFC 5322, MIME) */
#include "crmapid_mime.h"

#include <string.h>
#include <strings.h>

#include <gmime/gmime.h>

#include "apr_strings.h"

#include "crm_email_wire.h"
#include "crm_html.h"
#include "crm_mail.h"

#include "crmapid_mail_header.h"
#include "crmapid_mail_html.h"

/* Maximum bytes of texts in headers; the rest is cut off. */
#define NAME_BYTES 256
#define SUBJECT_BYTES 2000

/* Maximum bytes of a name that is not put into encoded words. GMime folds longer
 * ones inside the quotes, and some mail readers show the fold. */
#define PLAIN_NAME_BYTES 64

/* ---- bodies -------------------------------------------------------------- */

/* Return TEXT, in POOL, with END as the end of each line. */
static crm_buf_t *lines(const char *text, const char *end, apr_pool_t *pool)
{
    crm_buf_t *buf = apr_palloc(pool, sizeof(*buf));

    crm_buf_init(buf, strlen(text) + 64, pool);
    for (; *text; text++) {
        if (*text == '\r' && text[1] == '\n') {
            continue;
        }
        if (*text == '\r' || *text == '\n') {
            crm_buf_puts(buf, end);
        }
        else {
            crm_buf_putc(buf, *text);
        }
    }
    return buf;
}

static GMimeStream *stream_of(const crm_buf_t *buf)
{
    return g_mime_stream_mem_new_with_buffer(buf->data, buf->len);
}

/* Return the shorter encoding for BUF. Both are 7 bit, so that no server has to
 * convert the mail. */
static GMimeContentEncoding encoding_of(const crm_buf_t *buf)
{
    apr_size_t high = 0;

    for (apr_size_t i = 0; i < buf->len; i++) {
        high += (buf->data[i] & 0x80) != 0;
    }
    return high > buf->len / 6 ? GMIME_CONTENT_ENCODING_BASE64
                               : GMIME_CONTENT_ENCODING_QUOTEDPRINTABLE;
}

/* Return a new part of type text/SUBTYPE with TEXT. */
static GMimeObject *make_part(const char *subtype, const char *text,
                              apr_pool_t *pool)
{
    GMimePart *part = g_mime_part_new_with_type("text", subtype);
    crm_buf_t *buf = lines(text, "\n", pool);
    GMimeContentEncoding encoding = encoding_of(buf);
    GMimeDataWrapper *content;
    GMimeStream *stream;

    if (encoding == GMIME_CONTENT_ENCODING_BASE64) {
        /* Base64 encodes text with CR LF (RFC 2045, 6.8). */
        buf = lines(text, "\r\n", pool);
    }
    stream = stream_of(buf);
    content = g_mime_data_wrapper_new_with_stream(
        stream, GMIME_CONTENT_ENCODING_DEFAULT);
    g_mime_object_set_content_type_parameter(GMIME_OBJECT(part), "charset",
                                             "utf-8");
    g_mime_part_set_content(part, content);
    g_mime_part_set_content_encoding(part, encoding);
    g_object_unref(content);
    g_object_unref(stream);
    return GMIME_OBJECT(part);
}

static const char *text_of(const crmd_message_t *message, apr_pool_t *pool)
{
    const char *text = message->text ? message->text : "";

    if (!message->unsubscribe) {
        return text;
    }
    return apr_pstrcat(pool, text, "\n\nUnsubscribe: ", message->unsubscribe,
                       "\n", NULL);
}

/* Return the offset of "</body>" in HTML, or of its end: new content can be
 * inserted there. */
static apr_size_t end_of_body(const char *html)
{
    static const char end[] = "</body>";
    apr_size_t len = strlen(html);

    for (apr_size_t i = len; i-- > 0;) {
        if (html[i] == '<' && !strncasecmp(html + i, end, sizeof(end) - 1)) {
            return i;
        }
    }
    return len;
}

static const char *html_of(const crmd_message_t *message, apr_pool_t *pool)
{
    const char *rest = "</body></html>\n";
    crm_buf_t buf;

    crm_buf_init(&buf, 4096, pool);
    if (message->html) {
        rest = message->html + end_of_body(message->html);
        crm_buf_add(&buf, message->html, (apr_size_t)(rest - message->html));
    }
    else {
        crm_buf_puts(&buf, "<!DOCTYPE html>\n<html><head>"
                     "<meta charset=\"utf-8\"></head><body>\n");
        crmd_mail_html(&buf, message->text ? message->text : "");
    }
    if (message->unsubscribe) {
        crm_html_put(&buf, "\n<p><a href=\"", message->unsubscribe,
                     "\">Unsubscribe</a></p>\n", NULL);
    }
    crm_buf_puts(&buf, rest);
    crm_buf_putc(&buf, '\0');
    return buf.data;
}

/* Return the media type that FILE is sent with. A part of the types message and
 * multipart is no base64 (RFC 2045, 6.4). */
static const char *type_of(const crmd_file_t *file)
{
    return strncasecmp(file->type, "message/", 8)
           && strncasecmp(file->type, "multipart/", 10)
           ? file->type : "application/octet-stream";
}

/* Return a new part with FILE. */
static GMimeObject *make_file(const crmd_file_t *file)
{
    GMimeContentType *type = g_mime_content_type_parse(NULL, type_of(file));
    GMimePart *part = g_mime_part_new();
    GMimeStream *stream = g_mime_stream_mem_new_with_buffer(file->data,
                                                            file->len);
    GMimeDataWrapper *content = g_mime_data_wrapper_new_with_stream(
        stream, GMIME_CONTENT_ENCODING_DEFAULT);

    g_mime_object_set_content_type(GMIME_OBJECT(part), type);
    g_mime_part_set_filename(part, file->name);
    g_mime_part_set_content(part, content);
    g_mime_part_set_content_encoding(part, GMIME_CONTENT_ENCODING_BASE64);
    g_object_unref(type);
    g_object_unref(content);
    g_object_unref(stream);
    return GMIME_OBJECT(part);
}

/* Return TEXT, whose reference it takes, with the files of MESSAGE, if there are
 * any. */
static GMimeObject *with_files(GMimeObject *text, const crmd_message_t *message)
{
    GMimeMultipart *mixed;

    if (!message->file_count) {
        return text;
    }
    mixed = g_mime_multipart_new_with_subtype("mixed");
    g_mime_multipart_add(mixed, text);
    g_object_unref(text);
    for (int i = 0; i < message->file_count; i++) {
        GMimeObject *part = make_file(&message->files[i]);

        g_mime_multipart_add(mixed, part);
        g_object_unref(part);
    }
    return GMIME_OBJECT(mixed);
}

static GMimeObject *make_body(const crmd_message_t *message, apr_pool_t *pool)
{
    GMimeMultipart *multipart;
    GMimeObject *part;

    if (!crm_channel_is(message->channel, CRM_CHANNEL_EMAIL)) {
        return make_part("plain", message->text ? message->text : "", pool);
    }
    multipart = g_mime_multipart_new_with_subtype("alternative");
    part = make_part("plain", text_of(message, pool), pool);
    g_mime_multipart_add(multipart, part);
    g_object_unref(part);
    part = make_part("html", html_of(message, pool), pool);
    g_mime_multipart_add(multipart, part);
    g_object_unref(part);
    return with_files(GMIME_OBJECT(multipart), message);
}

/* ---- headers ------------------------------------------------------------- */

/* Return ADDRESS, that of MAILBOX, with its domain in ASCII, in POOL. */
static const char *ascii_of(InternetAddress *mailbox, const char *address,
                            apr_pool_t *pool)
{
    const char *ascii = strchr(address, '@')
        ? internet_address_mailbox_get_idn_addr(
              INTERNET_ADDRESS_MAILBOX(mailbox)) : NULL;

    return ascii ? apr_pstrdup(pool, ascii) : address;
}

/* Set the value of the header NAME to VALUE, which is ASCII and folded. */
static void set_raw(GMimeMessage *mime, const char *name, const char *value,
                    apr_pool_t *pool)
{
    GMimeHeaderList *list = g_mime_object_get_header_list(GMIME_OBJECT(mime));

    g_mime_header_set_raw_value(g_mime_header_list_get_header(list, name),
                                apr_pstrcat(pool, " ", value, "\n", NULL));
}

/* Add a header with a VALUE that is ASCII, folded where it is. */
static void add_raw(GMimeMessage *mime, const char *name, const char *value,
                    apr_pool_t *pool)
{
    g_mime_header_list_append(g_mime_object_get_header_list(
                                  GMIME_OBJECT(mime)), name, value, NULL);
    set_raw(mime, name, value, pool);
}

/* Add a mailbox of NAME and ADDRESS to the header of TYPE. Return ADDRESS in
 * ASCII. */
static const char *add_mailbox(GMimeMessage *mime, GMimeAddressType type,
                               const char *name, const char *address,
                               apr_pool_t *pool)
{
    static const char *const fields[] = {
        [GMIME_ADDRESS_TYPE_FROM] = "From", [GMIME_ADDRESS_TYPE_TO] = "To",
        [GMIME_ADDRESS_TYPE_REPLY_TO] = "Reply-To"
    };
    InternetAddress *mailbox;
    const char *ascii;

    name = crmd_mail_line(name, NAME_BYTES, pool);
    mailbox = internet_address_mailbox_new(*name ? name : NULL, address);
    ascii = ascii_of(mailbox, address, pool);
    internet_address_mailbox_set_addr(INTERNET_ADDRESS_MAILBOX(mailbox),
                                      ascii);
    internet_address_list_add(g_mime_message_get_addresses(mime, type),
                              mailbox);
    g_object_unref(mailbox);
    if (crmd_mail_needs_words(name) || strlen(name) > PLAIN_NAME_BYTES) {
        set_raw(mime, fields[type], crmd_mail_words(fields[type], name, ascii,
                                                    pool), pool);
    }
    return ascii;
}

/* Add the subject TEXT. Mail programs look for its "Re: ", which is no encoded
 * word. */
static void add_subject(GMimeMessage *mime, const char *text, apr_pool_t *pool)
{
    const char *re;

    text = crmd_mail_line(text, SUBJECT_BYTES, pool);
    re = strncasecmp(text, "re: ", 4) ? "" : "Re: ";
    g_mime_message_set_subject(mime, text, NULL);
    if (crmd_mail_needs_words(text)) {
        set_raw(mime, "Subject", apr_pstrcat(
                    pool, re, crmd_mail_words(*re ? "Subject: Re" : "Subject",
                                              text + strlen(re), NULL, pool),
                    NULL), pool);
    }
}

/* Add a header of words, each on a line of its own (RFC 5322, 2.2.3). */
static void add_folded(GMimeMessage *mime, const char *name, const char *words,
                       apr_pool_t *pool)
{
    char *copy = apr_pstrdup(pool, words), *state;
    const char *word = apr_strtok(copy, " ", &state), *value = "";

    for (; word; word = apr_strtok(NULL, " ", &state)) {
        value = apr_pstrcat(pool, value, *value ? "\n " : "", word, NULL);
    }
    add_raw(mime, name, value, pool);
}

static void add_dates(GMimeMessage *mime, const char *message_id)
{
    GDateTime *now = g_date_time_new_now_utc();

    g_mime_message_set_date(mime, now);
    g_date_time_unref(now);
    g_mime_message_set_message_id(mime, message_id);
}

/* Add the headers that replies and reports are known by (contract 18.4). */
static void add_thread(GMimeMessage *mime, const crmd_message_t *message,
                       apr_pool_t *pool)
{
    const char *last = message->references
                       ? strrchr(message->references, '<') : NULL;

    if (message->reply_to && crm_email_wire(message->reply_to)) {
        add_mailbox(mime, GMIME_ADDRESS_TYPE_REPLY_TO, message->from_name,
                    message->reply_to, pool);
    }
    if (last) {
        add_folded(mime, "References", message->references, pool);
        add_raw(mime, "In-Reply-To", last, pool);
    }
    if (message->thread_index) {
        add_raw(mime, "Thread-Index", message->thread_index, pool);
    }
    if (message->token) {
        add_raw(mime, CRM_MAIL_TOKEN_HEADER, message->token, pool);
    }
}

static void add_headers(GMimeMessage *mime, crmd_mail_t *mail,
                        const crmd_message_t *message,
                        const crmd_config_t *config, apr_pool_t *pool)
{
    int own = message->from && *message->from;
    int email = crm_channel_is(message->channel, CRM_CHANNEL_EMAIL);

    mail->from = add_mailbox(mime, GMIME_ADDRESS_TYPE_FROM,
                             own ? message->from_name
                             : email ? config->mail_from_name : NULL,
                             mail->from, pool);
    mail->to = add_mailbox(mime, GMIME_ADDRESS_TYPE_TO, message->to_name,
                           mail->to, pool);
    for (const char *const *copy = mail->copies; copy && *copy; copy++) {
        add_mailbox(mime, GMIME_ADDRESS_TYPE_CC, NULL, *copy, pool);
    }
    add_subject(mime, email ? crmd_subject_of(message, pool)
                : message->objective, pool);
    add_dates(mime, apr_pstrmemdup(pool, mail->message_id + 1,
                                   strlen(mail->message_id) - 2));
    if (!email) {
        add_raw(mime, "X-Crmapi-Channel", message->channel->way, pool);
    }
    if (message->automatic) {
        add_raw(mime, "Auto-Submitted", "auto-generated", pool); /* RFC 3834 */
    }
    if (email) {
        add_thread(mime, message, pool);
    }
    if (email && message->unsubscribe) {
        add_raw(mime, "List-Unsubscribe",
                apr_pstrcat(pool, "<", message->unsubscribe, ">", NULL), pool);
        add_raw(mime, "List-Unsubscribe-Post", "List-Unsubscribe=One-Click",
                pool);          /* RFC 8058 */
    }
}

/* ---- the mail ------------------------------------------------------------ */

/* Return whether TEXT is printable ASCII without spaces and without characters
 * of REJECTED. */
static int is_plain(const char *text, const char *rejected)
{
    const char *c = text;

    while (*c > ' ' && *c < 0x7f && !strchr(rejected, *c)) {
        c++;
    }
    return *text && !*c;
}

static crm_error_t *unusable(const char *what, apr_pool_t *pool)
{
    return crm_error_create(CRM_E_BAD_REQUEST, what, pool);
}

/* Set the recipients of MAIL, addresses if EMAIL, else numbers. */
static crm_error_t *read_recipients(crmd_mail_t *mail,
                                    const crmd_message_t *message, int email,
                                    apr_pool_t *pool)
{
    const char *const *copy = message->copies;
    apr_array_header_t *copies = apr_array_make(pool, 1, sizeof(char *));

    mail->to = !message->to ? NULL
               : email ? crm_email_wire_quoted(message->to, pool)
               : crmd_mail_number(message->to) ? message->to : NULL;
    if (!mail->to) {
        return unusable("the recipient's address is not usable", pool);
    }
    for (; copy && *copy; copy++) {
        const char *made = crm_email_wire_quoted(*copy, pool);

        if (!made) {
            return unusable("an address of cc is not usable", pool);
        }
        APR_ARRAY_PUSH(copies, const char *) = made;
    }
    APR_ARRAY_PUSH(copies, const char *) = NULL;
    mail->copies = (const char *const *)(void *)copies->elts;
    return NULL;
}

/* Set the sender, the recipient and the Message-ID of MAIL. Errors: a value of
 * MESSAGE or CONFIG cannot be used in a header. */
static crm_error_t *read_names(crmd_mail_t *mail,
                               const crmd_message_t *message,
                               const crmd_config_t *config, apr_pool_t *pool)
{
    const char *sender = crmd_sender_of(message, config);
    int (*usable)(const char *) = crmd_mail_number;

    if (crm_channel_is(message->channel, CRM_CHANNEL_EMAIL)) {
        usable = crm_email_wire;
    }
    if (!is_plain(message->id, "<>@\"(),:;\\[]")) {
        return unusable("the message has no usable id", pool);
    }
    if (message->unsubscribe && !is_plain(message->unsubscribe, "<>\"")) {
        return unusable("the unsubscribe link is not a URL", pool);
    }
    mail->message_id = message->message_id ? message->message_id
                       : apr_pstrcat(pool, "<", message->id, "@",
                                     config->mail_domain, ">", NULL);
    mail->from = sender;
    if (!sender) {
        mail->from = usable == crmd_mail_number ? "crmapi"
            : apr_pstrcat(pool, "crmapi@", config->mail_domain, NULL);
    }
    if (!usable(mail->from)) {
        return unusable("the sender's address is not usable", pool);
    }
    return read_recipients(mail, message, usable == crm_email_wire, pool);
}

/* Set MAIL's text to MIME. */
static void write_mail(crmd_mail_t *mail, GMimeMessage *mime, int crlf,
                       apr_pool_t *pool)
{
    GMimeFormatOptions *options = g_mime_format_options_new();
    GMimeStream *stream = g_mime_stream_mem_new();
    GByteArray *bytes;

    g_mime_format_options_set_newline_format(
        options, crlf ? GMIME_NEWLINE_FORMAT_DOS : GMIME_NEWLINE_FORMAT_UNIX);
    g_mime_object_write_to_stream(GMIME_OBJECT(mime), options, stream);
    bytes = g_mime_stream_mem_get_byte_array(GMIME_STREAM_MEM(stream));
    mail->len = bytes->len;
    mail->text = apr_pstrmemdup(pool, (const char *)bytes->data, bytes->len);
    g_object_unref(stream);
    g_mime_format_options_free(options);
}

/* Make MAIL from MESSAGE. MAIL's sender, recipient and Message-ID are set. */
static void make_mail(crmd_mail_t *mail, const crmd_message_t *message,
                      const crmd_config_t *config, int crlf, apr_pool_t *pool)
{
    GMimeMessage *mime = g_mime_message_new(FALSE);
    GMimeObject *body = make_body(message, pool);

    add_headers(mime, mail, message, config, pool);
    g_mime_message_set_mime_part(mime, body);
    g_object_unref(body);
    write_mail(mail, mime, crlf, pool);
    g_object_unref(mime);
}

crm_error_t *crmd_mail_make(crmd_mail_t *mail, const crmd_message_t *message,
                            const crmd_config_t *config, int crlf,
                            apr_pool_t *result_pool)
{
    CRM_ERR(read_names(mail, message, config, result_pool));
    crm_mail_init();
    make_mail(mail, message, config, crlf, result_pool);
    if (message->return_to && crm_email_wire(message->return_to)) {
        mail->from = message->return_to;
    }
    return NULL;
}
