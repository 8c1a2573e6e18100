/* SPDX-License-Identifier: Apache-2.0 */
/* crm_limit_ring.h: rings of admission times, in pieces (private) */
#ifndef CRM_LIMIT_RING_H
#define CRM_LIMIT_RING_H

#include "crm_limit_block.h"

/* The maximum number of requests that all windows of a block count together, in
 * addition to two pieces for each key: 140,000 requests a second. */
#define CRM_RING_TIMES (1U << 23)

/* Return the number of pieces that a window with LIMIT may need. */
static inline apr_uint32_t crm_ring_pieces(apr_uint32_t limit)
{
    /* The oldest request may be the last of its piece. */
    return limit ? (limit + 2 * (CRM_PIECE_TIMES - 1)) / CRM_PIECE_TIMES : 0;
}

/* Return the number of requests in WINDOW. */
static inline apr_uint32_t crm_ring_count(const crm_window_t *window)
{
    return window->head ? CRM_PLACE_REQUEST(window->head)
                          - CRM_PLACE_REQUEST(window->tail) : 0;
}

/* Return the entry at PLACE. */
static inline apr_uint32_t *crm_ring_time(crm_limit_t *block,
                                          crm_place_t place)
{
    return &crm_piece_at(block, CRM_PLACE_PIECE(place))
           ->times[CRM_PLACE_REQUEST(place) % CRM_PIECE_TIMES];
}

/* Return the place after PLACE. */
static inline crm_place_t crm_ring_next(crm_limit_t *block, crm_place_t place)
{
    apr_uint32_t piece = CRM_PLACE_PIECE(place);
    apr_uint32_t request = CRM_PLACE_REQUEST(place) + 1;

    return CRM_PLACE(request % CRM_PIECE_TIMES ? piece
                     : crm_link_at(block, piece)->next, request);
}

/* Return the place of the next request of WINDOW, which has a ring. */
static inline crm_place_t crm_ring_end(crm_limit_t *block,
                                       const crm_window_t *window)
{
    apr_uint32_t piece = CRM_PLACE_PIECE(window->head);
    apr_uint32_t request = CRM_PLACE_REQUEST(window->head);

    return CRM_PLACE(request % CRM_PIECE_TIMES ? piece
                     : crm_link_at(block, piece)->next, request);
}

/* Return whether the ring of WINDOW must grow before a request is added. */
static inline int crm_ring_full(crm_limit_t *block, const crm_window_t *window)
{
    return !window->head
           || (CRM_PLACE_REQUEST(window->head) % CRM_PIECE_TIMES == 0
               && crm_ring_count(window)
               && crm_link_at(block, CRM_PLACE_PIECE(window->head))->next
                  == CRM_PLACE_PIECE(window->tail));
}

/* Add a request at TIME to WINDOW, whose ring is not full. */
static inline void crm_ring_add(crm_limit_t *block, crm_window_t *window,
                                apr_int64_t time)
{
    crm_place_t end = crm_ring_end(block, window);

    CRM_COMMIT(*crm_ring_time(block, end), (apr_uint32_t)time);
    /* If the process dies here, LAST is later than the last request. Requests
     * then count longer, never shorter. */
    CRM_COMMIT(window->last, time);
    CRM_COMMIT(window->head, CRM_PLACE(CRM_PLACE_PIECE(end),
                                       CRM_PLACE_REQUEST(end) + 1));
}

/* Return the entry of the request that is COUNT after the oldest of WINDOW. */
apr_uint32_t *crm_ring_after(crm_limit_t *block, const crm_window_t *window,
                             apr_uint32_t count);

/* Remove the last request from WINDOW, if it has one. */
void crm_ring_undo(crm_limit_t *block, crm_window_t *window);

/* Remove the requests from WINDOW that are not in (NOW - 60 s, NOW]. */
void crm_ring_expire(crm_limit_t *block, crm_window_t *window,
                     apr_int64_t now);

/* ---- pieces: the caller holds the allocator's lock ----------------------- */

/* Return whether BLOCK has a free piece. */
int crm_ring_has_free(const crm_limit_t *block);

/* Make room in the ring of WINDOW, whose bucket is locked: double it, up to the
 * pieces that LIMIT needs. Return 0 if there is no free piece. */
int crm_ring_grow(crm_limit_t *block, crm_window_t *window,
                  apr_uint32_t limit);

/* Free the pieces that WINDOW, whose bucket is locked, does not need at NOW. */
void crm_ring_trim(crm_limit_t *block, crm_window_t *window, apr_int64_t now);

/* Free all pieces of SLOT, which is in no chain. */
void crm_ring_release(crm_limit_t *block, crm_slot_t *slot);

/* Store the COUNT networks of NETWORKS in pieces and set *PIECE_P to the first.
 * Return 0 if there is not enough memory. */
int crm_ring_networks(apr_uint32_t *piece_p, crm_limit_t *block,
                      const crm_network_t *networks, int count);

/* Free the chain of pieces from PIECE on, 0 for none. */
void crm_ring_free(crm_limit_t *block, apr_uint32_t piece);

/* Mark the pieces of SLOT and add their number to *COUNT. Return 0 if one was
 * marked before: the rings are damaged. */
int crm_ring_mark(apr_uint32_t *count, crm_limit_t *block,
                  const crm_slot_t *slot);

/* Remove the marks of all pieces. */
void crm_ring_unmark(crm_limit_t *block);

/* Make a free list of all pieces that are not marked. */
void crm_ring_rebuild(crm_limit_t *block);

#endif /* CRM_LIMIT_RING_H */
