/* SPDX-License-Identifier: Apache-2.0 */
/* intake_form_rules.h: the rules for one answer */
#ifndef CRM_INTAKE_FORM_RULES_H
#define CRM_INTAKE_FORM_RULES_H

#include "crm_webform.h"

/* Return the rule of FIELD that VALUE breaks, or NULL. VALUE is trimmed and not
 * empty. Set *CANONICAL_P to the value to store: numbers in JSON's syntax,
 * "true" or "false", LF as line ends. Strings are in POOL. */
const char *crm_webform_rule(const char **canonical_p,
                             const crm_webform_field_t *field,
                             const char *value, apr_pool_t *pool);

/* Return the option of FIELD whose value is VALUE, NULL if there is none. */
const crm_webform_option_t *crm_webform_option(
    const crm_webform_field_t *field, const char *value);

#endif /* CRM_INTAKE_FORM_RULES_H */
