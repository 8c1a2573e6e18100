/* SPDX-License-Identifier: Apache-2.0 */
/* mail_read.c: parsing a mail, and reading its headers */
#include "mail_read.h"

#include <string.h>
#include <strings.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "mail_charset.h"

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
