/* SPDX-License-Identifier: Apache-2.0 */
/* crm_cursor.h: where the next page of a list begins (contract 13.3) */
#ifndef CRM_CURSOR_H
#define CRM_CURSOR_H

#include "crm_resource.h"

/* The value of the parameter "cursor" that begins a walk. */
#define CRM_CURSOR_START "*"

/* The place after a row of a list. */
typedef struct crm_cursor_t {
    const char *keys[CRM_SORT_KEYS]; /* the row's sort keys, as binds; NULL: a
                                        null */
    const char *id;             /* the row's id */
    int in_order;               /* a filter by content has too many matches to
                                   collect: read the list in its order */
} crm_cursor_t;

/* Return CURSOR as text in POOL: base64url (RFC 4648, 5) of the keys as
 * numbers, the id, and a hash of these and LIST. LIST is a hash of the list's
 * operation, filters and order SORT. The keys are PostgreSQL's output. A cursor
 * is not signed: a forged one can only name another place in the same list.
 * Return NULL if a key or the id has an unknown format. */
const char *crm_cursor_write(const crm_cursor_t *cursor,
                             const crm_sort_t *sort, apr_uint64_t list,
                             apr_pool_t *pool);

/* Return whether TEXT has the form of a cursor, whatever its list is. */
int crm_cursor_has_form(const char *text);

/* Read TEXT into *CURSOR, whose strings are in POOL. Return 0 if it is not a
 * cursor that crm_cursor_write() makes for SORT and LIST. */
int crm_cursor_read(crm_cursor_t *cursor, const char *text,
                    const crm_sort_t *sort, apr_uint64_t list,
                    apr_pool_t *pool);

#endif /* CRM_CURSOR_H */
