/* SPDX-License-Identifier: Apache-2.0 */
/* crm_limit_key.c: adding, finding, evicting and removing keys */
#include "crm_limit_key.h"

#include <errno.h>

#include "crm_limit_block.h"

/* Slots that are compared to find one to evict. */
#define SAMPLE 64

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

/* Mark slots in chains with 1 and all other slots that ever had a key with 0.
 * Return the number of slots in chains, or APR_UINT32_MAX if the chains are
 * damaged. The allocator's lock is held. */
static apr_uint32_t chains_mark(crm_limit_t *block)
{
    apr_uint32_t fresh = block->allocator.fresh;
    apr_uint32_t count = 0;
    apr_uint32_t i, number;

    for (number = 1; number <= fresh; number++) {
        crm_slot_at(block, number)->mark = 0;
    }
    for (i = 0; i < block->layout.buckets; i++) {
        number = block->buckets[i].first;
        while (number) {
            if (number > fresh || crm_slot_at(block, number)->mark) {
                return APR_UINT32_MAX;
            }
            crm_slot_at(block, number)->mark = 1;
            count++;
            number = crm_slot_at(block, number)->next;
        }
    }
    return count;
}

/* Rebuild the free list from the chains. Return 0 if these are damaged. The
 * allocator's lock is held and its state unknown. */
static int free_rebuild(crm_limit_t *block)
{
    apr_uint32_t slots = chains_mark(block);
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
    return 1;
}

/* Lock the allocator. Return 0 if its lock is broken. */
static int allocator_lock(crm_limit_t *block)
{
    int error = pthread_mutex_lock(&block->allocator.lock);

    if (error == EOWNERDEAD) {
        CRM_COUNT(block->allocator.recovered);
        /* Not marked consistent: the lock is broken for everyone once it is
         * released. */
        if (!free_rebuild(block)) {
            pthread_mutex_unlock(&block->allocator.lock);
            return 0;
        }
        error = pthread_mutex_consistent(&block->allocator.lock);
    }
    return !error;
}

static void allocator_unlock(crm_limit_t *block)
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

/* Fill slot NUMBER, which is in no chain, with KEY and empty windows. */
static void slot_fill(crm_limit_t *block, apr_uint32_t number,
                      const crm_limit_key_t *key, apr_int64_t now)
{
    crm_slot_t *slot = crm_slot_at(block, number);
    int class;

    memset(slot, 0, sizeof(*slot));
    slot->used = now;
    slot->touched = now - CRM_LIMIT_WINDOW_US;
    slot->confirmed = now;
    slot->key = *key;
    for (class = 0; class < CRM_LIMIT_CLASSES; class++) {
        slot->windows[class].last = now - CRM_LIMIT_WINDOW_US;
    }
    CRM_POKE(*crm_seen_at(block, number), now);
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

int crm_limit_add(crm_limit_t *block, const crm_limit_key_t *key)
{
    crm_bucket_t *bucket = crm_bucket_of(block, key->hash, key->realm);
    int result = CRM_LIMIT_ADDED;
    apr_uint32_t number;
    apr_int64_t now;

    if (!allocator_lock(block)) {
        return CRM_LIMIT_FULL;
    }
    /* The allocator's lock keeps others from adding it meanwhile. */
    if (!crm_limit_find(NULL, block, key->hash, key->realm)) {
        now = crm_limit_clock();
        number = slot_take(block, now);
        if (number) {
            slot_fill(block, number, key, now);
        }
        if (number && !chain_link(block, bucket, number)) {
            slot_free(block, number);
            number = 0;
        }
        if (!number) {
            CRM_COUNT(block->allocator.full);
            result = CRM_LIMIT_FULL;
        }
    }
    allocator_unlock(block);
    return result;
}

void crm_limit_forget(crm_limit_t *block, const unsigned char hash[32],
                      apr_uint32_t realm)
{
    crm_bucket_t *bucket = crm_bucket_of(block, hash, realm);
    apr_uint32_t number = 0;

    if (!allocator_lock(block)) {
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
        slot_free(block, number);
        CRM_POKE(block->allocator.slots, block->allocator.slots - 1);
    }
    allocator_unlock(block);
}

/* Copy the windows and times of slot FROM of OLD to slot TO of BLOCK, which has
 * the same key: of each class the latest that fit. */
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
        const apr_uint32_t *ring = source->times + old->layout.start[class];
        apr_uint32_t *times = target->times + block->layout.start[class];
        apr_uint64_t number = window->tail;

        if (window->head - number > block->layout.ring[class]) {
            number = window->head - block->layout.ring[class];
        }
        target->windows[class].last = window->last;
        target->windows[class].closed = window->closed;
        target->windows[class].closed_limit = window->closed_limit;
        target->windows[class].head = window->head - number;
        for (; number < window->head; number++) {
            *times++ = ring[number % old->layout.ring[class]];
        }
    }
}

/* Copy the key of slot NUMBER of OLD, whose bucket is locked, to BLOCK with its
 * windows, unless it is idle. Return 0 if BLOCK is full. */
static int key_inherit(crm_limit_t *block, crm_limit_t *old,
                       apr_uint32_t number)
{
    const crm_slot_t *slot = crm_slot_at(old, number);
    const crm_limit_key_t *key = &slot->key;
    const crm_bucket_t *bucket;

    if (crm_limit_clock() - slot->used >= CRM_LIMIT_WINDOW_US) {
        return 1;
    }
    if (crm_limit_add(block, key) == CRM_LIMIT_FULL) {
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

/* Return the inconsistency of WINDOW and its RING of SIZE entries, or NULL. Its
 * bucket is locked. */
static const char *window_validate(const crm_window_t *window,
                                   const apr_uint32_t *ring, apr_uint32_t size)
{
    apr_uint64_t number;
    apr_uint32_t age, younger = 0;

    if (window->tail > window->head || window->head - window->tail > size) {
        return "a window counts more requests than its ring holds";
    }
    for (number = window->head; number > window->tail; number--) {
        age = (apr_uint32_t)window->last - ring[(number - 1) % size];
        if (age < younger || age >= CRM_LIMIT_WINDOW_US) {
            return "the times in a ring are not in order";
        }
        younger = age;
    }
    return NULL;
}

/* Return the inconsistency of the slots in the chain of BUCKET, or NULL. Both
 * locks are held. */
static const char *bucket_validate(crm_limit_t *block,
                                   const crm_bucket_t *bucket)
{
    const char *fault = NULL;
    apr_uint32_t number;
    int class;

    for (number = bucket->first; number && !fault;
         number = crm_slot_at(block, number)->next) {
        const crm_slot_t *slot = crm_slot_at(block, number);

        if (crm_bucket_of(block, slot->key.hash, slot->key.realm) != bucket) {
            return "a slot is in the chain of another bucket";
        }
        if (crm_chain_find(block, bucket, slot->key.hash, slot->key.realm)
            != number) {
            return "a key has two slots";
        }
        if (CRM_PEEK(*crm_seen_at(block, number)) > slot->used) {
            return "a slot was seen later than used";
        }
        for (class = 0; class < CRM_LIMIT_CLASSES && !fault; class++) {
            fault = window_validate(&slot->windows[class],
                                    slot->times + block->layout.start[class],
                                    block->layout.ring[class]);
        }
    }
    return fault;
}

/* Return the inconsistency of the free list, or NULL. The allocator's lock is
 * held and the chains are marked. */
static const char *free_validate(crm_limit_t *block)
{
    apr_uint32_t unused = block->allocator.fresh - block->allocator.slots;
    apr_uint32_t number = block->allocator.free;

    while (number) {
        if (number > block->allocator.fresh
            || crm_slot_at(block, number)->mark) {
            return "the free list has a slot that is in use";
        }
        crm_slot_at(block, number)->mark = 1;
        unused--;
        number = crm_slot_at(block, number)->next;
    }
    return unused ? "slots are neither in use nor free" : NULL;
}

const char *crm_limit_validate(crm_limit_t *block)
{
    const char *fault = NULL;
    apr_uint32_t slots, i;

    if (!allocator_lock(block)) {
        return "the allocator's lock is broken";
    }
    slots = chains_mark(block);
    if (slots == APR_UINT32_MAX) {
        fault = "the chains are damaged";
    } else if (slots != block->allocator.slots) {
        fault = "the count of slots is incorrect";
    } else {
        fault = free_validate(block);
    }
    for (i = 0; i < block->layout.buckets && !fault; i++) {
        if (!crm_bucket_lock(block, &block->buckets[i])) {
            fault = "a bucket's lock is broken";
            break;
        }
        fault = bucket_validate(block, &block->buckets[i]);
        crm_bucket_unlock(&block->buckets[i]);
    }
    allocator_unlock(block);
    return fault;
}
