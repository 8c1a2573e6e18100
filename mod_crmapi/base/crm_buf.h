/* SPDX-License-Identifier: Apache-2.0 */
/* crm_buf.h: a growing buffer that JSON is written into */
#ifndef CRM_BUF_H
#define CRM_BUF_H

#include <string.h>

#include "apr_pools.h"

/* The buffer: LEN bytes are used of the SIZE at DATA. Its memory is malloc()'s
 * and freed with POOL, so that growing leaves nothing behind. */
typedef struct crm_buf_t {
    char *data;
    apr_size_t len;
    apr_size_t size;
    apr_pool_t *pool;
    char **block;               /* what the pool frees: DATA, wherever it is */
} crm_buf_t;

/* Make BUF empty, with room for SIZE_HINT bytes, freed with POOL. BUF itself
 * may live anywhere, and may be initialised only once. */
void crm_buf_init(crm_buf_t *buf, apr_size_t size_hint, apr_pool_t *pool);

/* Make room for at least N more bytes; abort if there is no memory, as pools
 * do. */
void crm_buf_grow(crm_buf_t *buf, apr_size_t n);

/* Return where N bytes may be written; the caller adds what it wrote to
 * BUF->len. */
static inline char *crm_buf_reserve(crm_buf_t *buf, apr_size_t n)
{
    if (buf->size - buf->len < n) {
        crm_buf_grow(buf, n);
    }
    return buf->data + buf->len;
}

/* Add the LEN bytes at DATA. */
static inline void crm_buf_add(crm_buf_t *buf, const char *data,
                               apr_size_t len)
{
    memcpy(crm_buf_reserve(buf, len), data, len);
    buf->len += len;
}

/* Add the string TEXT. */
static inline void crm_buf_puts(crm_buf_t *buf, const char *text)
{
    crm_buf_add(buf, text, strlen(text));
}

/* Add the byte C. */
static inline void crm_buf_putc(crm_buf_t *buf, char c)
{
    *crm_buf_reserve(buf, 1) = c;
    buf->len++;
}

/* Add what FORMAT makes. */
void crm_buf_printf(crm_buf_t *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Add the LEN bytes of UTF-8 at TEXT as a JSON string (RFC 8259, 7). */
void crm_buf_json_string(crm_buf_t *buf, const char *text, apr_size_t len);

/* Add TEXT, LEN bytes of valid JSON, without the blanks between its tokens:
 * PostgreSQL writes some. */
void crm_buf_json_compact(crm_buf_t *buf, const char *text, apr_size_t len);

#endif /* CRM_BUF_H */
