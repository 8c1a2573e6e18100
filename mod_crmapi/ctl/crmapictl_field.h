/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_field.h: fields of rows that import and apply write */
#ifndef CRMAPICTL_FIELD_H
#define CRMAPICTL_FIELD_H

#include "crm_resource.h"

/* Set *BIND_P, in POOL, to what FIELD of a new row is by default: a new id, its
 * initial value, null. */
void ctl_field_initial(const char **bind_p, const crm_field_t *field,
                       apr_pool_t *pool);

/* Refuse, in INPUT, members of OBJECT that RESOURCE does not have, except "object"
 * and MORE (may be NULL). */
void ctl_field_members(crm_input_t *input, const crm_resource_t *resource,
                       json_object *object, const char *more);

#endif /* CRMAPICTL_FIELD_H */
