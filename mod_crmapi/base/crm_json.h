/* SPDX-License-Identifier: Apache-2.0 */
/* crm_json.h: strict JSON parsing (RFC 8259, contract 6.1) into json-c */
#ifndef CRM_JSON_H
#define CRM_JSON_H

#include <json-c/json.h>

#include "apr_pools.h"

#include "crm_error.h"

/* The maximum nesting depth of arrays and objects (contract 6.1). */
#define CRM_JSON_DEPTH 32

/* Check that the LEN bytes at TEXT are exactly one JSON text (RFC 8259). Also
 * refused: a byte order mark, duplicate member names (compared after
 * unescaping), more than CRM_JSON_DEPTH levels, invalid UTF-8, a lone
 * surrogate, U+0000 in a name. json-c alone accepts most of these. One pass, no
 * recursion. Return NULL, or the rule that is broken and the byte's number in
 * *OFFSET_P. */
const char *crm_json_check(apr_size_t *offset_p, const char *text,
                           apr_size_t len, apr_pool_t *scratch_pool);

/* Check TEXT in the same way and set *VALUE_P to the parsed value, which is
 * released with RESULT_POOL. */
const char *crm_json_parse(json_object **value_p, apr_size_t *offset_p,
                           const char *text, apr_size_t len,
                           apr_pool_t *result_pool);

/* The same for a request body: parse the LEN bytes at BODY into *VALUE_P.
 * Errors: CRM_E_BAD_REQUEST, which names the rule and the byte. */
crm_error_t *crm_json_body(json_object **value_p, const char *body,
                           apr_size_t len, apr_pool_t *result_pool);

/* Return whether the Content-Type TYPE (NULL: none) is acceptable for JSON:
 * application/json in UTF-8 (contract 5.3). */
int crm_json_is_type(const char *type);

/* Set *TEXT_P to VALUE as compact JSON, in RESULT_POOL, if PostgreSQL can store
 * it as jsonb: no U+0000, no integer that json-c cannot hold, no number that a
 * double cannot hold, at most MAX_DEPTH levels and MAX_BYTES. Numbers are
 * measured as jsonb writes them, without an exponent. Return NULL, or the rule
 * that is broken and its place in *PATH_P: ".a.b[2]", or "" for the whole
 * value. */
const char *crm_json_storable(const char **text_p, const char **path_p,
                              json_object *value, apr_size_t max_bytes,
                              int max_depth, apr_pool_t *result_pool);

#endif /* CRM_JSON_H */
