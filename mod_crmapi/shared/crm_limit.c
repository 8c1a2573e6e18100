/* SPDX-License-Identifier: Apache-2.0 */
/* crm_limit.c: rate limits in shared memory: the block and its windows */
#include "crm_limit.h"

#include "apr_general.h"

#include "crm_limit_key.h"
#include "crm_limit_ring.h"
#include "crm_robust.h"
#include "crm_time.h"

#define MAGIC 0x43524d4cU       /* "CRML" */
#define VERSION 4U

static apr_int64_t (*clock_us)(void) = crm_time_monotonic;

apr_int64_t crm_limit_clock(void)
{
    return clock_us();
}

void crm_limit_set_clock(apr_int64_t (*now_us)(void))
{
    clock_us = now_us ? now_us : crm_time_monotonic;
}

/* Return SIZE rounded up to a multiple of CRM_LINE. */
static apr_uint64_t lines_up(apr_uint64_t size)
{
    return (size + CRM_LINE - 1) / CRM_LINE * CRM_LINE;
}

/* Set *LAYOUT for CONFIG. Return 0 if CONFIG is out of range. Within the ranges
 * 64 bits cannot overflow. */
static int layout_make(crm_layout_t *layout, const crm_limit_config_t *config)
{
    apr_uint64_t pieces = 0, most;
    int class;

    memset(layout, 0, sizeof(*layout));
    if (!config->keys || config->keys > CRM_LIMIT_KEYS_MAX) {
        return 0;
    }
    for (class = 0; class < CRM_LIMIT_CLASSES; class++) {
        if (config->ring[class] > CRM_LIMIT_RING_MAX) {
            return 0;
        }
        layout->ring[class] = config->ring[class];
        pieces += crm_ring_pieces(config->ring[class]);
    }
    pieces *= config->keys;
    most = (apr_uint64_t)config->keys * CRM_LIMIT_CLASSES
           + CRM_RING_TIMES / CRM_PIECE_TIMES;
    layout->pieces = (apr_uint32_t)(pieces < most ? pieces : most);
    layout->keys = config->keys;
    layout->evict = config->evict != 0;
    layout->buckets = 1;
    while (layout->buckets < layout->keys) {
        layout->buckets *= 2;
    }
    layout->seen = sizeof(crm_limit_t)
                   + (apr_uint64_t)layout->buckets * sizeof(crm_bucket_t);
    layout->slots = lines_up(layout->seen
                             + (apr_uint64_t)layout->keys
                               * sizeof(apr_int64_t));
    layout->links = layout->slots + (apr_uint64_t)layout->keys * CRM_SLOT_SIZE;
    layout->times = lines_up(layout->links + (apr_uint64_t)layout->pieces
                                             * sizeof(crm_link_t));
    layout->size = layout->times + (apr_uint64_t)layout->pieces
                                   * sizeof(crm_piece_t);
    return layout->size <= APR_SIZE_MAX;
}

apr_size_t crm_limit_size(const crm_limit_config_t *config)
{
    crm_layout_t layout;

    return layout_make(&layout, config) ? (apr_size_t)layout.size : 0;
}

/* Return the error REASON, in POOL. */
static crm_error_t *fault(const char *reason, apr_pool_t *pool)
{
    return crm_error_logf(CRM_E_INTERNAL, pool, "%s", reason);
}

crm_error_t *crm_limit_init(crm_limit_t *block, apr_size_t size,
                            const crm_limit_config_t *config,
                            apr_pool_t *result_pool)
{
    crm_layout_t layout;
    apr_uint32_t i;

    if (!layout_make(&layout, config)) {
        return fault("the number of keys or a limit is out of range",
                     result_pool);
    }
    if (size < layout.size) {
        return fault("the memory is too small", result_pool);
    }
    if ((apr_uintptr_t)block % sizeof(apr_uint64_t)) {
        return fault("the memory is not aligned", result_pool);
    }
    memset(block, 0, sizeof(*block));
    block->layout = layout;
    if (apr_generate_random_bytes(block->secret, sizeof(block->secret))) {
        return fault("the system has no random bytes", result_pool);
    }
    if (!crm_robust_init(&block->allocator.lock)) {
        return fault("the system has no robust shared locks", result_pool);
    }
    for (i = 0; i < layout.buckets; i++) {
        memset(&block->buckets[i], 0, sizeof(crm_bucket_t));
        if (!crm_robust_init(&block->buckets[i].lock)) {
            return fault("the system has no robust shared locks", result_pool);
        }
    }
    block->version = VERSION;
    CRM_COMMIT(block->magic, MAGIC);
    return NULL;
}

const char *crm_limit_check(const crm_limit_t *block, apr_size_t size,
                            const crm_limit_config_t *config)
{
    crm_limit_config_t own;
    crm_layout_t layout;

    if (size < sizeof(*block) || block->magic != MAGIC
        || block->version != VERSION) {
        return "the memory was made by another version";
    }
    own.keys = block->layout.keys;
    own.evict = (int)block->layout.evict;
    memcpy(own.ring, block->layout.ring, sizeof(own.ring));
    if (!layout_make(&layout, &own) || size < layout.size
        || memcmp(&layout, &block->layout, sizeof(layout))) {
        return "the memory has another layout";
    }
    if (config->keys != own.keys) {
        return "the number of keys has changed";
    }
    if (!config->evict != !own.evict) {
        return "eviction of keys was switched on or off";
    }
    if (!layout_make(&layout, config)
        || layout.pieces > block->layout.pieces) {
        return "a limit was raised";
    }
    return NULL;
}

int crm_bucket_lock(crm_limit_t *block, crm_bucket_t *bucket)
{
    return crm_robust_lock(&bucket->lock, &block->allocator.recovered);
}

void crm_bucket_unlock(crm_bucket_t *bucket)
{
    pthread_mutex_unlock(&bucket->lock);
}

/* Record that the key of slot NUMBER was used. Its bucket is locked. */
static void slot_use(crm_limit_t *block, apr_uint32_t number, apr_int64_t now)
{
    apr_int64_t *seen = crm_seen_at(block, number);

    crm_slot_at(block, number)->used = now;
    if (now - CRM_PEEK(*seen) >= (block->layout.evict ? 0 : CRM_SEEN_LAG)) {
        CRM_COMMIT(*seen, now);
    }
}

int crm_limit_find(crm_limit_key_t *key_out, crm_limit_t *block,
                   const unsigned char hash[32], apr_uint32_t realm)
{
    crm_bucket_t *bucket = crm_bucket_of(block, hash, realm);
    apr_uint32_t number;

    if (!crm_bucket_lock(block, bucket)) {
        return 0;
    }
    number = crm_chain_find(block, bucket, hash, realm);
    if (number) {
        slot_use(block, number, clock_us());
        if (key_out) {
            *key_out = crm_slot_at(block, number)->key;
        }
    }
    crm_bucket_unlock(bucket);
    return number != 0;
}

/* Return whether WINDOW is closed under LIMIT (crm_limit_close()), or was until
 * GRACE microseconds ago. */
static int is_closed(const crm_window_t *window, apr_uint32_t limit,
                     apr_int64_t now, apr_int64_t grace)
{
    return window->closed_limit == limit && now - grace < window->closed;
}

/* Decide on a request at NOW under LIMIT, at least 1, set VERDICT, and count
 * the request in WINDOW if it is admitted. Return 0 if the ring must grow
 * first. */
static int window_admit(crm_limit_verdict_t *verdict, crm_limit_t *block,
                        crm_window_t *window, apr_uint32_t limit,
                        apr_int64_t now)
{
    apr_uint32_t count, leaves = 0;
    int closed;

    if (now < window->last) {
        now = window->last;     /* the clock went back */
    }
    crm_ring_expire(block, window, now);
    count = crm_ring_count(window);
    closed = is_closed(window, limit, now, 0);
    verdict->closed_lately = is_closed(window, limit, now,
                                       CRM_LIMIT_WINDOW_US);
    if (count < limit && !closed) {
        if (crm_ring_full(block, window)) {
            return 0;
        }
        /* TAIL was stored before: the new entry may replace the old TAIL. */
        crm_ring_add(block, window, now);
        verdict->admitted = 1;
        verdict->remaining = limit - count - 1;
    } else if (!closed) {
        /* A vhost with a higher limit may have counted more than LIMIT. Then
         * more than the oldest request must leave before one fits. */
        leaves = count - limit;
    }
    verdict->limit = limit;
    verdict->reset_us = closed ? window->closed - now : CRM_LIMIT_WINDOW_US
        - ((apr_uint32_t)now - *crm_ring_after(block, window, leaves));
    return 1;
}

/* Return the limit for a request of CLASS by KEY: its own up to CEILING, or
 * LIMIT, the vhost's, if it has none. */
static apr_uint32_t limit_of(const crm_limit_key_t *key,
                             crm_limit_class_t class, apr_uint32_t limit,
                             apr_uint32_t ceiling)
{
    apr_uint32_t own = key->limits[class];

    return !own ? limit : own > ceiling ? ceiling : own;
}

/* Return whether a touch of the key of SLOT of BLOCK is due at NOW. */
static int is_touch_due(const crm_slot_t *slot, const crm_limit_t *block,
                        apr_int64_t now)
{
    apr_int64_t age = now - slot->touched;

    return age >= CRM_LIMIT_WINDOW_US
           && age >= CRM_PEEK(block->allocator.slots) * CRM_LIMIT_TOUCH_US;
}

/* Set VERDICT's touch and confirm for a use of SLOT of BLOCK at NOW. */
static void set_due(crm_limit_verdict_t *verdict, crm_slot_t *slot,
                    const crm_limit_t *block, apr_int64_t now)
{
    if (verdict->admitted && is_touch_due(slot, block, now)) {
        slot->touched = now;
        verdict->touch = 1;
    }
    if (now - slot->confirmed >= CRM_LIMIT_CONFIRM_US) {
        slot->confirmed = now;
        verdict->confirm = 1;
    }
}

/* Decide on a request of CLASS by the key of slot NUMBER, whose bucket is
 * locked, under LIMIT, and set *VERDICT. Return 0 if the ring must grow
 * first. */
static int slot_admit(crm_limit_verdict_t *verdict, crm_limit_t *block,
                      apr_uint32_t number, crm_limit_class_t class,
                      apr_uint32_t limit)
{
    crm_slot_t *slot = crm_slot_at(block, number);
    apr_int64_t now = clock_us();

    verdict->known = 1;
    slot_use(block, number, now);
    if (!limit) {
        verdict->admitted = 1;
        verdict->reset_us = CRM_LIMIT_WINDOW_US;
    } else if (!window_admit(verdict, block, &slot->windows[class], limit,
                             now)) {
        return 0;
    }
    set_due(verdict, slot, block, now);
    return 1;
}

void crm_limit_admit(crm_limit_verdict_t *verdict, crm_limit_key_t *key_out,
                     crm_limit_t *block, const unsigned char hash[32],
                     apr_uint32_t realm, crm_limit_class_t class,
                     apr_uint32_t limit, apr_uint32_t ceiling)
{
    crm_bucket_t *bucket = crm_bucket_of(block, hash, realm);
    crm_counts_t *counts = block->counts
                           + (bucket - block->buckets) % CRM_STRIPES;
    apr_uint32_t number, own = limit;
    int done;

    do {
        memset(verdict, 0, sizeof(*verdict));
        if (!crm_bucket_lock(block, bucket)) {
            return;
        }
        done = 1;
        number = crm_chain_find(block, bucket, hash, realm);
        if (number) {
            const crm_limit_key_t *key = &crm_slot_at(block, number)->key;

            own = limit_of(key, class, limit, ceiling);
            done = slot_admit(verdict, block, number, class, own);
            if (done && verdict->admitted) {
                CRM_COUNT(counts->admitted[class]);
            } else if (done) {
                CRM_COUNT(counts->refused[class]);
            }
            if (done && key_out) {
                *key_out = *key;
            }
        }
        crm_bucket_unlock(bucket);
    } while (!done && crm_limit_grow(block, hash, realm, class, own));
    verdict->full = !done;
}

void crm_limit_look(crm_limit_verdict_t *verdict, crm_limit_t *block,
                    const unsigned char hash[32], apr_uint32_t realm,
                    crm_limit_class_t class, apr_uint32_t limit,
                    apr_uint32_t ceiling)
{
    crm_bucket_t *bucket = crm_bucket_of(block, hash, realm);
    apr_uint32_t number;

    memset(verdict, 0, sizeof(*verdict));
    if (!crm_bucket_lock(block, bucket)) {
        return;
    }
    number = crm_chain_find(block, bucket, hash, realm);
    if (number) {
        crm_slot_t *slot = crm_slot_at(block, number);
        crm_window_t *window = &slot->windows[class];
        apr_int64_t now = clock_us();
        apr_uint32_t count;

        now = now < window->last ? window->last : now;
        crm_ring_expire(block, window, now);
        count = crm_ring_count(window);
        verdict->known = 1;
        verdict->limit = limit_of(&slot->key, class, limit, ceiling);
        verdict->remaining = count < verdict->limit ? verdict->limit - count
                             : 0;
        verdict->reset_us = CRM_LIMIT_WINDOW_US - (count ? (apr_uint32_t)now
                            - *crm_ring_after(block, window, 0) : 0);
    }
    crm_bucket_unlock(bucket);
}

void crm_limit_refund(crm_limit_t *block, const unsigned char hash[32],
                      apr_uint32_t realm, crm_limit_class_t class)
{
    crm_bucket_t *bucket = crm_bucket_of(block, hash, realm);
    apr_uint32_t number;

    if (!crm_bucket_lock(block, bucket)) {
        return;
    }
    number = crm_chain_find(block, bucket, hash, realm);
    if (number) {
        crm_ring_undo(block, &crm_slot_at(block, number)->windows[class]);
    }
    crm_bucket_unlock(bucket);
}

/* Take the last request out of WINDOW and close it under LIMIT until UNTIL. */
static void window_close(crm_limit_t *block, crm_window_t *window,
                         apr_uint32_t limit, apr_int64_t until)
{
    crm_ring_undo(block, window);
    CRM_COMMIT(window->closed_limit, 0);
    CRM_COMMIT(window->closed, until);
    CRM_COMMIT(window->closed_limit, limit);
}

void crm_limit_close(crm_limit_verdict_t *verdict, crm_limit_t *block,
                     const crm_limit_key_t *key, crm_limit_class_t class,
                     apr_int64_t until)
{
    crm_bucket_t *bucket = crm_bucket_of(block, key->hash, key->realm);
    crm_counts_t *counts = block->counts
                           + (bucket - block->buckets) % CRM_STRIPES;
    apr_uint32_t number;

    if (!crm_bucket_lock(block, bucket)) {
        return;
    }
    number = crm_chain_find(block, bucket, key->hash, key->realm);
    if (number) {
        crm_slot_t *slot = crm_slot_at(block, number);

        window_close(block, &slot->windows[class], verdict->limit, until);
        if (verdict->touch) {
            slot->touched = CRM_NEVER;
        }
    }
    crm_bucket_unlock(bucket);
    CRM_UNCOUNT(counts->admitted[class]);
    CRM_COUNT(counts->refused[class]);
    verdict->admitted = verdict->touch = 0;
    verdict->remaining = 0;
}

void crm_limit_stats(crm_limit_stats_t *stats, crm_limit_t *block)
{
    int stripe, class;

    memset(stats, 0, sizeof(*stats));
    for (stripe = 0; stripe < CRM_STRIPES; stripe++) {
        crm_counts_t *counts = &block->counts[stripe];

        for (class = 0; class < CRM_LIMIT_CLASSES; class++) {
            stats->admitted[class] += CRM_PEEK(counts->admitted[class]);
            stats->refused[class] += CRM_PEEK(counts->refused[class]);
        }
    }
    stats->full = CRM_PEEK(block->allocator.full);
    stats->recovered = CRM_PEEK(block->allocator.recovered);
    stats->slots = CRM_PEEK(block->allocator.slots);
    stats->capacity = block->layout.keys;
    stats->pieces = CRM_PEEK(block->allocator.fresh_piece);
    stats->touched = block->layout.slots
                     + (apr_uint64_t)CRM_PEEK(block->allocator.fresh)
                       * CRM_SLOT_SIZE
                     + (apr_uint64_t)stats->pieces
                       * (sizeof(crm_link_t) + sizeof(crm_piece_t));
}
