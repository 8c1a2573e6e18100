/* SPDX-License-Identifier: Apache-2.0 */
/* crm_openapi_schema.h: the schemas of resources and their bodies */
#ifndef CRM_OPENAPI_SCHEMA_H
#define CRM_OPENAPI_SCHEMA_H

#include "crm_resource.h"

/* Add to BUF, the members of an object, the schemas of RESOURCE as responses show
 * it, and of the bodies that its operations take. */
void crm_openapi_schemas(crm_buf_t *buf, const crm_resource_t *resource);

#endif /* CRM_OPENAPI_SCHEMA_H */
