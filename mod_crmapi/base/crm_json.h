/* SPDX-License-Identifier: Apache-2.0 */
/* crm_json.h: JSON as RFC 8259 and contract 6.1 want it, then json-c */
#ifndef CRM_JSON_H
#define CRM_JSON_H

#include <json-c/json.h>

#include "apr_pools.h"

#include "crm_error.h"

/* The deepest nesting of arrays and objects (contract 6.1). */
#define CRM_JSON_DEPTH 32

/* Check that the LEN bytes at TEXT are one JSON text and nothing else, as RFC
 * 8259 has it; also refused: a byte order mark, a member name twice (after
 * unescaping), more than CRM_JSON_DEPTH levels, invalid UTF-8, a surrogate
 * without its other half, U+0000 in a name. json-c accepts most of these.
 * One pass, without recursion. Return NULL or what is wrong; *OFFSET_P = at
 * which byte. */
const char *crm_json_check(apr_size_t *offset_p, const char *text,
                           apr_size_t len, apr_pool_t *scratch_pool);

/* Check TEXT likewise and set *VALUE_P to what it says, json_object_put() with
 * RESULT_POOL. */
const char *crm_json_parse(json_object **value_p, apr_size_t *offset_p,
                           const char *text, apr_size_t len,
                           apr_pool_t *result_pool);

/* The same for a request's body: set *VALUE_P to what the LEN bytes at BODY
 * say. Errors: CRM_E_BAD_REQUEST, with the rule and the byte. */
crm_error_t *crm_json_body(json_object **value_p, const char *body,
                           apr_size_t len, apr_pool_t *result_pool);

/* Return whether TYPE, a Content-Type (NULL: none), may be JSON in UTF-8
 * (contract 5.3). */
int crm_json_is_type(const char *type);

/* Set *TEXT_P to VALUE as compact JSON, in RESULT_POOL, if PostgreSQL's jsonb
 * can hold it and it stays small: no U+0000, no number that json-c or a double
 * cannot hold, at most MAX_DEPTH levels and MAX_BYTES, where a number counts
 * as many bytes as it has without an exponent (that is how jsonb writes it).
 * Otherwise return the rule that it breaks; *PATH_P = where, for example
 * ".a.b[2]", "" for the whole. */
const char *crm_json_storable(const char **text_p, const char **path_p,
                              json_object *value, apr_size_t max_bytes,
                              int max_depth, apr_pool_t *result_pool);

#endif /* CRM_JSON_H */
