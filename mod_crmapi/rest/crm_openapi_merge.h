/* SPDX-License-Identifier: Apache-2.0 */
/* crm_openapi_merge.h: merging the parts of the OpenAPI document */
#ifndef CRM_OPENAPI_MERGE_H
#define CRM_OPENAPI_MERGE_H

#include <json-c/json.h>

#include "crm_error.h"

/* Set *PART_P to the JSON at TEXT, LEN bytes of the OpenAPI document, in POOL. Errors,
 * in POOL: CRM_E_INTERNAL if it is not valid. */
crm_error_t *crm_openapi_parse(json_object **part_p, const char *text,
                               apr_size_t len, apr_pool_t *pool);

/* Add to the object INTO those members of the JSON object at TEXT, LEN bytes,
 * that INTO lacks, recursively for members that are objects. Errors: those of
 * crm_openapi_parse(). */
crm_error_t *crm_openapi_merge(json_object *into, const char *text,
                               apr_size_t len, apr_pool_t *pool);

#endif /* CRM_OPENAPI_MERGE_H */
