/* SPDX-License-Identifier: Apache-2.0 */
/* crm_buf.c: a growing buffer for output, with JSON escaping */
#include "crm_buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>


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
        abort();
    }
    if (size < buf->len + n) {
        size = buf->len + n;
    }
    data = realloc(buf->data, size);
    if (!data) {
        abort();
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

/* 0: no escape is needed; 'u': \u00xx; otherwise the letter behind the
 * backslash. */
static const char escapes[256] = {
    'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'b', 't', 'n', 'u', 'f', 'r', 'u',
    'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u',
    'u', 'u', ['"'] = '"', ['\\'] = '\\',
};

static void add_escape(crm_buf_t *buf, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    char *out = crm_buf_reserve(buf, 6);

    *out++ = '\\';
    *out++ = escapes[c];
    buf->len += 2;
    if (escapes[c] == 'u') {
        *out++ = '0';
        *out++ = '0';
        *out++ = hex[c >> 4];
        *out++ = hex[c & 15];
        buf->len += 4;
    }
}

void crm_buf_json_string(crm_buf_t *buf, const char *text, apr_size_t len)
{
    const unsigned char *c = (const unsigned char *)text;
    const unsigned char *end = c + len;

    crm_buf_reserve(buf, len + 2);
    crm_buf_putc(buf, '"');
    while (c < end) {
        const unsigned char *run = c;

        while (c < end && !escapes[*c]) {
            c++;
        }
        crm_buf_add(buf, (const char *)run, (apr_size_t)(c - run));
        if (c < end) {
            add_escape(buf, *c++);
        }
    }
    crm_buf_putc(buf, '"');
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
