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
 * recursion. Return NULL, or the rule that TEXT breaks; *OFFSET_P is then the
 * offset of the byte that breaks it. */
const char *crm_json_check(apr_size_t *offset_p, const char *text,
                           apr_size_t len, apr_pool_t *scratch_pool);

/* Check TEXT in the same way and set *VALUE_P to the parsed value, which is
 * released with RESULT_POOL. */
const char *crm_json_parse(json_object **value_p, apr_size_t *offset_p,
                           const char *text, apr_size_t len,
                           apr_pool_t *result_pool);

/* Set *VALUE_P to the value of the LEN bytes at TEXT, which crm_json_check() has
 * accepted, or a part of such a text. It is released with RESULT_POOL. Return NULL,
 * or what json-c cannot do. */
const char *crm_json_tree(json_object **value_p, const char *text,
                          apr_size_t len, apr_pool_t *result_pool);

/* Return what a client is told whose request body breaks RULE at byte OFFSET, both
 * from crm_json_check(). RESULT_POOL has the text. */
const char *crm_json_problem(const char *rule, apr_size_t offset,
                             apr_pool_t *result_pool);

/* The same for a request body: parse the LEN bytes at BODY into *VALUE_P.
 * Errors: CRM_E_BAD_REQUEST, which names the rule and the byte. */
crm_error_t *crm_json_body(json_object **value_p, const char *body,
                           apr_size_t len, apr_pool_t *result_pool);

/* Return whether the Content-Type TYPE (NULL: none) is acceptable for JSON:
 * application/json in UTF-8 (contract 5.3). */
int crm_json_is_type(const char *type);

/* The same for a JSON Merge Patch: application/merge-patch+json (RFC 7396). NULL
 * is none. */
int crm_json_is_patch(const char *type);

/* Return the object at TEXT, a value of the database, which the caller releases. It is
 * empty if TEXT is no object, or deeper than the API takes: a forged dump may have
 * one. */
json_object *crm_json_object(const char *text);

/* Apply PATCH, an object, to the object TARGET (RFC 7396, 2). */
void crm_json_merge(json_object *target, json_object *patch);

/* Return the text of VALUE, which has it, or NULL if VALUE (may be NULL) is no string.
 * It ends at a U+0000 in VALUE. */
const char *crm_json_text(json_object *value);

/* Return the number of items of VALUE, 0 if VALUE (may be NULL) is no array. */
size_t crm_json_count(json_object *value);

/* Add the member NAME with the string TEXT to OBJECT, unless TEXT is NULL. */
void crm_json_add_text(json_object *object, const char *name,
                       const char *text);

/* Release VALUE, which the caller owns. Return its JSON text, compact, in
 * RESULT_POOL. */
const char *crm_json_end(json_object *value, apr_pool_t *result_pool);

#endif /* CRM_JSON_H */
