/* SPDX-License-Identifier: Apache-2.0 */
/* crm_buf.c: a growing buffer for output, with JSON escaping */
#include "crm_buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

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

/* ---- strings of JSON ----------------------------------------------------- */

/* As many bytes are looked at together. */
#define BLOCK 16

/* The longest escape, and the room that an escaped block needs, with what is
 * copied behind it. */
#define ESCAPE 6
#define ROOM (BLOCK * ESCAPE + BLOCK)

/* 0: no escape is needed; 'u': \u00xx; otherwise the letter behind the
 * backslash. */
static const char escapes[256] = {
    'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'b', 't', 'n', 'u', 'f', 'r', 'u',
    'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u',
    'u', 'u', ['"'] = '"', ['\\'] = '\\',
};

/* Copy the BLOCK bytes at TEXT to OUT. Return which of them must be escaped: bit
 * I is that of the byte I. */
static inline unsigned copy_block(char *out, const char *text)
{
#ifdef __SSE2__
    const __m128i last_control = _mm_set1_epi8(0x1f);
    __m128i block = _mm_loadu_si128((const void *)text);
    __m128i marks = _mm_cmpeq_epi8(_mm_max_epu8(block, last_control),
                                   last_control);

    marks = _mm_or_si128(marks, _mm_cmpeq_epi8(block, _mm_set1_epi8('"')));
    marks = _mm_or_si128(marks, _mm_cmpeq_epi8(block, _mm_set1_epi8('\\')));
    _mm_storeu_si128((void *)out, block);
    return (unsigned)_mm_movemask_epi8(marks);
#else
    unsigned marks = 0;

    for (unsigned i = 0; i < BLOCK; i++) {
        marks |= (unsigned)(escapes[(unsigned char)text[i]] != 0) << i;
    }
    memcpy(out, text, BLOCK);
    return marks;
#endif
}

/* Write the escape of the control character C to OUT. Return how much longer it
 * is. */
static __attribute__((noinline)) apr_size_t write_control(char *out,
                                                          unsigned char c)
{
    static const char hex[] = "0123456789abcdef";

    memcpy(out, "\\u00", 4);
    out[4] = hex[c >> 4];
    out[5] = hex[c & 15];
    return ESCAPE - 1;
}

/* Write the BLOCK bytes at TEXT, escaped, to OUT, which has ROOM bytes. A block
 * can be read behind them. Return the end of what was written. */
static inline char *write_block(char *out, const char *text)
{
    unsigned marks = copy_block(out, text);

    while (marks) {
        apr_size_t at = (apr_size_t)(unsigned)__builtin_ctz(marks);
        unsigned char c = (unsigned char)text[at];
        apr_size_t more = 1;

        out[at] = '\\';
        out[at + 1] = escapes[c];
        if (escapes[c] == 'u') {
            more = write_control(out + at, c);
        }
        out += more;
        memcpy(out + at + 1, text + at + 1, BLOCK);
        marks &= marks - 1;
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
