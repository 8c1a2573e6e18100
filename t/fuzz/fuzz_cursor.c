/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_cursor.c: what a client says about what it has: cursors of lists, and
 * entity tags */
/* libFuzzer: -max_len=512 */

#include "fuzz.h"

#include "crm_cursor.h"
#include "crm_etag.h"
#include "crm_hash.h"
#include "crm_time.h"

static const crm_sort_t sorts[] = {
    {.keys = {"t.created_at"}},
    {.keys = {"t.last_message_at"}, .nulls_last = 1},
    {.keys = {"p.created_at", "s.order_index", "t.order_index",
              "t.created_at"}, .integers = {0, 1, 1}},
};

/* What was read is one text's only, and safe to bind. */
static void try_cursor(const char *text, const crm_sort_t *sort,
                       apr_uint64_t list, apr_pool_t *pool)
{
    crm_cursor_t cursor;
    apr_time_t time;

    if (!crm_cursor_read(&cursor, text, sort, list, pool)) {
        return;
    }
    must(strlen(text) < 80 && strlen(cursor.id) == 36);
    for (int i = 0; sort->keys[i]; i++) {
        const char *key = cursor.keys[i];

        must(key || (sort->nulls_last && !i));
        must(!key || (sort->integers[i]
                      ? strspn(key, "-0123456789") == strlen(key)
                      : !crm_time_parse(&time, key, strlen(key))));
    }
}

/* The same with the hash of the bytes SIZE at DATA put right, so that what
 * comes behind it is tried. */
static void try_forged(const uint8_t *data, size_t size,
                       const crm_sort_t *sort, apr_pool_t *pool)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrs"
                                 "tuvwxyz0123456789-_";
    unsigned char bytes[66] = {0};
    char text[89];
    apr_uint64_t hash;
    size_t n = sort->keys[1] ? 49 : 25, len = 0;

    memcpy(bytes, data, size < n ? size : n);
    bytes[0] &= 1;
    hash = crm_hash(1, bytes, n);
    for (int i = 0; i < 8; i++) {
        bytes[n++] = (unsigned char)(hash >> (56 - 8 * i));
    }
    for (size_t i = 0; i < n * 8; i += 6) {
        unsigned int pair = (unsigned int)bytes[i / 8] << 8 | bytes[i / 8 + 1];

        text[len++] = digits[pair >> (10 - i % 8) & 63];
    }
    text[len] = '\0';
    try_cursor(text, sort, 1, pool);
}

static void try_tags(const char *text, apr_pool_t *pool)
{
    char tag[CRM_ETAG_SIZE];
    crm_etags_t tags;

    if (crm_etags_read(&tags, text, pool)) {
        return;
    }
    must(tags.any ? !tags.tags->nelts : tags.tags->nelts > 0);
    crm_etag_make(tag, NULL, text, strlen(text));
    for (int weakly = 0; weakly < 2; weakly++) {
        must(strlen(crm_etags_times(&tags, weakly, pool))
             < 2 + 30 * strlen(text));
        must(crm_etags_have(&tags, tag, weakly) || !tags.any);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool = fuzz_pool(NULL);
    char *text = fuzz_text(data, size);

    for (size_t i = 0; i < sizeof(sorts) / sizeof(*sorts); i++) {
        try_cursor(text, &sorts[i], 1, pool);
        try_forged(data, size, &sorts[i], pool);
    }
    try_tags(text, pool);
    free(text);
    apr_pool_destroy(pool);
    return 0;
}
