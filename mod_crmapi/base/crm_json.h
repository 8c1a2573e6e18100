/* SPDX-License-Identifier: Apache-2.0 */
/* crm_json.h: JSON in and out of json-c, and its values */
#ifndef CRM_JSON_H
#define CRM_JSON_H

#include <json-c/json.h>

#include "apr_pools.h"

#include "crm_error.h"

/* Check TEXT as crm_json_check() does and set *VALUE_P to the parsed value, which is
 * released with RESULT_POOL. */
const char *crm_json_parse(json_object **value_p, apr_size_t *offset_p,
                           const char *text, apr_size_t len,
                           apr_pool_t *result_pool);

/* Set *VALUE_P to the value of the LEN bytes at TEXT, which crm_json_check() has
 * accepted, or a part of such a text. It is released with RESULT_POOL. Return NULL,
 * or what json-c cannot do. */
const char *crm_json_tree(json_object **value_p, const char *text,
                          apr_size_t len, apr_pool_t *result_pool);

/* Parse the LEN bytes at BODY, that of a request, into *VALUE_P.
 * Errors: CRM_E_BAD_REQUEST, which names the rule and the byte. */
crm_error_t *crm_json_body(json_object **value_p, const char *body,
                           apr_size_t len, apr_pool_t *result_pool);

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
