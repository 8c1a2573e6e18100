/* SPDX-License-Identifier: Apache-2.0 */
/* crm_json_store.h: checking that free-form JSON can be stored (6.1, 6.3) */
#ifndef CRM_JSON_STORE_H
#define CRM_JSON_STORE_H

#include <json-c/json.h>

#include "apr_pools.h"

/* Set *TEXT_P to VALUE as compact JSON, in RESULT_POOL, if PostgreSQL can store
 * it as jsonb: no U+0000, no integer that json-c cannot hold, no number that a
 * double cannot hold, at most MAX_DEPTH levels and MAX_BYTES. Numbers are
 * measured as jsonb writes them, without an exponent. Return NULL, or the rule
 * that is broken and its place in *PATH_P: ".a.b[2]", or "" for the whole
 * value. */
const char *crm_json_storable(const char **text_p, const char **path_p,
                              json_object *value, apr_size_t max_bytes,
                              int max_depth, apr_pool_t *result_pool);

#endif /* CRM_JSON_STORE_H */
