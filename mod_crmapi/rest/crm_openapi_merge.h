/* SPDX-License-Identifier: Apache-2.0 */
/* crm_openapi_merge.h: puts the parts of the OpenAPI document together */
#ifndef CRM_OPENAPI_MERGE_H
#define CRM_OPENAPI_MERGE_H

#include <json-c/json.h>

#include "crm_error.h"

/* Add to INTO, an object, the members that it lacks of the LEN bytes of JSON at
 * TEXT, also an object; recursively for members that are objects. Errors, in
 * POOL: CRM_E_INTERNAL if TEXT is not valid JSON. */
crm_error_t *crm_openapi_merge(json_object *into, const char *text,
                               apr_size_t len, apr_pool_t *pool);

#endif /* CRM_OPENAPI_MERGE_H */
