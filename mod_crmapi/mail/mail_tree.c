/* SPDX-License-Identifier: Apache-2.0 */
/* mail_tree.c: the parts of a mail, within limits (contract 18.7)
 *
 * GMime's parser compares each line with the boundaries of all levels, reads
 * any number of parts, and keeps enclosed mails whole. So the lines are read
 * here, and GMime gets one header at a time. */
#include "mail_tree.h"

#include <string.h>
#include <strings.h>

#include "apr_hash.h"
#include "apr_strings.h"

#include "crm_mail.h"
#include "mail_head.h"
#include "mail_repair.h"

/* The property of a part with its enclosed_t. */
#define ENCLOSED "crm-enclosed"

/* Lines before the first part that are looked at for a boundary, and bytes in which
 * one that is declared must be used, if these have another one. */
#define PREAMBLE 10
#define USED_BYTES (64 * 1024)

/* What the last line was that was looked at. */
#define NO_BOUNDARY (-1)
#define NO_MORE_LINES 0         /* otherwise the level of a boundary */

typedef struct reader_t {
    const char *at, *end;
    apr_hash_t *boundaries;     /* of int *: the levels of open boundaries */
    int stop;                   /* NO_BOUNDARY, NO_MORE_LINES, or the level of
                                   the boundary at AT */
    int closes;                 /* that boundary is the last one */
    int parts;
    unsigned *cut;
    apr_pool_t *pool;
} reader_t;

typedef struct enclosed_t {
    const char *bytes;
    apr_size_t len;
} enclosed_t;

/* ---- lines --------------------------------------------------------------- */

static const char *next_line(const reader_t *reader)
{
    const char *end = memchr(reader->at, '\n',
                             (apr_size_t)(reader->end - reader->at));

    return end ? end + 1 : reader->end;
}

/* Return LEN without the white space at the end of TEXT, LEN bytes. */
static apr_size_t trimmed(const char *text, apr_size_t len)
{
    while (len && strchr(" \t\r\n", text[len - 1])) {
        len--;
    }
    return len;
}

/* Set STOP and CLOSES of READER to what the line at AT is, which ends at NEXT
 * (RFC 2046, 5.1.1). Return whether it ends a part. */
static int is_stop(reader_t *reader, const char *next)
{
    const char *text = reader->at + 2;
    const int *level = NULL;
    apr_size_t len;

    reader->stop = reader->at < reader->end ? NO_BOUNDARY : NO_MORE_LINES;
    if (next - reader->at < 3 || reader->at[0] != '-' || reader->at[1] != '-'
        || !apr_hash_count(reader->boundaries)) {
        return reader->stop == NO_MORE_LINES;
    }
    len = trimmed(text, (apr_size_t)(next - text));
    level = apr_hash_get(reader->boundaries, text, (apr_ssize_t)len);
    reader->closes = !level;
    if (!level && len > 2 && text[len - 1] == '-' && text[len - 2] == '-') {
        level = apr_hash_get(reader->boundaries, text, (apr_ssize_t)len - 2);
    }
    reader->stop = level ? *level : NO_BOUNDARY;
    return level != NULL;
}

/* Move READER to the next boundary. Return the end of what stands before it: the
 * last line end belongs to the boundary. */
static const char *scan(reader_t *reader)
{
    const char *begin = reader->at, *end, *next;

    while (!is_stop(reader, next = next_line(reader))) {
        reader->at = next;
    }
    end = reader->at;
    if (reader->stop != NO_MORE_LINES && end > begin) {
        end--;
        end -= end > begin && end[-1] == '\r';
    }
    return end;
}

/* ---- headers ------------------------------------------------------------- */

/* Return whether the line at READER, LEN bytes, is empty. */
static int is_empty(const reader_t *reader, apr_size_t len)
{
    return *reader->at == '\n' || (len == 2 && !memcmp(reader->at, "\r\n", 2));
}

/* Return whether the line at READER, LEN bytes, has blanks but nothing else. */
static int is_blank(const reader_t *reader, apr_size_t len)
{
    return strchr(" \t", *reader->at) && !trimmed(reader->at, len);
}

/* Return whether the header goes on below the line of blanks at READER: a folded line
 * follows (RFC 5322, 4.2), or fields up to an empty line or the end. */
static int goes_on(const reader_t *reader)
{
    reader_t lines = *reader;

    for (int i = 0; ; i++) {
        const char *next;
        apr_size_t len;
        int folded;

        lines.at = next_line(&lines);
        next = next_line(&lines);
        len = (apr_size_t)(next - lines.at);
        folded = len && strchr(" \t", *lines.at);
        if (!len || is_empty(&lines, len) || (folded && !i)) {
            return 1;
        }
        if (!folded && !crm_mail_head_name(lines.at, len)) {
            return 0;
        }
    }
}

/* Return whether the line at READER, LEN bytes, which is no field of HEAD, is rather
 * words of a text: no parameter of the field before, and not one word. */
static int has_words(const reader_t *reader, apr_size_t len,
                     const crm_mail_head_t *head)
{
    apr_size_t before = trimmed(head->block.data, head->block.len);

    len = trimmed(reader->at, len);
    return memchr(reader->at, ' ', len)
           && (!before || head->block.data[before - 1] != ';');
}

/* Read the header at READER into HEAD, up to the empty line or a boundary; a line of
 * blanks is an empty one if no more fields follow. If the empty line is missing,
 * the text begins with the first line that is no field; if another one follows, with
 * the words behind the last field. */
static void read_head(crm_mail_head_t *head, reader_t *reader)
{
    const char *next, *text = NULL, *words = NULL;
    int whole = 0;              /* goes_on() has said so */

    crm_mail_head_begin(head, reader->pool);
    while (!is_stop(reader, next = next_line(reader))) {
        apr_size_t len = (apr_size_t)(next - reader->at);

        if (is_empty(reader, len)
            || (!whole && head->fields && is_blank(reader, len)
                && !(whole = goes_on(reader)))) {
            reader->at = next;
            text = words;
            break;
        }
        if (!crm_mail_head_add(head, reader->at, len)) {
            break;
        }
        if (head->field != CRM_MAIL_FIELD_BROKEN) {
            words = NULL;
        }
        else {
            text = text ? text : reader->at;
            words = words || !has_words(reader, len, head) ? words : reader->at;
        }
        reader->at = next;
    }
    if (text) {
        reader->at = text;
        reader->stop = NO_BOUNDARY;
    }
    crm_mail_head_end(head);
    *reader->cut |= head->cut ? CRM_MAIL_CUT_HEADERS : 0;
}

/* Return a new GMimeMessage if MESSAGE, else a new part, with the header HEAD and
 * no body. */
static GMimeObject *object_of(crm_mail_head_t *head, int message)
{
    GMimeStream *stream;
    GMimeParser *parser;
    GMimeObject *object;

    crm_buf_putc(&head->block, '\n');
    stream = g_mime_stream_mem_new_with_buffer(head->block.data,
                                               head->block.len);
    parser = g_mime_parser_new_with_stream(stream);
    if (message) {
        GMimeMessage *made = g_mime_parser_construct_message(parser, NULL);

        object = GMIME_OBJECT(made ? made : g_mime_message_new(FALSE));
    }
    else {
        object = g_mime_parser_construct_part(parser, NULL);
        object = object ? object : GMIME_OBJECT(g_mime_part_new());
    }
    g_object_unref(parser);
    g_object_unref(stream);
    return object;
}

/* ---- parts --------------------------------------------------------------- */

/* Read the content of OBJECT, a part at LEVEL, at READER. */
static void read_body(reader_t *reader, GMimeObject *object, int level);

static void read_leaf(reader_t *reader, GMimePart *part)
{
    const char *begin = reader->at, *end = scan(reader);
    GMimeStream *stream = g_mime_stream_mem_new_with_buffer(
        begin, (size_t)(end - begin));
    GMimeDataWrapper *content = g_mime_data_wrapper_new_with_stream(
        stream, g_mime_part_get_content_encoding(part));

    g_mime_part_set_content(part, content);
    g_object_unref(content);
    g_object_unref(stream);
}

static void read_enclosed(reader_t *reader, GMimeMessagePart *part)
{
    enclosed_t *enclosed = apr_palloc(reader->pool, sizeof(*enclosed));
    GMimeMessage *message;

    enclosed->bytes = reader->at;
    enclosed->len = (apr_size_t)(scan(reader) - enclosed->bytes);
    g_object_set_data(G_OBJECT(part), ENCLOSED, enclosed);
    message = crm_mail_tree_head(reader->cut, enclosed->bytes, enclosed->len,
                                 reader->pool);
    g_mime_message_part_set_message(part, message);
    g_object_unref(message);
}

/* Read a part of MULTIPART, at LEVEL, into it. */
static void read_part(reader_t *reader, GMimeMultipart *multipart, int level)
{
    static const char digest[] = "Content-Type: message/rfc822\n";
    GMimeContentType *type =
        g_mime_object_get_content_type(GMIME_OBJECT(multipart));
    crm_mail_head_t head;
    GMimeObject *object;

    if (level > CRM_MAIL_LEVELS || reader->parts++ >= CRM_MAIL_PARTS) {
        *reader->cut |= level > CRM_MAIL_LEVELS ? CRM_MAIL_CUT_LEVELS
                                                : CRM_MAIL_CUT_PARTS;
        scan(reader);
        return;
    }
    read_head(&head, reader);
    if (reader->stop != NO_BOUNDARY && !head.fields) {
        return;                 /* nothing stands between two boundaries */
    }
    if (!head.has_type
        && g_mime_content_type_is_type(type, "multipart", "digest")) {
        crm_buf_puts(&head.block, digest); /* RFC 2046, 5.1.5 */
    }
    object = object_of(&head, 0);
    if (reader->stop == NO_BOUNDARY) {
        read_body(reader, object, level);
    }
    g_mime_multipart_add(multipart, object);
    g_object_unref(object);
}

/* Read the parts of MULTIPART, at LEVEL, up to the end of its boundary BOUNDARY.
 * Return the end of what stands before the first one. */
static const char *read_parts(reader_t *reader, GMimeMultipart *multipart,
                              const char *boundary, int level)
{
    apr_ssize_t len = (apr_ssize_t)trimmed(boundary, strlen(boundary));
    const char *key = apr_pstrmemdup(reader->pool, boundary, (apr_size_t)len);
    const int *outer = apr_hash_get(reader->boundaries, key, len);
    const char *prologue;
    int own = level;

    apr_hash_set(reader->boundaries, key, len, &own);
    prologue = scan(reader);
    while (reader->stop == own && !reader->closes) {
        reader->at = next_line(reader);
        read_part(reader, multipart, level + 1);
    }
    apr_hash_set(reader->boundaries, key, len, outer);
    if (reader->stop == own) {
        reader->at = next_line(reader);
        scan(reader);           /* what follows the last part is for no one */
    }
    return prologue;
}

/* Return whether the line at LINE, up to END, is a boundary that a header of a
 * part follows. */
static int is_delimiter(const char *line, const char *end, const char *stop)
{
    static const char field[] = "Content-";

    return end - line > 3 && line[0] == '-' && line[1] == '-'
           && (apr_size_t)(stop - end) > sizeof(field)
           && !strncasecmp(end, field, sizeof(field) - 1);
}

/* Return whether BOUNDARY begins a line of what READER has before it. */
static int is_used(const reader_t *reader, const char *boundary)
{
    apr_size_t len = trimmed(boundary, strlen(boundary));
    apr_size_t left = (apr_size_t)(reader->end - reader->at);
    const char *line = apr_pstrcat(reader->pool, "\n--", apr_pstrmemdup(
                                       reader->pool, boundary, len), NULL);

    left = left < USED_BYTES ? left : USED_BYTES;
    return (left > len + 1 && !memcmp(reader->at, line + 1, len + 2))
           || memmem(reader->at, left, line, len + 3) != NULL;
}

/* Return the boundary that is used in the parts at READER instead of DECLARED, which
 * may be NULL: some write wrong quotes or dashes, or none. NULL if there is none. */
static const char *used_boundary(const reader_t *reader, const char *declared)
{
    reader_t lines = *reader;

    for (int i = 0; i < PREAMBLE && lines.at < lines.end; i++) {
        const char *next = next_line(&lines);

        if (is_delimiter(lines.at, next, lines.end)) {
            apr_size_t len = trimmed(lines.at + 2,
                                     (apr_size_t)(next - lines.at) - 2);
            const char *used = apr_pstrmemdup(reader->pool, lines.at + 2,
                                              len);

            return len && !apr_hash_get(reader->boundaries, used,
                                        (apr_ssize_t)len)
                   && !(declared && is_used(reader, declared)) ? used : NULL;
        }
        lines.at = next;
    }
    return NULL;
}

/* Read the content of MULTIPART, at LEVEL. If its boundary is not declared, or
 * never used, all of it stands before the first part. */
static void read_multipart(reader_t *reader, GMimeMultipart *multipart,
                           int level)
{
    const char *boundary = g_mime_object_get_content_type_parameter(
        GMIME_OBJECT(multipart), "boundary");
    const char *begin = reader->at, *end;
    const char *used = used_boundary(reader, boundary);

    boundary = used ? used : boundary;
    if (boundary && boundary[strspn(boundary, " \t")]) {
        end = read_parts(reader, multipart, boundary, level);
    }
    else {
        end = scan(reader);
    }
    if (!g_mime_multipart_get_count(multipart)) {
        g_mime_multipart_set_prologue(multipart, apr_pstrmemdup(
                                          reader->pool, begin,
                                          (apr_size_t)(end - begin)));
    }
}

static void read_body(reader_t *reader, GMimeObject *object, int level)
{
    if (GMIME_IS_MULTIPART(object)) {
        read_multipart(reader, GMIME_MULTIPART(object), level);
    }
    else if (GMIME_IS_MESSAGE_PART(object)) {
        read_enclosed(reader, GMIME_MESSAGE_PART(object));
    }
    else if (GMIME_IS_PART(object)) {
        read_leaf(reader, GMIME_PART(object));
    }
    else {
        scan(reader);
    }
}

/* ---- the mail ------------------------------------------------------------ */

/* Skip the line "From " that a mailbox file has before a mail. */
static void skip_from(reader_t *reader)
{
    apr_size_t len = (apr_size_t)(reader->end - reader->at);

    if (len > 6 && (!memcmp(reader->at, "From ", 5)
                    || !memcmp(reader->at, ">From ", 6))) {
        reader->at = next_line(reader);
    }
}

/* Return whether the content at READER, of which no header says a type, has parts: some
 * gateways lose the field. */
static int has_parts(const reader_t *reader)
{
    const char *used = used_boundary(reader, NULL);
    const char *last = used ? apr_pstrcat(reader->pool, "\n--", used, "--",
                                          NULL) : NULL;

    return last && memmem(reader->at, (size_t)(reader->end - reader->at), last,
                          strlen(last));
}

/* Begin to read LEN BYTES with READER. Return their header as a mail. */
static GMimeMessage *begin(reader_t *reader, unsigned *cut_p,
                           const char *bytes, apr_size_t len, apr_pool_t *pool)
{
    static const char mixed[] = "Content-Type: multipart/mixed\n";
    crm_mail_head_t head;

    memset(reader, 0, sizeof(*reader));
    reader->at = bytes;
    reader->end = bytes + len;
    reader->boundaries = apr_hash_make(pool);
    reader->cut = cut_p;
    reader->pool = pool;
    skip_from(reader);
    read_head(&head, reader);
    if (!head.has_type && has_parts(reader)) {
        crm_buf_puts(&head.block, mixed);
    }
    return GMIME_MESSAGE(object_of(&head, 1));
}

GMimeMessage *crm_mail_tree(unsigned *cut_p, const char *bytes, apr_size_t len,
                            apr_pool_t *pool)
{
    reader_t reader;
    GMimeMessage *message = begin(&reader, cut_p, bytes, len, pool);
    GMimeObject *top = g_mime_message_get_mime_part(message);

    reader.parts = 1;
    if (top) {
        read_body(&reader, top, 1);
    }
    return message;
}

GMimeMessage *crm_mail_tree_head(unsigned *cut_p, const char *bytes,
                                 apr_size_t len, apr_pool_t *pool)
{
    reader_t reader;

    bytes = crm_mail_repair(&len, bytes, pool);
    return begin(&reader, cut_p, bytes, len, pool);
}

const char *crm_mail_enclosed(apr_size_t *len_p, GMimeMessagePart *part)
{
    const enclosed_t *enclosed = g_object_get_data(G_OBJECT(part), ENCLOSED);

    *len_p = enclosed ? enclosed->len : 0;
    return enclosed ? enclosed->bytes : "";
}
