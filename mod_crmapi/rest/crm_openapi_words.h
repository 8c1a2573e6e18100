/* SPDX-License-Identifier: Apache-2.0 */
/* crm_openapi_words.h: what fields mean, for the OpenAPI document (20.7) */
#ifndef CRM_OPENAPI_WORDS_H
#define CRM_OPENAPI_WORDS_H

#include <json-c/json.h>

/* Give each property of SCHEMAS, an object of schemas by their names, a
 * description if it has none: the usual one of its name. Those within them,
 * too. */
void crm_openapi_words(json_object *schemas);

/* Return whether TEXT is such a description, which says little beside the
 * name. */
int crm_openapi_is_usual(const char *text);

#endif /* CRM_OPENAPI_WORDS_H */
