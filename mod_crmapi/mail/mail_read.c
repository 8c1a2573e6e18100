/* SPDX-License-Identifier: Apache-2.0 */
/* mail_read.c: parsing a mail, and reading its headers */
#include "mail_read.h"

#include <string.h>
#include <strings.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_buf.h"
#include "crm_text.h"
#include "mail_base64.h"
#include "mail_charset.h"
#include "mail_detect.h"
#include "mail_label.h"
#include "mail_repair.h"
#include "mail_tree.h"
#include "mail_word.h"

/* ---- bytes --------------------------------------------------------------- */

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

/* The name of a message's property: crm_mail_hint(). */
#define HINT "crm-charset"

#define DEPTH 8

/* Bytes of the text whose charset is detected. */
#define HINT_BYTES 65536

/* Return the first part of type text in OBJECT, NULL if there is none. */
static GMimePart *find_text(GMimeObject *object, int depth)
{
    GMimePart *found = NULL;

    if (object && GMIME_IS_MULTIPART(object) && depth < DEPTH) {
        GMimeMultipart *multipart = GMIME_MULTIPART(object);
        int count = g_mime_multipart_get_count(multipart);

        for (int i = 0; !found && i < count && i < DEPTH; i++) {
            found = find_text(g_mime_multipart_get_part(multipart, i),
                              depth + 1);
        }
    }
    else if (object && GMIME_IS_PART(object)
             && g_mime_content_type_is_type(
                 g_mime_object_get_content_type(object), "text", "*")) {
        found = GMIME_PART(object);
    }
    return found;
}

/* Return the values of MIME's headers that are not UTF-8, one after the other,
 * in POOL; "" if there is none. */
static const char *odd_values(GMimeMessage *mime, apr_pool_t *pool)
{
    GMimeHeaderList *list = g_mime_object_get_header_list(GMIME_OBJECT(mime));
    int count = g_mime_header_list_get_count(list);
    crm_buf_t values;

    crm_buf_init(&values, 0, pool);
    for (int i = 0; i < count && values.len < HINT_BYTES; i++) {
        const char *raw = g_mime_header_get_raw_value(
            g_mime_header_list_get_header_at(list, i));
        apr_size_t len = raw ? strnlen(raw, HINT_BYTES) : 0;

        if (len && !crm_text_valid_utf8(raw, len)) {
            crm_buf_add(&values, raw, len);
        }
    }
    crm_buf_putc(&values, '\0');
    return values.data;
}

/* Set the property HINT of MIME: the charset that its text declares; without
 * one, what is detected in its text and in the headers. */
static void set_hint(GMimeMessage *mime, apr_pool_t *pool)
{
    GMimePart *part = find_text(g_mime_message_get_mime_part(mime), 0);
    const char *charset = part ? g_mime_object_get_content_type_parameter(
                              GMIME_OBJECT(part), "charset") : NULL;
    const char *values = odd_values(mime, pool), *bytes;
    crm_mail_charset_t found = crm_mail_label(charset);
    apr_size_t len = 0;

    if (!*values) {
        return;
    }
    if (found.coding == CRM_MAIL_UNKNOWN || found.coding == CRM_MAIL_UTF8) {
        bytes = part ? crm_mail_bytes(&len, part, pool) : "";
        len = len < HINT_BYTES ? len : HINT_BYTES;
        if (!crm_text_valid_utf8(bytes, len)) {
            values = apr_pstrcat(pool, apr_pstrmemdup(pool, bytes, len), "\n",
                                 values, NULL);
        }
        found = crm_mail_detect(values, strlen(values));
    }
    g_object_set_data_full(G_OBJECT(mime), HINT, g_strdup(found.name), g_free);
}

GMimeMessage *crm_mail_parse(unsigned *cut_p, const char *bytes,
                             apr_size_t len, apr_pool_t *pool)
{
    GMimeMessage *message;

    bytes = prepare(&len, bytes, len, pool);
    bytes = crm_mail_repair(&len, bytes, pool);
    message = crm_mail_tree(cut_p, bytes, len, pool);
    set_hint(message, pool);
    return message;
}

GMimeMessage *crm_mail_parse_head(unsigned *cut_p, const char *bytes,
                                  apr_size_t len, apr_pool_t *pool)
{
    bytes = prepare(&len, bytes, len, pool);
    return crm_mail_tree_head(cut_p, bytes, len, pool);
}

/* Return the bytes of CONTENT, *LEN_P and a NUL, in POOL: decoded, or as they came
 * if RAW. */
static const char *read_content(apr_size_t *len_p, GMimeDataWrapper *content,
                                int raw, apr_pool_t *pool)
{
    GMimeStream *stream = g_mime_stream_mem_new();
    GByteArray *array;
    const char *bytes;

    if (content && raw) {
        g_mime_stream_reset(g_mime_data_wrapper_get_stream(content));
        g_mime_stream_write_to_stream(g_mime_data_wrapper_get_stream(content),
                                      stream);
    }
    else if (content) {
        g_mime_data_wrapper_write_to_stream(content, stream);
    }
    array = g_mime_stream_mem_get_byte_array(GMIME_STREAM_MEM(stream));
    *len_p = array->len;
    bytes = array->len ? apr_pstrmemdup(pool, (const char *)array->data,
                                        array->len) : "";
    g_object_unref(stream);
    return bytes;
}

/* Return the LEN bytes RAW of base64, decoded: *LEN_P bytes and a NUL, in POOL.
 * Several pieces may be joined, each with its own padding; some have none. What is
 * behind the last one is words. */
static const char *decode_base64(apr_size_t *len_p, const char *raw,
                                 apr_size_t len, apr_pool_t *pool)
{
    crm_buf_t all;

    len = crm_mail_base64_end(raw, len);
    crm_buf_init(&all, len, pool);
    while (len) {
        apr_size_t piece = crm_mail_base64_piece(raw, len);
        const char *pad = memchr(raw, '=', piece);

        crm_mail_base64_add(&all, raw, pad ? (apr_size_t)(pad - raw) : piece);
        raw += piece;
        len -= piece;
    }
    *len_p = all.len;
    crm_buf_putc(&all, '\0');
    return all.data;
}

/* Return the LEN bytes RAW of quoted-printable as decode_base64(). Blanks behind the
 * '=' of a soft line end are none of it (RFC 2045, 6.7). */
static const char *decode_quoted(apr_size_t *len_p, const char *raw,
                                 apr_size_t len, apr_pool_t *pool)
{
    char *bare = apr_palloc(pool, len + 1), *out = bare;
    GMimeStream *stream;
    GMimeDataWrapper *content;
    const char *bytes;

    for (apr_size_t i = 0; i < len; i++) {
        *out++ = raw[i];
        if (raw[i] == '=') {
            apr_size_t blanks = strspn(raw + i + 1, " \t");

            i += strchr("\r\n", raw[i + 1 + blanks]) ? blanks : 0;
        }
    }
    stream = g_mime_stream_mem_new_with_buffer(bare, (size_t)(out - bare));
    content = g_mime_data_wrapper_new_with_stream(
        stream, GMIME_CONTENT_ENCODING_QUOTEDPRINTABLE);
    bytes = read_content(len_p, content, 0, pool);
    g_object_unref(content);
    g_object_unref(stream);
    return bytes;
}

/* Return whether the LEN bytes RAW, a text in CHARSET (may be NULL) whose encoding is
 * not declared, are quoted-printable: each '=' is part of it, and two that follow each
 * other stand for bytes above 0x7f, or one stands for itself and another one for a
 * line's going on. One alone may be of a URL, "?id=a1b2". */
static int is_quoted(const char *raw, apr_size_t len, const char *charset,
                     apr_pool_t *pool)
{
    crm_mail_charset_t known = crm_mail_label(charset);
    int pair = 0, equals = 0, soft = 0;
    const char *at = raw, *end = raw + len;

    while ((at = memchr(at, '=', (size_t)(end - at)))) {
        apr_size_t left = (apr_size_t)(end - ++at);
        int escape = left > 1 && apr_isxdigit(*at) && apr_isxdigit(at[1]);

        if (!escape && !(left && strchr("\r\n", *at))) {
            return 0;
        }
        soft |= !escape;
        pair |= escape && *at > '7' && left > 3 && at[2] == '=' && at[3] > '7'
                && apr_isxdigit(at[3]);
        equals |= escape && !strncasecmp(at, "3d", 2);
    }
    if (!(pair || (equals && soft)) || !crm_text_is_ascii(raw)) {
        return 0;
    }
    raw = decode_quoted(&len, raw, len, pool);
    return known.coding == CRM_MAIL_SINGLE || known.coding == CRM_MAIL_MULTI
           || crm_text_valid_utf8(raw, len);
}

/* Return whether CONTENT, base64, is not one piece that ends with its padding. GMime
 * stops there or goes on, by its release. */
static int has_pieces(GMimeDataWrapper *content)
{
    GMimeStream *stream = g_mime_data_wrapper_get_stream(content);
    apr_size_t count = 0, before;
    int padded = 0, clean = 1;
    char bytes[4096];
    ssize_t n;

    g_mime_stream_reset(stream);
    while ((n = g_mime_stream_read(stream, bytes, sizeof(bytes))) > 0) {
        for (apr_size_t at = 0, end; at < (apr_size_t)n; at = end + 1) {
            const char *pad = memchr(bytes + at, '=', (apr_size_t)n - at);

            end = pad ? (apr_size_t)(pad - bytes) : (apr_size_t)n;
            before = count;
            clean &= crm_mail_base64_digits(&count, bytes + at, end - at);
            if (padded && (count > before || !clean)) {
                return 1;
            }
            padded |= pad != NULL;
        }
    }
    return !padded && clean && count % 4;
}

/* Return the bytes of CONTENT, of a text of TYPE in ENCODING, as crm_mail_bytes(). */
static const char *text_bytes(apr_size_t *len_p, GMimeDataWrapper *content,
                              GMimeContentType *type,
                              GMimeContentEncoding encoding, apr_pool_t *pool)
{
    const char *charset = g_mime_content_type_get_parameter(type, "charset");
    const char *raw = read_content(
        len_p, content, encoding != GMIME_CONTENT_ENCODING_UUENCODE, pool);

    switch (encoding) {
    case GMIME_CONTENT_ENCODING_BASE64:
        return crm_mail_is_base64(raw, *len_p, charset, pool)
               ? decode_base64(len_p, raw, *len_p, pool) : raw;
    case GMIME_CONTENT_ENCODING_QUOTEDPRINTABLE:
    case GMIME_CONTENT_ENCODING_DEFAULT:
    case GMIME_CONTENT_ENCODING_7BIT:
    case GMIME_CONTENT_ENCODING_8BIT:
        if (crm_mail_is_bare_base64(raw, *len_p, pool)) {
            return decode_base64(len_p, raw, *len_p, pool);
        }
        return encoding == GMIME_CONTENT_ENCODING_QUOTEDPRINTABLE
               || (encoding == GMIME_CONTENT_ENCODING_DEFAULT
                   && is_quoted(raw, *len_p, charset, pool))
               ? decode_quoted(len_p, raw, *len_p, pool) : raw;
    default:
        return raw;
    }
}

const char *crm_mail_bytes(apr_size_t *len_p, GMimePart *part,
                           apr_pool_t *pool)
{
    GMimeDataWrapper *content = g_mime_part_get_content(part);
    GMimeContentType *type =
        g_mime_object_get_content_type(GMIME_OBJECT(part));
    GMimeContentEncoding encoding = g_mime_part_get_content_encoding(part);
    const char *raw;

    if (g_mime_content_type_is_type(type, "text", "*")) {
        return text_bytes(len_p, content, type, encoding, pool);
    }
    if (content && encoding == GMIME_CONTENT_ENCODING_BASE64
        && has_pieces(content)) {
        raw = read_content(len_p, content, 1, pool);
        return decode_base64(len_p, raw, *len_p, pool);
    }
    return read_content(len_p, content, 0, pool);
}

const char *crm_mail_source(crm_mail_t *mail, unsigned bit, const char *bytes,
                            apr_size_t len, const char *charset,
                            apr_pool_t *pool)
{
    apr_size_t most = CRM_MAIL_SOURCES_BYTES - mail->converted;

    most = most < CRM_MAIL_SOURCE_BYTES ? most : CRM_MAIL_SOURCE_BYTES;
    if (len > most) {
        mail->cut |= bit;
        /* not within a character of UTF-8 */
        for (len = most; len && len + 4 > most
             && (bytes[len] & 0xc0) == 0x80; len--) {
        }
    }
    mail->converted += len;
    return crm_mail_utf8(bytes, len, charset, pool);
}

/* ---- headers ------------------------------------------------------------- */

const char *crm_mail_hint(GMimeMessage *mime)
{
    return g_object_get_data(G_OBJECT(mime), HINT);
}

const char *crm_mail_header(GMimeMessage *mime, const char *name,
                            apr_size_t max, apr_pool_t *pool)
{
    GMimeHeader *header = g_mime_header_list_get_header(
        g_mime_object_get_header_list(GMIME_OBJECT(mime)), name);
    const char *raw = header ? g_mime_header_get_raw_value(header) : NULL;

    return raw ? crm_mail_line(crm_mail_decode(raw, crm_mail_hint(mime), pool),
                               max, pool) : NULL;
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
