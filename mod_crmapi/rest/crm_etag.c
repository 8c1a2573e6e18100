/* SPDX-License-Identifier: Apache-2.0 */
/* crm_etag.c: entity tags and the headers that compare them */
#include "crm_etag.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_hash.h"
#include "crm_sql.h"
#include "crm_time.h"

/* The digits of a tag's numbers: those of base64url (RFC 4648, 5). The most
 * significant digit comes first. */
static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvw"
                             "xyz0123456789-_";
#define TIME_DIGITS 10
#define HASH_DIGITS 8           /* of the low bits */

static char *write_number(char *out, apr_uint64_t number, int count)
{
    for (int i = count; i--; number >>= 6) {
        out[i] = digits[number & 63];
    }
    return out + count;
}

/* Return the number of the two digits at TEXT. */
static inline apr_uint64_t pair(const char *text)
{
    return (apr_uint64_t)(text[0] * 10 + text[1] - '0' * 11);
}

/* Return the milliseconds at TEXT: up to three digits, because PostgreSQL
 * leaves out trailing zeros, and then "+00". */
static inline apr_uint64_t milliseconds(const char *text)
{
    int number = (text[0] - '0') * 100;

    if (text[1] != '+') {
        number += (text[1] - '0') * 10;
        number += text[2] != '+' ? text[2] - '0' : 0;
    }
    return (apr_uint64_t)number;
}

/* Return PG_TEXT, "2026-11-21 01:59:27.552+00", as the number of its digits to
 * the millisecond: 20261121015927552. */
static apr_uint64_t number_of(const char *pg_text)
{
    apr_uint64_t date = ((pair(pg_text) * 100 + pair(pg_text + 2)) * 100
                         + pair(pg_text + 5)) * 100 + pair(pg_text + 8);
    apr_uint64_t time = (pair(pg_text + 11) * 100 + pair(pg_text + 14)) * 100
                        + pair(pg_text + 17);

    return (date * 1000000 + time) * 1000
           + (pg_text[19] == '.' ? milliseconds(pg_text + 20) : 0);
}

void crm_etag_make(char out[CRM_ETAG_SIZE], const char *updated_at,
                   const char *body, apr_size_t len)
{
    *out++ = '"';
    if (updated_at) {
        out = write_number(out, number_of(updated_at), TIME_DIGITS);
        *out++ = '.';
    }
    out = write_number(out, crm_hash(CRM_HASH_START, body, len), HASH_DIGITS);
    memcpy(out, "\"", 2);
}

static const char rule[] = "must be * or entity tags in quotes, separated by "
                           "commas";

/* Return whether C may be in an entity tag. */
static int is_tag_character(char c)
{
    return c == '!' || (c >= '#' && c != 0x7f) || (unsigned char)c >= 0x80;
}

/* Read one tag at *AT_P into *TAG and move *AT_P past it. Return 0 if there is
 * none. */
static int read_tag(crm_etag_t *tag, const char **at_p)
{
    const char *at = *at_p;

    tag->weak = !strncmp(at, "W/", 2);
    at += tag->weak ? 2 : 0;
    if (*at++ != '"') {
        return 0;
    }
    tag->text = at;
    while (is_tag_character(*at)) {
        at++;
    }
    tag->len = (apr_size_t)(at - tag->text);
    *at_p = at + 1;
    return *at == '"';
}

const char *crm_etags_read(crm_etags_t *tags, const char *header,
                           apr_pool_t *pool)
{
    const char *at = header + strspn(header, ", \t");

    tags->tags = apr_array_make(pool, 2, sizeof(crm_etag_t));
    tags->any = *at == '*';
    if (tags->any) {
        at += 1 + strspn(at + 1, " \t");
        return *at ? rule : NULL;
    }
    while (*at) {
        if (!read_tag(apr_array_push(tags->tags), &at)) {
            return rule;
        }
        at += strspn(at, " \t");
        if (*at && *at != ',') {
            return rule;
        }
        at += strspn(at, ", \t");
    }
    return tags->tags->nelts ? NULL : rule;
}

int crm_etags_have(const crm_etags_t *tags, const char *tag, int weakly)
{
    apr_size_t len = strlen(tag) - 2;

    for (int i = 0; i < tags->tags->nelts; i++) {
        const crm_etag_t *one = &APR_ARRAY_IDX(tags->tags, i, crm_etag_t);

        if ((weakly || !one->weak) && one->len >= len
            && !memcmp(one->text, tag + 1, len)
            && (one->len == len || one->text[len] == '-')) {
            return 1;
        }
    }
    return tags->any;
}

/* Set *NUMBER_P to the COUNT digits at TEXT. Return 0 if there are fewer. */
static int read_number(apr_uint64_t *number_p, const char *text, int count)
{
    *number_p = 0;
    while (count--) {
        const char *digit = strchr(digits, *text++);

        if (!digit || !*digit) {
            return 0;
        }
        *number_p = (*number_p << 6) | (apr_uint64_t)(digit - digits);
    }
    return 1;
}

/* Return the time of TAG as a bind in POOL, NULL if it has none. */
static const char *time_of(const crm_etag_t *tag, apr_pool_t *pool)
{
    apr_uint64_t number;
    apr_time_t time;
    char *text;

    if (tag->len <= TIME_DIGITS || tag->text[TIME_DIGITS] != '.'
        || !read_number(&number, tag->text, TIME_DIGITS)
        || number >= APR_UINT64_C(100000000000000000)) {
        return NULL;
    }
    text = apr_psprintf(pool, "%017" APR_UINT64_T_FMT, number);
    text = apr_psprintf(pool, "%.4s-%.2s-%.2sT%.2s:%.2s:%.2s.%.3sZ", text,
                        text + 4, text + 6, text + 8, text + 10, text + 12,
                        text + 14);
    return crm_time_parse(&time, text, strlen(text)) ? NULL : text;
}

const char *crm_etags_times(const crm_etags_t *tags, int weakly,
                            apr_pool_t *pool)
{
    apr_array_header_t *times = apr_array_make(pool, tags->tags->nelts,
                                               sizeof(const char *));

    for (int i = 0; i < tags->tags->nelts; i++) {
        const crm_etag_t *tag = &APR_ARRAY_IDX(tags->tags, i, crm_etag_t);
        const char *time = weakly || !tag->weak ? time_of(tag, pool) : NULL;

        if (time) {
            APR_ARRAY_PUSH(times, const char *) = time;
        }
    }
    return crm_sql_array(times, pool);
}
