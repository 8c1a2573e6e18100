/* SPDX-License-Identifier: Apache-2.0 */
/* crm_pointer.h: JSON pointers (RFC 6901), which name a place in a value */
#ifndef CRM_POINTER_H
#define CRM_POINTER_H

#include "apr_pools.h"

/* Return NAME, which is untrusted input, if it is safe to log: at most 100
 * bytes, no control characters. Return "..." otherwise. */
const char *crm_name_shown(const char *name);

/* Return the pointer to the member NAME of the object at WHERE, in POOL. NAME is
 * shown as crm_name_shown() does. */
const char *crm_pointer_member(const char *where, const char *name,
                               apr_pool_t *pool);

/* Return the pointer to the item INDEX (from 0) of the array at WHERE, in
 * POOL. */
const char *crm_pointer_item(const char *where, int index, apr_pool_t *pool);

/* Return the pointer to PATH, a field in the notation of the API's errors:
 * "emails[0].email" is "/emails/0/email". A pointer, also that to the whole value
 * (""), stays as it is. In POOL. */
const char *crm_pointer_path(const char *path, apr_pool_t *pool);

/* Return RULE and the place WHERE that breaks it, a pointer into the value NAME,
 * for people: "steps[1].delay: must be ...". In POOL; NULL if RULE is. */
const char *crm_pointer_rule(const char *name, const char *where,
                             const char *rule, apr_pool_t *pool);

#endif /* CRM_POINTER_H */
