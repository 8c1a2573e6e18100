/* SPDX-License-Identifier: Apache-2.0 */
/* crm_cursor.c: cursors as text */
#include "crm_cursor.h"

#include <string.h>

#include "apr_encode.h"
#include "apr_strings.h"

#include "crm_hash.h"
#include "crm_time.h"
#include "crm_uuid.h"

/* The bytes of a cursor: flags, a number for each key, id, hash. */
#define NUMBER 8
#define BYTES(keys) \
    (1 + (apr_size_t)(keys) * NUMBER + CRM_UUID_BYTES + NUMBER)
#define TEXT_LEN(bytes) (((bytes) * 4 + 2) / 3)
#define DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" \
    "0123456789-_"
#define IN_ORDER 1              /* the only flag */

/* The number of a null, and the limits of times: milliseconds from the year 1
 * to the year 9999. */
#define NONE APR_INT64_MIN
#define TIME_MIN APR_INT64_C(-62135596800000)
#define TIME_MAX APR_INT64_C(253402300799999)

static int count_keys(const crm_sort_t *sort)
{
    int count = 0;

    while (sort->keys[count]) {
        count++;
    }
    return count;
}

/* ---- writing ---- */

static void put_number(unsigned char *out, apr_uint64_t number)
{
    for (int i = NUMBER; i--; number >>= 8) {
        out[i] = (unsigned char)number;
    }
}

/* Set *NUMBER_P to the number of KEY, key INDEX of SORT. Return 0 if it has an
 * unknown format. */
static int number_of(apr_int64_t *number_p, const char *key,
                     const crm_sort_t *sort, int index)
{
    char text[CRM_TIME_SIZE];
    apr_time_t time;

    if (!key) {
        *number_p = NONE;
        return sort->nulls_last && !index;
    }
    if (sort->integers[index]) {
        *number_p = apr_atoi64(key);
        return 1;
    }
    if (!crm_time_from_pg(text, key)
        || crm_time_parse(&time, text, strlen(text))) {
        return 0;
    }
    *number_p = time / 1000;
    return 1;
}

/* Return DATA, BYTES(COUNT) bytes, as text in POOL. */
static const char *text_of(const unsigned char *data, int count,
                           apr_pool_t *pool)
{
    char *text = apr_palloc(pool, TEXT_LEN(BYTES(count)) + 1);

    apr_encode_base64_binary(text, data, BYTES(count), APR_ENCODE_BASE64URL,
                             NULL);
    return text;
}

const char *crm_cursor_write(const crm_cursor_t *cursor,
                             const crm_sort_t *sort, apr_uint64_t list,
                             apr_pool_t *pool)
{
    unsigned char data[BYTES(CRM_SORT_KEYS)], *at = data;
    int count = count_keys(sort);

    *at++ = cursor->in_order ? IN_ORDER : 0;
    for (int i = 0; i < count; i++, at += NUMBER) {
        apr_int64_t number;

        if (!number_of(&number, cursor->keys[i], sort, i)) {
            return NULL;
        }
        put_number(at, (apr_uint64_t)number);
    }
    if (!cursor->id || !crm_uuid_pack(at, cursor->id)) {
        return NULL;
    }
    at += CRM_UUID_BYTES;
    put_number(at, crm_hash(list, data, (apr_size_t)(at - data)));
    return text_of(data, count, pool);
}

/* ---- reading ---- */

static apr_uint64_t get_number(const unsigned char *data)
{
    apr_uint64_t number = 0;

    for (int i = 0; i < NUMBER; i++) {
        number = number << 8 | data[i];
    }
    return number;
}

/* Set *KEY_P to the bind for NUMBER, which is key INDEX of SORT, in POOL.
 * Return 0 if NUMBER is not valid. */
static int key_of(const char **key_p, apr_int64_t number,
                  const crm_sort_t *sort, int index, apr_pool_t *pool)
{
    char *time;

    *key_p = NULL;
    if (number == NONE) {
        return sort->nulls_last && !index;
    }
    if (sort->integers[index]) {
        *key_p = apr_psprintf(pool, "%" APR_INT64_T_FMT, number);
        return number >= APR_INT32_MIN && number <= APR_INT32_MAX;
    }
    if (number < TIME_MIN || number > TIME_MAX) {
        return 0;
    }
    time = apr_palloc(pool, CRM_TIME_SIZE);
    crm_time_format_ms(time, number * 1000);
    *key_p = time;
    return 1;
}

/* Read TEXT into DATA, BYTES(COUNT) bytes. Return 0 if TEXT is not exactly what
 * text_of() makes of DATA. */
static int read_bytes(unsigned char *data, const char *text, int count,
                      apr_pool_t *pool)
{
    apr_size_t len = 0;

    return strlen(text) == TEXT_LEN(BYTES(count))
           && apr_decode_base64_binary(data, text,
                                       (apr_ssize_t)TEXT_LEN(BYTES(count)),
                                       APR_ENCODE_NONE, &len) == APR_SUCCESS
           && len == BYTES(count) && !strcmp(text_of(data, count, pool), text);
}

int crm_cursor_has_form(const char *text)
{
    apr_size_t len = strlen(text);

    for (int count = 0; count <= CRM_SORT_KEYS; count++) {
        if (len == TEXT_LEN(BYTES(count))) {
            return strspn(text, DIGITS) == len;
        }
    }
    return 0;
}

int crm_cursor_read(crm_cursor_t *cursor, const char *text,
                    const crm_sort_t *sort, apr_uint64_t list,
                    apr_pool_t *pool)
{
    unsigned char data[BYTES(CRM_SORT_KEYS) + NUMBER], *at = data;
    int count = count_keys(sort);
    char *id = apr_palloc(pool, CRM_UUID_LEN + 1);

    if (!read_bytes(data, text, count, pool) || *at > IN_ORDER
        || get_number(data + BYTES(count) - NUMBER)
           != crm_hash(list, data, BYTES(count) - NUMBER)) {
        return 0;
    }
    memset(cursor, 0, sizeof(*cursor));
    cursor->in_order = *at++;
    for (int i = 0; i < count; i++, at += NUMBER) {
        if (!key_of(&cursor->keys[i], (apr_int64_t)get_number(at), sort, i,
                    pool)) {
            return 0;
        }
    }
    crm_uuid_unpack(id, at);
    cursor->id = id;
    return 1;
}
