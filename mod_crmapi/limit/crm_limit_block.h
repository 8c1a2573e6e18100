/* SPDX-License-Identifier: Apache-2.0 */
/* crm_limit_block.h: the layout of the block of crm_limit.h (private) */
#ifndef CRM_LIMIT_BLOCK_H
#define CRM_LIMIT_BLOCK_H

/* The layout of the block:
 *
 *   crm_limit_t    layout, secret       written once
 *                  allocator            lock, list of free slots
 *                  counts               16 cache lines, against contention
 *                  buckets              64 bytes each: lock, first slot; a
 *                                       power of two, not below the keys
 *   apr_int64_t    seen                 one for each slot
 *   crm_slot_t     slots                key, windows, times
 *
 *   bucket --first--> slot --next--> slot --next--> 0
 *   allocator --free--> slot --next--> 0       slots that had a key
 *             --fresh                          from here on: slots never used
 *
 * Slots are referred to by number, from 1; 0 means none. There are no pointers.
 *
 * Memory: 1,280 bytes, and for each key
 *     8 + (208 + 80 + 4 * (read limit + write limit), rounded up to 64) bytes,
 * and 64 for each bucket. With the limits of the specification, 120 and 60,
 * that is 1,096 bytes for each key and its bucket; with 65,536 keys 68.5 MiB,
 * of which 4 MiB are touched at start and the rest when keys are added.
 *
 * Exactness (contract 4.1). A window stores the time of each request that it
 * counts. Times are the low 32 bits of microseconds. That suffices: requests
 * that have left the window are removed before one is added, and all of them
 * once the youngest has left, so no time in a ring is older than 120 s.
 *
 * Locks. A bucket's lock protects its chain, and the windows and times of use
 * of its slots. The allocator's lock protects which slot is where; changing a
 * chain takes both. Order: the allocator's lock, then one bucket's. An
 * admission takes the bucket's lock only.
 *
 * Killed processes. Locks are robust: after its owner's death the kernel hands
 * a lock to the next process. A bucket needs no repair, because each change of
 * it takes effect by one store; without that store, earlier ones have no
 * effect. Slots that were between the free list and a chain are recovered by
 * rebuilding the free list from the chains. */

#include <pthread.h>
#include <string.h>

#include <openssl/crypto.h>

#include "apr_siphash.h"

#include "crm_limit.h"

#define CRM_LINE 64             /* a cache line, against false sharing */
#define CRM_STRIPES 16

/* The maximum lag of SEEN, in microseconds. Rare writes keep busy keys whose
 * SEEN share a cache line from contending. There is no lag if slots are
 * evicted: otherwise the busiest key could look like the oldest. */
#define CRM_SEEN_LAG APR_INT64_C(1000000)

/* A release store: whoever sees it also sees all stores before it, even after
 * the process that made them was killed. */
#define CRM_COMMIT(place, value) \
    __atomic_store_n(&(place), (value), __ATOMIC_RELEASE)
/* Access to data that others may access concurrently. */
#define CRM_PEEK(place) __atomic_load_n(&(place), __ATOMIC_RELAXED)
#define CRM_POKE(place, value) \
    __atomic_store_n(&(place), (value), __ATOMIC_RELAXED)
#define CRM_COUNT(place) __atomic_fetch_add(&(place), 1, __ATOMIC_RELAXED)
#define CRM_UNCOUNT(place) __atomic_fetch_sub(&(place), 1, __ATOMIC_RELAXED)

/* The counted requests of a key and class are numbered TAIL to HEAD - 1. */
typedef struct crm_window_t {
    apr_uint64_t head;
    apr_uint64_t tail;
    apr_int64_t last;           /* time of request HEAD - 1, or later */
    apr_int64_t closed;         /* crm_limit_close(): refuse until then ... */
    apr_uint32_t closed_limit;  /* ... under this limit; 0: not closed */
} crm_window_t;

typedef struct crm_slot_t {
    apr_uint32_t next;
    apr_uint32_t mark;          /* for chains_mark() */
    apr_int64_t used;           /* when the key was last used */
    apr_int64_t touched;        /* when verdict->touch was last set */
    apr_int64_t confirmed;      /* when CONFIRM was last set */
    crm_limit_key_t key;
    crm_window_t windows[CRM_LIMIT_CLASSES];
    apr_uint32_t times[];       /* rings: request n is at n modulo the size */
} crm_slot_t;

typedef union crm_bucket_t {
    struct {
        pthread_mutex_t lock;
        apr_uint32_t first;
    };
    char line[CRM_LINE];
} crm_bucket_t;

typedef union crm_allocator_t {
    struct {
        pthread_mutex_t lock;
        apr_uint32_t free;      /* first of the free list */
        apr_uint32_t fresh;     /* slots that ever had a key */
        apr_uint32_t hand;      /* where the next search starts */
        apr_uint32_t slots;     /* in chains */
        apr_int64_t full_until; /* no slot can be idle before this time */
        apr_uint64_t full, recovered; /* crm_limit_stats_t */
    };
    char line[2 * CRM_LINE];
} crm_allocator_t;

typedef union crm_counts_t {
    struct {
        apr_uint64_t admitted[CRM_LIMIT_CLASSES];
        apr_uint64_t refused[CRM_LIMIT_CLASSES];
    };
    char line[CRM_LINE];
} crm_counts_t;

typedef struct crm_layout_t {
    apr_uint32_t keys;
    apr_uint32_t buckets;
    apr_uint32_t ring[CRM_LIMIT_CLASSES]; /* size, at least 1 */
    apr_uint32_t start[CRM_LIMIT_CLASSES]; /* in crm_slot_t.times */
    apr_uint32_t evict;
    apr_uint64_t slot_size;
    apr_uint64_t seen;          /* offset */
    apr_uint64_t slots;         /* offset */
    apr_uint64_t size;          /* size of the whole block */
} crm_layout_t;

struct crm_limit_t {
    union {
        struct {
            apr_uint32_t magic; /* 0 until the block is initialised */
            apr_uint32_t version;
            crm_layout_t layout;
            unsigned char secret[APR_SIPHASH_KSIZE];
        };
        char lines[2 * CRM_LINE];
    };
    crm_allocator_t allocator;
    crm_counts_t counts[CRM_STRIPES];
    crm_bucket_t buckets[];
};

/* Lock BUCKET. Return 0 if its lock is broken. */
int crm_bucket_lock(crm_limit_t *block, crm_bucket_t *bucket);
void crm_bucket_unlock(crm_bucket_t *bucket);

/* Return the slot of NUMBER. */
static inline crm_slot_t *crm_slot_at(crm_limit_t *block, apr_uint32_t number)
{
    return (crm_slot_t *)(void *)((char *)block + block->layout.slots
                                  + (number - 1) * block->layout.slot_size);
}

/* Return the address of SEEN of slot NUMBER: the time of its last use, up to
 * CRM_SEEN_LAG too early and never too late. */
static inline apr_int64_t *crm_seen_at(crm_limit_t *block, apr_uint32_t number)
{
    return (apr_int64_t *)(void *)((char *)block + block->layout.seen)
           + (number - 1);
}

/* Return the bucket for the key of HASH in REALM. */
static inline crm_bucket_t *crm_bucket_of(crm_limit_t *block,
                                          const unsigned char hash[32],
                                          apr_uint32_t realm)
{
    unsigned char text[32 + sizeof(realm)];

    memcpy(text, hash, 32);
    memcpy(text + 32, &realm, sizeof(realm));
    return &block->buckets[apr_siphash24(text, sizeof(text), block->secret)
                           & (block->layout.buckets - 1)];
}

/* Return the number of the slot with HASH and REALM in the chain of BUCKET,
 * which is locked, or 0. */
static inline apr_uint32_t crm_chain_find(crm_limit_t *block,
                                          const crm_bucket_t *bucket,
                                          const unsigned char hash[32],
                                          apr_uint32_t realm)
{
    apr_uint32_t number = bucket->first;

    while (number) {
        const crm_slot_t *slot = crm_slot_at(block, number);

        if (slot->key.realm == realm
            && !CRYPTO_memcmp(slot->key.hash, hash, 32)) {
            break;
        }
        number = slot->next;
    }
    return number;
}

#endif /* CRM_LIMIT_BLOCK_H */
