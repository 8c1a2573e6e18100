/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_field.c: fields of rows that import and apply write */
#include "crmapictl_field.h"

#include <string.h>

#include "crm_pointer.h"
#include "crm_uuid.h"

void ctl_field_initial(const char **bind_p, const crm_field_t *field,
                       apr_pool_t *pool)
{
    if (!strcmp(field->name, "id")) {
        char *id = apr_palloc(pool, CRM_UUID_LEN + 1);

        crm_uuid_v7(id);
        *bind_p = id;
    }
    else {
        *bind_p = field->initial ? field->initial
                  : field->flags & CRM_F_NULLABLE ? NULL
                  : field->type->empty;
    }
}

void ctl_field_members(crm_input_t *input, const crm_resource_t *resource,
                       json_object *object, const char *more)
{
    json_object_object_foreach(object, name, value) {
        if (strcmp(name, "object") && (!more || strcmp(name, more))
            && !crm_resource_field(resource, name)) {
            crm_input_unknown(input, crm_pointer_member("", name, input->pool),
                              name, resource->fields, NULL);
        }
        (void)value;
    }
}
