/* SPDX-License-Identifier: Apache-2.0 */
/* crm_json_slice.h: JSON texts in place: members and items as parts of a text,
 * without a tree */
#ifndef CRM_JSON_SLICE_H
#define CRM_JSON_SLICE_H

#include "apr_pools.h"

/* A part of a text, not terminated by NUL. */
typedef struct crm_slice_t {
    const char *text;           /* NULL: there is none */
    apr_size_t len;
} crm_slice_t;

/* Where a walk over an object or array is. */
typedef struct crm_json_walk_t {
    const char *at;
    const char *end;
} crm_json_walk_t;

/* The functions below take texts that crm_json_check() has accepted, or parts of
 * them that these functions have returned. */

/* Return the end of the string whose opening quote is at AT, before END. */
const char *crm_json_string_end(const char *at, const char *end);

/* Return the value that the LEN bytes at TEXT are, without white space around
 * it. */
crm_slice_t crm_json_slice(const char *text, apr_size_t len);

/* Return the first character of VALUE, which tells its type: one of {["tfn-, or
 * a digit. 0: there is no value. */
static inline char crm_slice_type(crm_slice_t value)
{
    return value.text ? *value.text : '\0';
}

/* Return whether there is VALUE, and it is not null. */
static inline int crm_slice_is_given(crm_slice_t value)
{
    return value.text && *value.text != 'n';
}

/* Begin WALK over VALUE. Return 0, and walk over nothing, unless the first
 * character of VALUE is OPEN: '{' or '['. */
int crm_json_walk(crm_json_walk_t *walk, crm_slice_t value, char open);

/* Set *NAME_P to the next member's name with its quotes, and *VALUE_P to its
 * value. Return 0 at the end of the object. */
int crm_json_member(crm_slice_t *name_p, crm_slice_t *value_p,
                    crm_json_walk_t *walk);

/* Set *VALUE_P to the next item. Return 0 at the end of the array. */
int crm_json_item(crm_slice_t *value_p, crm_json_walk_t *walk);

/* Return whether the string VALUE, with its quotes, is TEXT, which needs no
 * escapes. */
int crm_slice_is(crm_slice_t value, const char *text);

/* Return the member NAME of the object VALUE. Its text is NULL if there is none
 * or VALUE is no object. */
crm_slice_t crm_json_find(crm_slice_t value, const char *name);

/* Set FOUND to the members of the object VALUE with NAMES, which NULL ends, in
 * their order. Texts are NULL as crm_json_find() has them. */
void crm_json_find_all(crm_slice_t *found, crm_slice_t value,
                       const char *const *names);

/* Return, in POOL, the text of the string VALUE, with its quotes: unescaped and
 * terminated by NUL. *LEN_P (may be NULL) is its length, since U+0000 may be in
 * it. */
const char *crm_slice_text(crm_slice_t value, apr_size_t *len_p,
                           apr_pool_t *pool);

#endif /* CRM_JSON_SLICE_H */
