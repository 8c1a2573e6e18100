/* SPDX-License-Identifier: Apache-2.0 */
/* crm_limit_ring.c: rings of admission times, in pieces */
#include "crm_limit_ring.h"

apr_uint32_t *crm_ring_after(crm_limit_t *block, const crm_window_t *window,
                             apr_uint32_t count)
{
    apr_uint32_t piece = CRM_PLACE_PIECE(window->tail);
    apr_uint32_t entry = CRM_PLACE_REQUEST(window->tail) % CRM_PIECE_TIMES
                         + count;

    for (; entry >= CRM_PIECE_TIMES; entry -= CRM_PIECE_TIMES) {
        piece = crm_link_at(block, piece)->next;
    }
    return &crm_piece_at(block, piece)->times[entry];
}

/* Return the piece before PIECE in its ring. */
static apr_uint32_t piece_before(crm_limit_t *block, apr_uint32_t piece)
{
    apr_uint32_t before = piece;

    while (crm_link_at(block, before)->next != piece) {
        before = crm_link_at(block, before)->next;
    }
    return before;
}

void crm_ring_undo(crm_limit_t *block, crm_window_t *window)
{
    apr_uint32_t piece = CRM_PLACE_PIECE(window->head);
    apr_uint32_t request = CRM_PLACE_REQUEST(window->head) - 1;

    if (!crm_ring_count(window)) {
        return;
    }
    if (request % CRM_PIECE_TIMES == 0) {
        piece = piece_before(block, piece);
    }
    CRM_COMMIT(window->head, CRM_PLACE(piece, request));
}

void crm_ring_expire(crm_limit_t *block, crm_window_t *window, apr_int64_t now)
{
    crm_place_t tail = window->tail;
    apr_uint32_t count = crm_ring_count(window);

    if (!count) {
        return;
    }
    if (now - window->last >= CRM_LIMIT_WINDOW_US) {
        tail = crm_ring_end(block, window);
        count = 0;
    }
    for (; count && (apr_uint32_t)now - *crm_ring_time(block, tail)
                    >= CRM_LIMIT_WINDOW_US; count--) {
        tail = crm_ring_next(block, tail);
    }
    CRM_COMMIT(window->tail, tail);
}

/* ---- pieces -------------------------------------------------------------- */

int crm_ring_has_free(const crm_limit_t *block)
{
    return block->allocator.free_piece
           || block->allocator.fresh_piece < block->layout.pieces;
}

/* Return the number of a free piece, or 0. */
static apr_uint32_t piece_take(crm_limit_t *block)
{
    crm_allocator_t *allocator = &block->allocator;
    apr_uint32_t number = allocator->free_piece;

    if (number) {
        CRM_COMMIT(allocator->free_piece, crm_link_at(block, number)->next);
    } else if (allocator->fresh_piece < block->layout.pieces) {
        number = allocator->fresh_piece + 1;
        CRM_COMMIT(allocator->fresh_piece, number);
    }
    return number;
}

/* Free the pieces from FIRST to LAST of a chain. */
static void run_free(crm_limit_t *block, apr_uint32_t first, apr_uint32_t last)
{
    crm_link_at(block, last)->next = block->allocator.free_piece;
    CRM_COMMIT(block->allocator.free_piece, first);
}

/* Give WINDOW, which has no ring, one of one piece. */
static int ring_begin(crm_limit_t *block, crm_window_t *window)
{
    apr_uint32_t piece = piece_take(block);

    if (!piece) {
        return 0;
    }
    crm_link_at(block, piece)->next = piece;
    window->tail = CRM_PLACE(piece, 0);
    CRM_COMMIT(window->head, CRM_PLACE(piece, 0));
    return 1;
}

int crm_ring_grow(crm_limit_t *block, crm_window_t *window, apr_uint32_t limit)
{
    apr_uint32_t head = CRM_PLACE_PIECE(window->head);
    /* The ring is full: its pieces hold counted requests. */
    apr_uint32_t pieces = (crm_ring_count(window) + CRM_PIECE_TIMES - 1)
                          / CRM_PIECE_TIMES;
    apr_uint32_t first, last, wanted = crm_ring_pieces(limit), piece;

    if (!window->head) {
        return ring_begin(block, window);
    }
    wanted = wanted > 2 * pieces ? pieces : wanted > pieces ? wanted - pieces
             : 1;
    first = last = piece_take(block);
    if (!first) {
        return 0;
    }
    while (--wanted && (piece = piece_take(block)) != 0) {
        crm_link_at(block, last)->next = piece;
        last = piece;
    }
    crm_link_at(block, last)->next = crm_link_at(block, head)->next;
    CRM_COMMIT(crm_link_at(block, head)->next, first);
    return 1;
}

/* Free the pieces after FROM and before TO in their ring. */
static void between_free(crm_limit_t *block, apr_uint32_t from,
                         apr_uint32_t to)
{
    apr_uint32_t first = crm_link_at(block, from)->next;

    if (first != to) {
        apr_uint32_t last = piece_before(block, to);

        CRM_COMMIT(crm_link_at(block, from)->next, to);
        run_free(block, first, last);
    }
}

/* Free the ring of WINDOW. */
static void ring_free(crm_limit_t *block, crm_window_t *window)
{
    apr_uint32_t head = CRM_PLACE_PIECE(window->head);

    if (head) {
        apr_uint32_t first = crm_link_at(block, head)->next;

        CRM_COMMIT(window->head, 0);
        run_free(block, first, head);
    }
}

void crm_ring_trim(crm_limit_t *block, crm_window_t *window, apr_int64_t now)
{
    crm_ring_expire(block, window, now);
    if (crm_ring_count(window)) {
        between_free(block, CRM_PLACE_PIECE(window->head),
                     CRM_PLACE_PIECE(window->tail));
    } else {
        ring_free(block, window);
    }
}

void crm_ring_release(crm_limit_t *block, crm_slot_t *slot)
{
    apr_uint32_t networks = slot->networks;

    for (int class = 0; class < CRM_LIMIT_CLASSES; class++) {
        ring_free(block, &slot->windows[class]);
    }
    slot->networks = 0;
    crm_ring_free(block, networks);
}

void crm_ring_free(crm_limit_t *block, apr_uint32_t piece)
{
    apr_uint32_t last = piece;

    while (last && crm_link_at(block, last)->next) {
        last = crm_link_at(block, last)->next;
    }
    if (piece) {
        run_free(block, piece, last);
    }
}

int crm_ring_networks(apr_uint32_t *piece_p, crm_limit_t *block,
                      const crm_network_t *networks, int count)
{
    apr_uint32_t list = 0;

    for (int i = 0; i < count; i += CRM_PIECE_NETWORKS) {
        apr_uint32_t piece = piece_take(block);
        int some = count - i < CRM_PIECE_NETWORKS ? count - i
                   : CRM_PIECE_NETWORKS;

        if (!piece) {
            crm_ring_free(block, list);
            return 0;
        }
        memset(crm_piece_at(block, piece), 0, sizeof(crm_piece_t));
        memcpy(crm_piece_at(block, piece)->networks, networks + i,
               (size_t)some * sizeof(*networks));
        crm_link_at(block, piece)->next = list;
        list = piece;
    }
    *piece_p = list;
    return 1;
}

/* ---- repair -------------------------------------------------------------- */

/* Mark the pieces from PIECE on, up to 0 or END, and add their number to
 * *COUNT. Return 0 if they are damaged. */
static int chain_mark(apr_uint32_t *count, crm_limit_t *block,
                      apr_uint32_t piece, apr_uint32_t end)
{
    while (piece) {
        crm_link_t *link;

        if (piece > block->allocator.fresh_piece) {
            return 0;
        }
        link = crm_link_at(block, piece);
        if (link->mark) {
            return 0;
        }
        link->mark = 1;
        ++*count;
        piece = link->next == end ? 0 : link->next;
    }
    return 1;
}

int crm_ring_mark(apr_uint32_t *count, crm_limit_t *block,
                  const crm_slot_t *slot)
{
    for (int class = 0; class < CRM_LIMIT_CLASSES; class++) {
        apr_uint32_t head = CRM_PLACE_PIECE(
            CRM_PEEK(slot->windows[class].head));

        if (!chain_mark(count, block, head, head)) {
            return 0;
        }
    }
    return chain_mark(count, block, slot->networks, 0);
}

void crm_ring_unmark(crm_limit_t *block)
{
    for (apr_uint32_t i = block->allocator.fresh_piece; i; i--) {
        crm_link_at(block, i)->mark = 0;
    }
}

void crm_ring_rebuild(crm_limit_t *block)
{
    apr_uint32_t list = 0;

    for (apr_uint32_t i = block->allocator.fresh_piece; i; i--) {
        crm_link_t *link = crm_link_at(block, i);

        if (!link->mark) {
            link->next = list;
            list = i;
        }
    }
    CRM_COMMIT(block->allocator.free_piece, list);
}
