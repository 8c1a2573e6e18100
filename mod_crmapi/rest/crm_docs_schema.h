/* SPDX-License-Identifier: Apache-2.0 */
/* crm_docs_schema.h: schemas of the OpenAPI document as HTML */
#ifndef CRM_DOCS_SCHEMA_H
#define CRM_DOCS_SCHEMA_H

#include <json-c/json.h>

#include "crm_buf.h"

/* Return the member NAME of OBJECT (NULL: of nothing), or NULL. */
json_object *crm_docs_at(json_object *object, const char *name);

/* The same if it is a string. */
const char *crm_docs_text(json_object *object, const char *name);

/* Return the last part of the reference that OBJECT is, NULL if it is none. */
const char *crm_docs_ref(json_object *object);

/* Add the type of SCHEMA to BUF: "string or null", or a link to a schema. */
void crm_docs_type(crm_buf_t *buf, json_object *schema);

/* Add a line of a list of fields to BUF: NAME with SCHEMA, and what it means:
 * DESCRIPTION (may be NULL) and the limits of SCHEMA. */
void crm_docs_field(crm_buf_t *buf, const char *name, json_object *schema,
                    const char *description, int required);

/* Add the fields of the object SCHEMA to BUF, as a list. */
void crm_docs_fields(crm_buf_t *buf, json_object *schema);

#endif /* CRM_DOCS_SCHEMA_H */
