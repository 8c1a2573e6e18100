/* SPDX-License-Identifier: Apache-2.0 */
/* crm_limit_key.c: adding, finding, evicting and removing keys */
#include "crm_limit_key.h"

#include <errno.h>

#include "crm_limit_ring.h"

/* The number of slots that are compared to find one to evict. */
#define SAMPLE 64

/* The pause before the next search for spare pieces after one that has found
 * none, in microseconds. */
#define SPARE_US APR_INT64_C(1000000)

/* Remove slot NUMBER from the chain of BUCKET. Both locks are held. */
static void chain_unlink(crm_limit_t *block, crm_bucket_t *bucket,
                         apr_uint32_t number)
{
    apr_uint32_t *link = &bucket->first;

    while (*link && *link != number) {
        link = &crm_slot_at(block, *link)->next;
    }
    if (*link) {
        CRM_COMMIT(*link, crm_slot_at(block, number)->next);
    }
}

apr_uint32_t crm_chains_mark(apr_uint32_t *pieces, crm_limit_t *block)
{
    apr_uint32_t fresh = block->allocator.fresh;
    apr_uint32_t count = 0;
    apr_uint32_t i, number;

    for (number = 1; number <= fresh; number++) {
        crm_slot_at(block, number)->mark = 0;
    }
    *pieces = 0;
    crm_ring_unmark(block);
    for (i = 0; i < block->layout.buckets; i++) {
        number = block->buckets[i].first;
        while (number) {
            if (number > fresh || crm_slot_at(block, number)->mark) {
                return APR_UINT32_MAX;
            }
            crm_slot_at(block, number)->mark = 1;
            count++;
            if (!crm_ring_mark(pieces, block, crm_slot_at(block, number))) {
                return APR_UINT32_MAX;
            }
            number = crm_slot_at(block, number)->next;
        }
    }
    return count;
}

/* Rebuild the free lists from the chains. Return 0 if these are damaged. The
 * allocator's lock is held, and what it protects may be inconsistent. */
static int free_rebuild(crm_limit_t *block)
{
    apr_uint32_t pieces;
    apr_uint32_t slots = crm_chains_mark(&pieces, block);
    apr_uint32_t list = 0;
    apr_uint32_t number;

    if (slots == APR_UINT32_MAX) {
        return 0;
    }
    for (number = block->allocator.fresh; number; number--) {
        crm_slot_t *slot = crm_slot_at(block, number);

        if (!slot->mark) {
            slot->next = list;
            list = number;
        }
    }
    CRM_COMMIT(block->allocator.free, list);
    CRM_POKE(block->allocator.slots, slots);
    crm_ring_rebuild(block);
    return 1;
}

int crm_allocator_lock(crm_limit_t *block)
{
    int error = pthread_mutex_lock(&block->allocator.lock);

    if (error == EOWNERDEAD) {
        CRM_COUNT(block->allocator.recovered);
        /* The lock is not marked consistent, so from its release on it is
         * broken for everyone. */
        if (!free_rebuild(block)) {
            pthread_mutex_unlock(&block->allocator.lock);
            return 0;
        }
        error = pthread_mutex_consistent(&block->allocator.lock);
    }
    return !error;
}

void crm_allocator_unlock(crm_limit_t *block)
{
    pthread_mutex_unlock(&block->allocator.lock);
}

/* Free slot NUMBER if its key was not used after LAST; otherwise update its
 * SEEN. Return whether it is free now. The allocator's lock is held. */
static int slot_reclaim(crm_limit_t *block, apr_uint32_t number,
                        apr_int64_t last)
{
    crm_slot_t *slot = crm_slot_at(block, number);
    crm_bucket_t *bucket = crm_bucket_of(block, slot->key.hash,
                                         slot->key.realm);
    int idle;

    if (!crm_bucket_lock(block, bucket)) {
        return 0;
    }
    idle = slot->used <= last;
    if (idle) {
        chain_unlink(block, bucket, number);
        CRM_POKE(block->allocator.slots, block->allocator.slots - 1);
        crm_ring_release(block, slot);
    } else {
        CRM_POKE(*crm_seen_at(block, number), slot->used);
    }
    crm_bucket_unlock(bucket);
    return idle;
}

/* Find an idle slot, free it and return its number, or 0. A search without a
 * result is not repeated until the least recently used slot can be idle. The
 * allocator's lock is held and every slot is in a chain. */
static apr_uint32_t idle_take(crm_limit_t *block, apr_int64_t now)
{
    crm_allocator_t *allocator = &block->allocator;
    apr_int64_t oldest = now;
    apr_uint32_t steps;

    if (now < allocator->full_until) {
        return 0;
    }
    for (steps = 0; steps < block->layout.keys; steps++) {
        apr_uint32_t number = allocator->hand % block->layout.keys + 1;
        apr_int64_t *seen = crm_seen_at(block, number);

        allocator->hand = number;
        if (now - CRM_PEEK(*seen) >= CRM_LIMIT_WINDOW_US
            && slot_reclaim(block, number, now - CRM_LIMIT_WINDOW_US)) {
            return number;
        }
        if (CRM_PEEK(*seen) < oldest) {
            oldest = CRM_PEEK(*seen);
        }
    }
    allocator->full_until = oldest + CRM_LIMIT_WINDOW_US;
    return 0;
}

/* Free the least recently used of the next SAMPLE slots and return its number,
 * or 0. The cost does not depend on the table's size, and recently used keys
 * are kept. The allocator's lock is held and every slot is in a chain. */
static apr_uint32_t oldest_take(crm_limit_t *block)
{
    apr_uint32_t keys = block->layout.keys;
    apr_uint32_t oldest = 0;

    for (apr_uint32_t i = 0; i < SAMPLE && i < keys; i++) {
        apr_uint32_t number = block->allocator.hand % keys + 1;

        block->allocator.hand = number;
        if (!oldest || CRM_PEEK(*crm_seen_at(block, number))
                       < CRM_PEEK(*crm_seen_at(block, oldest))) {
            oldest = number;
        }
    }
    return slot_reclaim(block, oldest, APR_INT64_MAX) ? oldest : 0;
}

/* Return the number of a free slot, or 0. The allocator's lock is held. */
static apr_uint32_t slot_take(crm_limit_t *block, apr_int64_t now)
{
    crm_allocator_t *allocator = &block->allocator;
    apr_uint32_t number = allocator->free;

    if (number) {
        CRM_COMMIT(allocator->free, crm_slot_at(block, number)->next);
    } else if (allocator->fresh < block->layout.keys) {
        number = allocator->fresh + 1;
        CRM_COMMIT(allocator->fresh, number);
    } else {
        number = block->layout.evict ? oldest_take(block)
                 : idle_take(block, now);
    }
    return number;
}

/* Free pieces that rings do not need now. A search without a result is not
 * repeated for a second. The allocator's lock is held. */
static void pieces_collect(crm_limit_t *block)
{
    crm_allocator_t *allocator = &block->allocator;
    apr_int64_t now = crm_limit_clock();
    apr_uint32_t i, number;

    if (now < allocator->spare_until) {
        return;
    }
    for (i = 0; i < block->layout.buckets; i++) {
        crm_bucket_t *bucket = &block->buckets[i];

        if (!crm_bucket_lock(block, bucket)) {
            continue;
        }
        for (number = bucket->first; number;
             number = crm_slot_at(block, number)->next) {
            for (int class = 0; class < CRM_LIMIT_CLASSES; class++) {
                crm_ring_trim(block, &crm_slot_at(block, number)
                                      ->windows[class], now);
            }
        }
        crm_bucket_unlock(bucket);
    }
    if (!crm_ring_has_free(block)) {
        allocator->spare_until = now + SPARE_US;
    }
}

int crm_limit_grow(crm_limit_t *block, const unsigned char hash[32],
                   apr_uint32_t realm, crm_limit_class_t class,
                   apr_uint32_t limit)
{
    crm_bucket_t *bucket = crm_bucket_of(block, hash, realm);
    apr_uint32_t number;
    int done = 1;

    if (!crm_allocator_lock(block)) {
        return 0;
    }
    if (!crm_ring_has_free(block)) {
        pieces_collect(block);
    }
    if (!crm_bucket_lock(block, bucket)) {
        crm_allocator_unlock(block);
        return 0;
    }
    number = crm_chain_find(block, bucket, hash, realm);
    if (number) {
        crm_window_t *window = &crm_slot_at(block, number)->windows[class];

        /* Another thread may have made room. */
        done = !crm_ring_full(block, window)
               || crm_ring_grow(block, window, limit);
    }
    crm_bucket_unlock(bucket);
    crm_allocator_unlock(block);
    if (!done) {
        CRM_COUNT(block->allocator.full);
    }
    return done;
}

/* Fill slot NUMBER, which is in no chain, with KEY and empty windows. NETWORKS
 * is the first piece of its networks. */
static void slot_fill(crm_limit_t *block, apr_uint32_t number,
                      const crm_limit_key_t *key, apr_uint32_t networks,
                      apr_int64_t now)
{
    crm_slot_t *slot = crm_slot_at(block, number);
    int class;

    memset(slot, 0, sizeof(*slot));
    slot->used = now;
    slot->touched = CRM_NEVER;
    slot->confirmed = now;
    slot->key = *key;
    slot->networks = networks;
    for (class = 0; class < CRM_LIMIT_CLASSES; class++) {
        slot->windows[class].last = now - CRM_LIMIT_WINDOW_US;
    }
    CRM_POKE(*crm_seen_at(block, number), now);
}

/* Give SLOT, whose bucket is locked, the terms of KEY. NETWORKS is the first
 * piece of its networks. TERMS is empty as long as they are incomplete. Return
 * the first piece of the old networks. */
static apr_uint32_t slot_renew(crm_slot_t *slot, const crm_limit_key_t *key,
                               apr_uint32_t networks)
{
    apr_uint32_t before = slot->networks;
    char first = key->terms[0];

    CRM_COMMIT(slot->key.terms[0], '\0');
    slot->networks = networks;
    slot->key.networks = key->networks;
    memcpy(slot->key.limits, key->limits, sizeof(key->limits));
    memcpy(slot->key.terms + 1, key->terms + 1, sizeof(key->terms) - 1);
    CRM_COMMIT(slot->key.terms[0], first);
    return before;
}

/* Insert slot NUMBER into the chain of BUCKET. Return 0 if the bucket cannot be
 * locked. The allocator's lock is held. */
static int chain_link(crm_limit_t *block, crm_bucket_t *bucket,
                      apr_uint32_t number)
{
    if (!crm_bucket_lock(block, bucket)) {
        return 0;
    }
    crm_slot_at(block, number)->next = bucket->first;
    CRM_COMMIT(bucket->first, number);
    crm_bucket_unlock(bucket);
    CRM_POKE(block->allocator.slots, block->allocator.slots + 1);
    return 1;
}

/* Add slot NUMBER, which is in no chain, to the free list. The allocator's lock
 * is held. */
static void slot_free(crm_limit_t *block, apr_uint32_t number)
{
    crm_slot_at(block, number)->next = block->allocator.free;
    CRM_COMMIT(block->allocator.free, number);
}

/* Add KEY, which has no slot, with the first piece of its NETWORKS. Return 0 if
 * there is no room. The allocator's lock keeps others from adding it
 * meanwhile. */
static int key_insert(crm_limit_t *block, const crm_limit_key_t *key,
                      apr_uint32_t networks)
{
    apr_int64_t now = crm_limit_clock();
    apr_uint32_t number = slot_take(block, now);

    if (number) {
        slot_fill(block, number, key, networks, now);
    }
    if (number && !chain_link(block, crm_bucket_of(block, key->hash,
                                                   key->realm), number)) {
        slot_free(block, number);
        number = 0;
    }
    if (!number) {
        crm_ring_free(block, networks);
    }
    return number != 0;
}

/* Give the slot of KEY its terms, with the first piece of its NETWORKS. Return
 * 0 if it has no slot. The allocator's lock is held. */
static int key_renew(crm_limit_t *block, const crm_limit_key_t *key,
                     apr_uint32_t networks)
{
    crm_bucket_t *bucket = crm_bucket_of(block, key->hash, key->realm);
    apr_uint32_t number = 0, unused = networks;

    if (crm_bucket_lock(block, bucket)) {
        number = crm_chain_find(block, bucket, key->hash, key->realm);
        if (number) {
            unused = slot_renew(crm_slot_at(block, number), key, networks);
        }
        crm_bucket_unlock(bucket);
    }
    crm_ring_free(block, unused);
    return number != 0;
}

int crm_limit_add(crm_limit_t *block, const crm_limit_key_t *key,
                  const crm_network_t *networks)
{
    apr_uint32_t pieces = 0;
    int added;

    if (!crm_allocator_lock(block)) {
        return CRM_LIMIT_FULL;
    }
    if (key->networks && !crm_ring_has_free(block)) {
        pieces_collect(block);
    }
    added = crm_ring_networks(&pieces, block, networks, key->networks)
            && (crm_limit_find(NULL, block, key->hash, key->realm)
                ? key_renew(block, key, pieces)
                : key_insert(block, key, pieces));
    if (!added) {
        CRM_COUNT(block->allocator.full);
    }
    crm_allocator_unlock(block);
    return added ? CRM_LIMIT_ADDED : CRM_LIMIT_FULL;
}

void crm_limit_forget(crm_limit_t *block, const unsigned char hash[32],
                      apr_uint32_t realm)
{
    crm_bucket_t *bucket = crm_bucket_of(block, hash, realm);
    apr_uint32_t number = 0;

    if (!crm_allocator_lock(block)) {
        return;
    }
    if (crm_bucket_lock(block, bucket)) {
        number = crm_chain_find(block, bucket, hash, realm);
        if (number) {
            chain_unlink(block, bucket, number);
        }
        crm_bucket_unlock(bucket);
    }
    if (number) {
        crm_ring_release(block, crm_slot_at(block, number));
        slot_free(block, number);
        CRM_POKE(block->allocator.slots, block->allocator.slots - 1);
    }
    crm_allocator_unlock(block);
}

/* Append a request at TIME to WINDOW of BLOCK, which no other process uses. If
 * there is no memory for it, drop the oldest. */
static void window_append(crm_limit_t *block, crm_window_t *window,
                          apr_int64_t time)
{
    if (crm_ring_full(block, window)
        && !crm_ring_grow(block, window, CRM_LIMIT_RING_MAX)) {
        if (!window->head) {
            return;
        }
        while (crm_ring_full(block, window)) {
            window->tail = crm_ring_next(block, window->tail);
        }
    }
    crm_ring_add(block, window, time);
}

/* Copy the windows and times of slot FROM of OLD to slot TO of BLOCK, which has
 * the same key. */
static void slot_inherit(crm_limit_t *block, apr_uint32_t to,
                         crm_limit_t *old, apr_uint32_t from)
{
    const crm_slot_t *source = crm_slot_at(old, from);
    crm_slot_t *target = crm_slot_at(block, to);
    int class;

    target->used = source->used;
    target->touched = source->touched;
    target->confirmed = source->confirmed;
    CRM_POKE(*crm_seen_at(block, to), source->used);
    for (class = 0; class < CRM_LIMIT_CLASSES; class++) {
        const crm_window_t *window = &source->windows[class];
        apr_uint32_t count = crm_ring_count(window);
        crm_place_t place = window->tail;

        for (; count; count--) {
            window_append(block, &target->windows[class],
                          *crm_ring_time(old, place));
            place = crm_ring_next(old, place);
        }
        target->windows[class].last = window->last;
        target->windows[class].closed = window->closed;
        target->windows[class].closed_limit = window->closed_limit;
    }
}

/* Copy the networks of SLOT of BLOCK to NETWORKS. */
static void networks_copy(crm_network_t *networks, crm_limit_t *block,
                          const crm_slot_t *slot)
{
    apr_uint32_t piece = slot->networks;
    int count = slot->key.networks;

    while (count) {
        /* The first piece has the last networks: crm_ring_networks(). */
        int some = (count - 1) % CRM_PIECE_NETWORKS + 1;

        memcpy(networks + count - some, crm_piece_at(block, piece)->networks,
               (size_t)some * sizeof(*networks));
        count -= some;
        piece = crm_link_at(block, piece)->next;
    }
}

int crm_limit_networks(crm_network_t *networks, crm_limit_t *block,
                       const unsigned char hash[32], apr_uint32_t realm)
{
    crm_bucket_t *bucket = crm_bucket_of(block, hash, realm);
    apr_uint32_t number;
    int count = -1;

    if (!crm_bucket_lock(block, bucket)) {
        return -1;
    }
    number = crm_chain_find(block, bucket, hash, realm);
    if (number) {
        const crm_slot_t *slot = crm_slot_at(block, number);

        networks_copy(networks, block, slot);
        count = slot->key.networks;
    }
    crm_bucket_unlock(bucket);
    return count;
}

int crm_limit_ask(crm_limit_t *block, const unsigned char hash[32],
                  apr_uint32_t realm, apr_int64_t interval)
{
    crm_bucket_t *bucket = crm_bucket_of(block, hash, realm);
    apr_int64_t now = crm_limit_clock();
    apr_uint32_t number;
    int due = 0;

    if (!crm_bucket_lock(block, bucket)) {
        return 0;
    }
    number = crm_chain_find(block, bucket, hash, realm);
    if (number) {
        crm_slot_t *slot = crm_slot_at(block, number);

        due = now - slot->confirmed >= interval;
        if (due) {
            slot->confirmed = now;
        }
    }
    crm_bucket_unlock(bucket);
    return due;
}

/* Copy the key of slot NUMBER of OLD, whose bucket is locked, to BLOCK with its
 * windows, unless it is idle. Return 0 if BLOCK is full. */
static int key_inherit(crm_limit_t *block, crm_limit_t *old,
                       apr_uint32_t number)
{
    const crm_slot_t *slot = crm_slot_at(old, number);
    const crm_limit_key_t *key = &slot->key;
    crm_network_t networks[CRM_NETWORKS_MAX];
    const crm_bucket_t *bucket;

    if (crm_limit_clock() - slot->used >= CRM_LIMIT_WINDOW_US) {
        return 1;
    }
    networks_copy(networks, old, slot);
    if (crm_limit_add(block, key, networks) == CRM_LIMIT_FULL) {
        return 0;
    }
    bucket = crm_bucket_of(block, key->hash, key->realm);
    slot_inherit(block,
                 crm_chain_find(block, bucket, key->hash, key->realm),
                 old, number);
    return 1;
}

apr_uint32_t crm_limit_inherit(crm_limit_t *block, crm_limit_t *old)
{
    apr_uint32_t left_out = 0;
    apr_uint32_t i, number;

    for (i = 0; i < old->layout.buckets; i++) {
        crm_bucket_t *bucket = &old->buckets[i];

        if (!crm_bucket_lock(old, bucket)) {
            continue;
        }
        for (number = bucket->first; number;
             number = crm_slot_at(old, number)->next) {
            left_out += !key_inherit(block, old, number);
        }
        crm_bucket_unlock(bucket);
    }
    return left_out;
}
