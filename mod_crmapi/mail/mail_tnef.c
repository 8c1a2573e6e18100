/* SPDX-License-Identifier: Apache-2.0 */
/* mail_tnef.c: the text and the files in winmail.dat, as Outlook writes it (MS-OXTNEF)
 *
 * Numbers begin with their lowest byte. */
#include "mail_tnef.h"

#include "apr_strings.h"

#include "crm_mail.h"
#include "mail_charset.h"

#define SIGNATURE 0x223e9f78u
#define NAME_CHARS 255
#define TEXT_BYTES (4 * NAME_CHARS)

/* Attributes (MS-OXTNEF, 2.1.3.2). */
#define CODE_PAGE 0x00069007u
#define BEGINS_FILE 0x00069002u
#define TITLE 0x00018010u
#define DATA 0x0006800fu
#define PROPERTIES 0x00069005u
#define TEXT 0x0002800cu        /* of the mail */
#define MAIL_PROPERTIES 0x00069003u

/* Properties of a mail or a file (MS-OXPROPS), and their types (MS-OXCDATA, 2.11.1). */
#define RTF 0x1009u             /* compressed */
#define HTML 0x1013u
#define CONTENT 0x3701u
#define FILE_NAME 0x3704u
#define LONG_NAME 0x3707u
#define MIME_TYPE 0x370eu
#define CONTENT_ID 0x3712u
#define TEXT8 0x001eu
#define TEXT16 0x001fu
#define OBJECT 0x000du          /* 16 bytes that say what it is, and its own */
#define BINARY 0x0102u
#define MANY 0x1000u            /* a bit: there are several values */
#define NAMED 0x8000u           /* a bit of an id: it has a name */

typedef struct reader_t {
    const unsigned char *at, *end;
    const char *charset;        /* of texts of 8 bits */
    apr_pool_t *pool;
} reader_t;

/* ---- bytes --------------------------------------------------------------- */

/* Move READER by COUNT bytes, or to the end. Return what it has moved over. */
static reader_t take(reader_t *reader, apr_size_t count)
{
    apr_size_t left = (apr_size_t)(reader->end - reader->at);
    reader_t piece = *reader;

    reader->at += count < left ? count : left;
    piece.end = reader->at;
    return piece;
}

static apr_size_t length(const reader_t *reader)
{
    return (apr_size_t)(reader->end - reader->at);
}

/* Read a number of SIZE bytes; 0 if they are not there. */
static apr_uint32_t number(reader_t *reader, apr_size_t size)
{
    reader_t piece = take(reader, size);
    apr_uint32_t value = 0;

    if (length(&piece) < size) {
        return 0;
    }
    for (apr_size_t i = size; i; i--) {
        value = value << 8 | piece.at[i - 1];
    }
    return value;
}

/* Set *TEXT_P, unless it is set, to PIECE, a text in CHARSET, as a line in its pool. */
static void set_line(const char **text_p, reader_t piece, const char *charset)
{
    reader_t begin = take(&piece, TEXT_BYTES);

    if (!*text_p) {
        *text_p = crm_mail_line(crm_mail_utf8((const char *)begin.at,
                                              length(&begin), charset,
                                              piece.pool),
                                NAME_CHARS, piece.pool);
    }
}

/* ---- properties ---------------------------------------------------------- */

/* Return the number of bytes of a value of TYPE; 0 if it stands before the value,
 * -1 if the type is unknown. */
static int size_of(unsigned type)
{
    switch (type) {
    case 0x02: case 0x03: case 0x04: case 0x0a: case 0x0b: return 4;
    case 0x05: case 0x06: case 0x07: case 0x14: case 0x40: return 8;
    case 0x48: return 16;
    case TEXT8: case TEXT16: case OBJECT: case BINARY: return 0;
    default: return -1;
    }
}

/* Read a value of SIZE bytes, with what fills it up to a multiple of four. */
static reader_t read_value(reader_t *reader, int size)
{
    apr_size_t count = size ? (apr_size_t)size : number(reader, 4);
    reader_t value = take(reader, count);

    take(reader, (4 - count % 4) % 4);
    return value;
}

/* Skip the name of a property: a number or a text. */
static void skip_name(reader_t *reader)
{
    take(reader, 16);
    if (number(reader, 4)) {
        read_value(reader, 0);
    }
    else {
        take(reader, 4);
    }
}

/* Keep VALUE, an object, as the bytes of FILE, if it has none. A mail, which is
 * enclosed as TNEF, is none. */
static void keep_object(crm_mail_tnef_t *file, reader_t value)
{
    reader_t copy;

    take(&value, 16);
    copy = value;
    if (!file->bytes && length(&value) && number(&copy, 4) != SIGNATURE) {
        file->bytes = (const char *)value.at;
        file->len = length(&value);
    }
}

/* Keep VALUE as the bytes of FILE, of TYPE. */
static void keep_bytes(crm_mail_tnef_t *file, const reader_t *value,
                       const char *type)
{
    file->bytes = (const char *)value->at;
    file->len = length(value);
    file->type = type;
}

/* Keep VALUE, the property ID of FILE, if it is looked for. */
static void keep(crm_mail_tnef_t *file, unsigned type, unsigned id,
                 reader_t value)
{
    const char *charset = type == TEXT16 ? "utf-16le" : value.charset;

    if (type == OBJECT && id == CONTENT) {
        keep_object(file, value);
    }
    if ((type == BINARY || type == TEXT8) && id == HTML) {
        keep_bytes(file, &value, "text/html");
    }
    if (type == BINARY && id == RTF && !file->bytes) {
        keep_bytes(file, &value, "text/rtf");
    }
    if (type != TEXT8 && type != TEXT16) {
        return;
    }
    switch (id) {
    case FILE_NAME: set_line(&file->name, value, charset); break;
    case LONG_NAME: set_line(&file->long_name, value, charset); break;
    case MIME_TYPE: set_line(&file->type, value, charset); break;
    case CONTENT_ID: set_line(&file->content_id, value, charset); break;
    default: break;
    }
}

/* Read the properties at READER into FILE. */
static void read_properties(crm_mail_tnef_t *file, reader_t reader)
{
    apr_uint32_t count = number(&reader, 4);

    for (; count && reader.at < reader.end; count--) {
        unsigned type = number(&reader, 2), id = number(&reader, 2);
        int size = size_of(type & ~MANY);
        apr_uint32_t values = 1;

        if (size < 0) {
            return;
        }
        if (id & NAMED) {
            skip_name(&reader);
        }
        if (type & MANY || !size) {
            values = number(&reader, 4);
        }
        for (; values && reader.at < reader.end; values--) {
            keep(file, type, id, read_value(&reader, size));
        }
    }
}

/* ---- attributes ---------------------------------------------------------- */

/* Read the attribute ID of FILE, VALUE. */
static void read_attribute(crm_mail_tnef_t *file, apr_uint32_t id,
                           const reader_t *value)
{
    switch (id) {
    case TITLE: set_line(&file->name, *value, value->charset); break;
    case DATA: keep_bytes(file, value, file->type); break;
    case PROPERTIES: read_properties(file, *value); break;
    default: break;
    }
}

/* Read the next attribute: it is BODY's, of the last of FILES, or the charset of
 * READER. *BEGUN_P: that file has begun; else a new one does. Return 0 if there is no
 * attribute. */
static int read_next(reader_t *reader, crm_mail_tnef_t *body,
                     apr_array_header_t *files, int *begun_p)
{
    apr_uint32_t level = number(reader, 1), id = number(reader, 4);
    apr_size_t size = number(reader, 4);
    reader_t value = take(reader, size);

    if (length(&value) < size || level < 1 || level > 2) {
        return 0;
    }
    number(reader, 2);          /* a sum of the bytes */
    if (id == CODE_PAGE) {
        reader->charset = apr_psprintf(reader->pool, "cp%u",
                                       number(&value, 4));
    }
    else if (id == TEXT && !body->bytes) {
        keep_bytes(body, &value, "text/plain");
    }
    else if (id == MAIL_PROPERTIES) {
        read_properties(body, value);
    }
    else if (id == BEGINS_FILE) {
        *begun_p = 0;
    }
    else if (level == 2) {
        if (!*begun_p) {
            *(crm_mail_tnef_t *)apr_array_push(files) = (crm_mail_tnef_t){0};
            *begun_p = 1;
        }
        read_attribute(&APR_ARRAY_IDX(files, files->nelts - 1, crm_mail_tnef_t),
                       id, &value);
    }
    return 1;
}

const apr_array_header_t *crm_mail_tnef(crm_mail_tnef_t *body,
                                        const char *bytes, apr_size_t len,
                                        apr_pool_t *pool)
{
    reader_t reader = {
        (const unsigned char *)bytes, (const unsigned char *)bytes + len, NULL,
        pool
    };
    apr_array_header_t *files = apr_array_make(pool, 2,
                                               sizeof(crm_mail_tnef_t));
    int begun = 0;

    *body = (crm_mail_tnef_t){0};
    if (number(&reader, 4) != SIGNATURE) {
        return files;
    }
    number(&reader, 2);
    while (reader.at < reader.end && files->nelts < CRM_MAIL_LIST_MAX
           && read_next(&reader, body, files, &begun)) {
    }
    for (int i = 0; i < files->nelts; i++) {
        crm_mail_tnef_t *file = &APR_ARRAY_IDX(files, i, crm_mail_tnef_t);

        file->name = file->long_name ? file->long_name : file->name;
    }
    return files;
}
