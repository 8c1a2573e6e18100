/* SPDX-License-Identifier: Apache-2.0 */
/* crm_sql_cache.c: the texts of a process's statements, printed once */
#include "crm_sql_cache.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024

/* An odd number without a pattern: digits of pi. */
#define FACTOR APR_UINT64_C(0x243f6a8885a308d3)

/* A statement. It does not change. */
typedef struct entry_t {
    struct entry_t *next;       /* in the same bucket, older */
    apr_uint64_t hash;
    int distributed;
    apr_size_t len;             /* of PARTS */
    const char *printed;        /* behind PARTS */
    char parts[];
} entry_t;

/* Entries are only added, at the front: atomic. */
static entry_t *buckets[BUCKETS];
static apr_size_t used;         /* bytes; atomic */

/* Return a hash of the LEN bytes at TEXT. It looks at 8 of 64 bytes: statements
 * that these do not tell apart are rare. */
static apr_uint64_t hash_of(const char *text, apr_size_t len)
{
    const char *end = text + len;
    apr_uint64_t hash = len, word;

    for (; end - text >= 8; text += 64) {
        memcpy(&word, text, sizeof(word));
        hash = ((hash << 5 | hash >> 59) ^ word) * FACTOR;
    }
    return hash ^ hash >> 32;
}

void crm_sql_cache_find(crm_sql_t *sql)
{
    apr_uint64_t hash = hash_of(sql->text.data, sql->text.len);
    const entry_t *entry = __atomic_load_n(&buckets[hash % BUCKETS],
                                           __ATOMIC_ACQUIRE);

    while (entry && (entry->hash != hash || entry->len != sql->text.len
                     || entry->distributed != sql->distributed
                     || memcmp(entry->parts, sql->text.data, entry->len))) {
        entry = entry->next;
    }
    sql->hash = hash;
    sql->printed = entry ? entry->printed : NULL;
}

/* Return memory for SIZE bytes of the cache, or NULL if it is full. */
static void *take(apr_size_t size)
{
    if (__atomic_add_fetch(&used, size, __ATOMIC_RELAXED) <= CRM_SQL_CACHE_MAX) {
        return malloc(size);
    }
    __atomic_sub_fetch(&used, size, __ATOMIC_RELAXED);
    return NULL;
}

/* Two threads may add the same at the same time: then it is there twice. */
void crm_sql_cache_add(crm_sql_t *sql)
{
    entry_t **bucket = &buckets[sql->hash % BUCKETS];
    apr_size_t len = sql->text.len, size = strlen(sql->printed) + 1;
    entry_t *entry = take(sizeof(*entry) + len + size);

    if (!entry) {
        return;
    }
    entry->hash = sql->hash;
    entry->distributed = sql->distributed;
    entry->len = len;
    entry->printed = memcpy(entry->parts + len, sql->printed, size);
    memcpy(entry->parts, sql->text.data, len);
    entry->next = __atomic_load_n(bucket, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(bucket, &entry->next, entry, 1,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
    sql->printed = entry->printed;
}
