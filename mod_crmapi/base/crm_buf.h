/* SPDX-License-Identifier: Apache-2.0 */
/* crm_buf.h: a growing buffer for output, with JSON escaping */
#ifndef CRM_BUF_H
#define CRM_BUF_H

#include <string.h>

#include "apr_pools.h"

/* A buffer: LEN of SIZE bytes at DATA are used. The memory comes from malloc()
 * and is freed with POOL, because a pool would keep every block that was
 * outgrown. */
typedef struct crm_buf_t {
    char *data;
    apr_size_t len;
    apr_size_t size;
    apr_pool_t *pool;
    char **block;               /* DATA again, for the pool's cleanup */
} crm_buf_t;

/* Initialise BUF, empty, with room for SIZE_HINT bytes. Its memory is freed
 * with POOL. Call this only once for a BUF, which may be on the stack. */
void crm_buf_init(crm_buf_t *buf, apr_size_t size_hint, apr_pool_t *pool);

/* Make room for at least N more bytes. Aborts when memory is exhausted, as
 * pools do. */
void crm_buf_grow(crm_buf_t *buf, apr_size_t n);

/* Reserve N bytes and return where they begin. The caller writes there and adds
 * the number of bytes written to BUF->len. */
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

/* Add the text made from FORMAT. */
void crm_buf_printf(crm_buf_t *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Add the LEN bytes of UTF-8 at TEXT as a JSON string (RFC 8259, 7). */
void crm_buf_json_string(crm_buf_t *buf, const char *text, apr_size_t len);

/* The same for TEXT, which ends with a NUL. */
void crm_buf_json_text(crm_buf_t *buf, const char *text);

/* Add JSON with a " for each ' in it: constants are read more easily so. */
void crm_buf_json(crm_buf_t *buf, const char *json);

/* Add the LEN bytes of valid JSON at TEXT without white space between tokens.
 * PostgreSQL's jsonb output has some. */
void crm_buf_json_compact(crm_buf_t *buf, const char *text, apr_size_t len);

#endif /* CRM_BUF_H */
