/* SPDX-License-Identifier: Apache-2.0 */
/* crm_json_equal.h: comparing JSON values exactly */
#ifndef CRM_JSON_EQUAL_H
#define CRM_JSON_EQUAL_H

#include "apr_pools.h"

/* Return whether A and B, JSON texts without U+0000, are the same value: the order of
 * members and the notation of numbers do not count, each digit of a number does. */
int crm_json_equal(const char *a, const char *b, apr_pool_t *scratch_pool);

#endif /* CRM_JSON_EQUAL_H */
