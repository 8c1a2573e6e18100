/* SPDX-License-Identifier: Apache-2.0 */
/* crm_limit_block.h: the layout of the block of crm_limit.h (private) */
#ifndef CRM_LIMIT_BLOCK_H
#define CRM_LIMIT_BLOCK_H

/* The layout of the block:
 *
 *   crm_limit_t    layout, secret       written once
 *                  allocator            lock, lists of free slots and pieces
 *                  counts               16 cache lines, against contention
 *                  buckets              64 bytes each: lock, first slot; a
 *                                       power of two, not below the keys
 *   apr_int64_t    seen                 one for each slot
 *   crm_slot_t     slots                key, windows
 *   crm_link_t     links                one for each piece
 *   crm_piece_t    pieces               64 bytes each: 16 times of admissions,
 *                                       or 3 networks
 *
 *   bucket --first--> slot --next--> slot --next--> 0
 *   allocator --free--> slot --next--> 0       slots that had a key
 *             --fresh                          from here on: slots never used
 *             --free_piece, fresh_piece        the same for pieces
 *   window --head, tail--> piece --next--> piece --next--> the first again
 *   slot --networks--> piece --next--> 0
 *
 * Slots and pieces are referred to by number, from 1; 0 means none. There are
 * no pointers.
 *
 * Memory: 1,280 bytes, 8 + 384 for each key, 64 for each bucket, and 72 for
 * each piece. A window has no piece before its first request, and never more
 * than its limit needs: crm_ring_pieces(), 9 for a limit of 120. There are
 * enough pieces for the highest limit of all keys, but not more than 2 for each
 * key plus those for CRM_RING_TIMES requests: no host admits so many in 60 s.
 * Slots and pieces are first touched when they are first used.
 *
 * Exactness (contract 4.1). A window stores the time of each request that it
 * counts. Times are the low 32 bits of microseconds. That suffices: requests
 * that have left the window are removed before one is added, and all of them
 * once the youngest has left, so no time in a ring is older than 120 s.
 *
 * Locks. A bucket's lock protects its chain, and the windows and times of use
 * of its slots. The allocator's lock protects which list each slot and piece is
 * in; changing a chain or the pieces of a ring takes both. Order: the
 * allocator's lock, then one bucket's. An admission takes the bucket's lock
 * only, except when its ring must grow. A ring doubles, so it rarely grows.
 *
 * Killed processes. Locks are robust: after its owner's death the kernel hands
 * a lock to the next process. A bucket needs no repair, because each change of
 * it takes effect by one store; without that store, earlier ones have no
 * effect. Slots and pieces that were between a free list and a chain are
 * recovered by rebuilding the free lists from the chains. */

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

/* A release store: a process that sees it also sees all stores before it, even
 * if the process that made them was killed. */
#define CRM_COMMIT(place, value) \
    __atomic_store_n(&(place), (value), __ATOMIC_RELEASE)
/* Access to data that others may access concurrently. */
#define CRM_PEEK(place) __atomic_load_n(&(place), __ATOMIC_RELAXED)
#define CRM_POKE(place, value) \
    __atomic_store_n(&(place), (value), __ATOMIC_RELAXED)
#define CRM_COUNT(place) __atomic_fetch_add(&(place), 1, __ATOMIC_RELAXED)
#define CRM_UNCOUNT(place) __atomic_fetch_sub(&(place), 1, __ATOMIC_RELAXED)

/* A place in a ring: the number of a piece in the high 32 bits, and the number
 * of a request, which wraps around, in the low 32 bits. Request n is entry n
 * modulo CRM_PIECE_TIMES of its piece. One store changes both. */
typedef apr_uint64_t crm_place_t;

#define CRM_PLACE(piece, request) \
    ((crm_place_t)(piece) << 32 | (apr_uint32_t)(request))
#define CRM_PLACE_PIECE(place) ((apr_uint32_t)((place) >> 32))
#define CRM_PLACE_REQUEST(place) ((apr_uint32_t)(place))

/* The counted requests of a key and class: from TAIL up to, but without, HEAD.
 * TAIL is the place of the oldest request, or of the next one if none is
 * counted. HEAD has the number of the next request, but the piece of the one
 * before it, because the next one may begin a piece that the ring does not have
 * yet. HEAD 0: there is no ring. */
typedef struct crm_window_t {
    crm_place_t head;
    crm_place_t tail;
    apr_int64_t last;           /* time of request HEAD - 1, or later */
    apr_int64_t closed;         /* crm_limit_close(): refuse until then ... */
    apr_uint32_t closed_limit;  /* ... under this limit; 0: not closed */
} crm_window_t;

/* Before all times of crm_limit_clock(), which may be subtracted from them. */
#define CRM_NEVER (-(APR_INT64_C(1) << 62))

typedef struct crm_slot_t {
    apr_uint32_t next;
    apr_uint32_t mark;          /* for crm_chains_mark() */
    apr_uint32_t networks;      /* the first piece of key.networks, or 0 */
    apr_int64_t used;           /* when the key was last used */
    apr_int64_t touched;        /* when verdict->touch was last set, or
                                   CRM_NEVER */
    apr_int64_t confirmed;      /* when CONFIRM was last set */
    crm_limit_key_t key;
    crm_window_t windows[CRM_LIMIT_CLASSES];
} crm_slot_t;

#define CRM_PIECE_TIMES 16
#define CRM_PIECE_NETWORKS 3

typedef union crm_piece_t {
    apr_uint32_t times[CRM_PIECE_TIMES];
    crm_network_t networks[CRM_PIECE_NETWORKS];
    char line[CRM_LINE];
} crm_piece_t;

typedef struct crm_link_t {
    apr_uint32_t next;
    apr_uint32_t mark;          /* for crm_chains_mark() */
} crm_link_t;

#define CRM_SLOT_SIZE \
    ((sizeof(crm_slot_t) + CRM_LINE - 1) / CRM_LINE * CRM_LINE)

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
        apr_uint32_t hand;      /* slot after which the next search starts */
        apr_uint32_t slots;     /* in chains */
        apr_uint32_t free_piece, fresh_piece; /* the same for pieces */
        apr_int64_t full_until; /* no slot can be idle before this time */
        apr_int64_t spare_until; /* no ring is searched for spare pieces before
                                    this time */
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
    apr_uint32_t ring[CRM_LIMIT_CLASSES]; /* as in the configuration */
    apr_uint32_t pieces;
    apr_uint32_t evict;
    apr_uint64_t seen;          /* offset */
    apr_uint64_t slots;         /* offset */
    apr_uint64_t links;         /* offset */
    apr_uint64_t times;         /* offset of the pieces */
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

/* Lock the allocator. Return 0 if its lock is broken. */
int crm_allocator_lock(crm_limit_t *block);
void crm_allocator_unlock(crm_limit_t *block);

/* Mark slots in chains and their pieces with 1 and all others that were ever
 * used with 0. Return the number of slots in chains and set *PIECES to that of
 * their pieces, or return APR_UINT32_MAX if the chains are damaged. The
 * allocator's lock is held. */
apr_uint32_t crm_chains_mark(apr_uint32_t *pieces, crm_limit_t *block);

/* Return the slot of NUMBER. */
static inline crm_slot_t *crm_slot_at(crm_limit_t *block, apr_uint32_t number)
{
    return (crm_slot_t *)(void *)((char *)block + block->layout.slots
                                  + (apr_size_t)(number - 1) * CRM_SLOT_SIZE);
}

/* Return the piece of NUMBER. */
static inline crm_piece_t *crm_piece_at(crm_limit_t *block, apr_uint32_t number)
{
    return (crm_piece_t *)(void *)((char *)block + block->layout.times)
           + (number - 1);
}

/* Return the link of piece NUMBER. */
static inline crm_link_t *crm_link_at(crm_limit_t *block, apr_uint32_t number)
{
    return (crm_link_t *)(void *)((char *)block + block->layout.links)
           + (number - 1);
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
