/* SPDX-License-Identifier: Apache-2.0 */
/* crm_limit_validate.c: whether a block is consistent, for tests */
#include "crm_limit_validate.h"

#include "crm_limit_ring.h"

/* Return the inconsistency of WINDOW, or NULL. Its bucket and the allocator are
 * locked, and its pieces are sound. */
static const char *window_validate(crm_limit_t *block,
                                   const crm_window_t *window)
{
    apr_uint32_t count = crm_ring_count(window);
    apr_uint32_t age, older = CRM_LIMIT_WINDOW_US - 1;
    crm_place_t place = window->tail;

    if (count > CRM_LIMIT_RING_MAX) {
        return "a window counts more requests than any limit allows";
    }
    for (; count; count--) {
        age = (apr_uint32_t)window->last - *crm_ring_time(block, place);
        if (age > older) {
            return "the times in a ring are not in order";
        }
        older = age;
        if (count > 1 && place == window->head) {
            return "a ring is too short for its window";
        }
        place = crm_ring_next(block, place);
    }
    return window->head && place != crm_ring_end(block, window)
           ? "a window does not end where its ring does" : NULL;
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
            fault = window_validate(block, &slot->windows[class]);
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

/* The same for pieces, of which USED are in use. */
static const char *pieces_validate(crm_limit_t *block, apr_uint32_t used)
{
    apr_uint32_t unused = block->allocator.fresh_piece - used;
    apr_uint32_t number = block->allocator.free_piece;

    while (number) {
        if (number > block->allocator.fresh_piece
            || crm_link_at(block, number)->mark) {
            return "the free list has a piece that is in use";
        }
        crm_link_at(block, number)->mark = 1;
        unused--;
        number = crm_link_at(block, number)->next;
    }
    return unused ? "pieces are neither in use nor free" : NULL;
}

const char *crm_limit_validate(crm_limit_t *block)
{
    const char *fault = NULL;
    apr_uint32_t slots, pieces, i;

    if (!crm_allocator_lock(block)) {
        return "the allocator's lock is broken";
    }
    slots = crm_chains_mark(&pieces, block);
    if (slots == APR_UINT32_MAX) {
        fault = "the chains are damaged";
    } else if (slots != block->allocator.slots) {
        fault = "the count of slots is incorrect";
    } else {
        fault = free_validate(block);
        fault = fault ? fault : pieces_validate(block, pieces);
    }
    for (i = 0; i < block->layout.buckets && !fault; i++) {
        if (!crm_bucket_lock(block, &block->buckets[i])) {
            fault = "a bucket's lock is broken";
            break;
        }
        fault = bucket_validate(block, &block->buckets[i]);
        crm_bucket_unlock(&block->buckets[i]);
    }
    crm_allocator_unlock(block);
    return fault;
}
