/* SPDX-License-Identifier: Apache-2.0 */
/* crm_buf.c: a growing buffer for output, with JSON escaping */
#include "crm_buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "crm_block.h"
#include "crm_process.h"

static apr_status_t free_block(void *block)
{
    free(*(char **)block);
    return APR_SUCCESS;
}

void crm_buf_init(crm_buf_t *buf, apr_size_t size_hint, apr_pool_t *pool)
{
    buf->pool = pool;
    buf->len = 0;
    buf->size = 0;
    buf->data = NULL;
    buf->block = apr_pcalloc(pool, sizeof(*buf->block));
    apr_pool_cleanup_register(pool, buf->block, free_block,
                              apr_pool_cleanup_null);
    crm_buf_grow(buf, size_hint ? size_hint : 64);
}

void crm_buf_grow(crm_buf_t *buf, apr_size_t n)
{
    apr_size_t size = buf->size * 2;
    char *data;

    if (n > APR_SIZE_MAX / 2 - buf->len) {
        crm_process_no_memory();
    }
    if (size < buf->len + n) {
        size = buf->len + n;
    }
    data = realloc(buf->data, size);
    if (!data) {
        crm_process_no_memory();
    }
    *buf->block = buf->data = data;
    buf->size = size;
}

void crm_buf_printf(crm_buf_t *buf, const char *format, ...)
{
    va_list args, again;
    int len;

    va_start(args, format);
    va_copy(again, args);
    len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (len > 0) {
        vsnprintf(crm_buf_reserve(buf, (apr_size_t)len + 1),
                  (apr_size_t)len + 1, format, again);
        buf->len += (apr_size_t)len;
    }
    va_end(again);
}

/* ---- strings of JSON ----------------------------------------------------- */

#define BLOCK CRM_BLOCK

/* The longest escape, and the room that an escaped block needs, with what is
 * copied behind it. */
#define ESCAPE 6
#define ROOM (BLOCK * ESCAPE + BLOCK)

/* Write the escape of C to OUT. Return its length. */
static apr_size_t write_escape(char *out, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    static const char letters[] = "btn\0fr";         /* from U+0008 on */

    out[0] = '\\';
    out[1] = c == '"' || c == '\\' ? (char)c
             : c >= '\b' && c <= '\r' ? letters[c - '\b'] : '\0';
    if (out[1]) {
        return 2;
    }
    memcpy(out + 1, "u00", 3);
    out[4] = hex[c >> 4];
    out[5] = hex[c & 15];
    return ESCAPE;
}

/* Escape the bytes MARKS of the block at TEXT, some of which are control
 * characters. OUT has the block. Return the end of what was written. */
static __attribute__((noinline)) char *write_controls(char *out,
                                                      const char *text,
                                                      unsigned marks)
{
    for (; marks; marks &= marks - 1) {
        apr_size_t at = crm_block_first(marks);

        out += write_escape(out + at, (unsigned char)text[at]) - 1;
        memcpy(out + at + 1, text + at + 1, BLOCK);
    }
    return out + BLOCK;
}

/* Write the BLOCK bytes at TEXT, escaped, to OUT, which has ROOM bytes. A block
 * can be read behind them. Return the end of what was written. */
static inline char *write_block(char *out, const char *text)
{
    unsigned marks = crm_block_escapes(text);

    memcpy(out, text, BLOCK);
    if (marks && crm_block_controls(text)) {
        return write_controls(out, text, marks);
    }
    for (; marks; marks &= marks - 1) {
        apr_size_t at = crm_block_first(marks);

        out[at] = '\\';         /* then the character itself */
        out++;
        memcpy(out + at, text + at, BLOCK);
    }
    return out + BLOCK;
}

/* Add what is from TEXT to END, escaped, as far as there are two blocks. Return
 * what is left. */
static const char *add_blocks(crm_buf_t *buf, const char *text,
                              const char *end)
{
    char *out = buf->data + buf->len;
    const char *last = buf->data + buf->size - ROOM;

    for (; end - text >= 2 * BLOCK; text += BLOCK) {
        if (out > last) {
            buf->len = (apr_size_t)(out - buf->data);
            out = crm_buf_reserve(buf, (apr_size_t)(end - text) + ROOM);
            last = buf->data + buf->size - ROOM;
        }
        out = write_block(out, text);
    }
    buf->len = (apr_size_t)(out - buf->data);
    return text;
}

/* Add the LEN bytes at TEXT, less than two blocks, escaped. */
static void add_rest(crm_buf_t *buf, const char *text, apr_size_t len)
{
    char block[3 * BLOCK], *start = crm_buf_reserve(buf, 2 * ROOM), *out = start;
    apr_size_t blanks = len % BLOCK ? BLOCK - len % BLOCK : 0;

    memset(block, ' ', sizeof(block));
    memcpy(block, text, len);
    for (apr_size_t at = 0; at < len; at += BLOCK) {
        out = write_block(out, block + at);
    }
    buf->len += (apr_size_t)(out - start) - blanks;
}

void crm_buf_json_string(crm_buf_t *buf, const char *text, apr_size_t len)
{
    const char *end = text + len;

    crm_buf_reserve(buf, len + 2 * ROOM);
    buf->data[buf->len++] = '"';
    text = len < 2 * BLOCK ? text : add_blocks(buf, text, end);
    add_rest(buf, text, (apr_size_t)(end - text));
    crm_buf_putc(buf, '"');
}

void crm_buf_json_text(crm_buf_t *buf, const char *text)
{
    crm_buf_json_string(buf, text, strlen(text));
}

void crm_buf_json(crm_buf_t *buf, const char *json)
{
    for (; *json; json++) {
        crm_buf_putc(buf, *json == '\'' ? '"' : *json);
    }
}

/* Return whether the character at TEXT is escaped, in a JSON string whose first
 * character is at START. */
static int is_escaped(const char *start, const char *text)
{
    int backslashes = 0;

    while (text > start && *--text == '\\') {
        backslashes++;
    }
    return backslashes % 2;
}

/* Return the end of the JSON string whose opening quote is at TEXT, or END if
 * it has no closing quote. */
static const char *end_of_string(const char *text, const char *end)
{
    const char *quote = text;

    do {
        quote = memchr(quote + 1, '"', (apr_size_t)(end - quote) - 1);
    } while (quote && is_escaped(text, quote));
    return quote ? quote + 1 : end;
}

void crm_buf_json_compact(crm_buf_t *buf, const char *text, apr_size_t len)
{
    const char *end = text + len;
    char *start = crm_buf_reserve(buf, len), *out = start;

    while (text < end) {
        if (*text == '"') {
            const char *next = end_of_string(text, end);

            memcpy(out, text, (apr_size_t)(next - text));
            out += next - text;
            text = next;
        }
        else if ((unsigned char)*text > ' ') {
            *out++ = *text++;
        }
        else {
            text++;
        }
    }
    buf->len += (apr_size_t)(out - start);
}
