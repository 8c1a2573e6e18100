/* SPDX-License-Identifier: Apache-2.0 */
/* crm_json_store.h: checking that free-form JSON can be stored (6.1, 6.3) */
#ifndef CRM_JSON_STORE_H
#define CRM_JSON_STORE_H

#include <json-c/json.h>

#include "apr_pools.h"
#include "apr_tables.h"

/* Why a value cannot be stored. */
typedef struct crm_json_fault_t {
    const char *path;           /* of what is wrong: ".a.b[2]", or "" for the
                                   whole value */
    const char *rule;           /* that is broken */
} crm_json_fault_t;

/* Set *TEXT_P to VALUE as compact JSON, in RESULT_POOL, if PostgreSQL can store
 * it as jsonb: no U+0000, no integer that json-c cannot hold, no number that a
 * double cannot hold, at most MAX_DEPTH levels and MAX_BYTES. Numbers are
 * measured as jsonb writes them, without an exponent. Return NULL, or the faults
 * (crm_json_fault_t): all of them, unless there are very many. */
apr_array_header_t *crm_json_storable(const char **text_p, json_object *value,
                                      apr_size_t max_bytes, int max_depth,
                                      apr_pool_t *result_pool);

#endif /* CRM_JSON_STORE_H */
