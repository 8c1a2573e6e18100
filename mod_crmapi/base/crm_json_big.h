/* SPDX-License-Identifier: Apache-2.0 */
/* crm_json_big.h: integers that json-c would clamp */
#ifndef CRM_JSON_BIG_H
#define CRM_JSON_BIG_H

#include <json-c/json.h>

#include "apr_pools.h"

/* Return the JSON text TEXT of *LEN_P bytes, or if it has integers beyond 64 bits a
 * copy, *LEN_P bytes in RESULT_POOL, in which they have an exponent: json-c keeps the
 * digits of what is no integer. */
const char *crm_json_big_mark(apr_size_t *len_p, const char *text,
                              apr_pool_t *result_pool);

/* Let the numbers of VALUE, parsed from what crm_json_big_mark() has copied, have the
 * digits that were sent, without that exponent. */
void crm_json_big_restore(json_object *value);

#endif /* CRM_JSON_BIG_H */
