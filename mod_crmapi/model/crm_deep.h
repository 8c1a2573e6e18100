/* SPDX-License-Identifier: Apache-2.0 */
/* crm_deep.h: what checks of resources need that look into values (contract
 * 14.2) */
#ifndef CRM_DEEP_H
#define CRM_DEEP_H

#include "crm_resource.h"

/* A row that is being checked: the parameters of crm_resource_t.check(). */
typedef struct crm_deep_t {
    crm_input_t *input;
    const crm_resource_t *resource;
    const char *const *binds;
} crm_deep_t;

/* Return the bind of the field NAME, NULL for null. */
const char *crm_deep_text(const crm_deep_t *deep, const char *name);

/* Return the value of the field NAME, an object or an array, in the input's
 * pool; NULL for null. */
json_object *crm_deep_json(const crm_deep_t *deep, const char *name);

/* Add RULE, unless it is NULL, as an error at WHERE, a JSON pointer into the
 * field NAME. */
void crm_deep_error(const crm_deep_t *deep, const char *name,
                    const char *where, const char *rule);

/* Check the items of the field NAME, a text[], by RULE_OF, which returns NULL or
 * the rule that one breaks. */
void crm_deep_strings(const crm_deep_t *deep, const char *name,
                      const char *(*rule_of)(const char *text));

#endif /* CRM_DEEP_H */
