/* SPDX-License-Identifier: Apache-2.0 */
/* crm_webform_check.h: whether a form's configuration is right (contract 14.2) */
#ifndef CRM_WEBFORM_CHECK_H
#define CRM_WEBFORM_CHECK_H

#include <json-c/json.h>

#include "apr_pools.h"

/* The three objects of a form's configuration. */
typedef enum crm_webform_part_t {
    CRM_WEBFORM_STANDARD,       /* fields of the contact, and _form */
    CRM_WEBFORM_CUSTOM,
    CRM_WEBFORM_SURVEY
} crm_webform_part_t;

/* Check CONFIG, the object PART of a form (docs/forms.md). Members that forms do
 * not have are taken, but not if they are nearly the name of one that forms have:
 * "requierd". Return NULL, or the rule that is broken at *WHERE_P, a JSON pointer
 * into CONFIG, in POOL. */
const char *crm_webform_config_rule(const char **where_p,
                                    json_object *config,
                                    crm_webform_part_t part, apr_pool_t *pool);

#endif /* CRM_WEBFORM_CHECK_H */
