/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_shown.c: telling the database which fields events have */
#include "crmapictl_shown.h"

#include "crm_buf.h"
#include "crm_resources.h"

/* Return whether TYPE is the first in crm_event_types with its resource, of
 * those that show more than an id. */
static int is_first(const crm_event_type_t *type)
{
    const crm_event_type_t *one = crm_event_types;

    while (one->deleted || one->resource != type->resource) {
        one++;
    }
    return one == type;
}

/* Write the fields of RESOURCE to BUF: {"id": "", ...}. Of those that are
 * computed from other rows the value is their type, else it is empty. */
static void write_fields(crm_buf_t *buf, const crm_resource_t *resource)
{
    const crm_field_t *field = resource->fields;

    crm_buf_printf(buf, "\"%s\":{", resource->name);
    for (; field->name; field++) {
        if (field->flags & CRM_F_DERIVED && field->flags & CRM_F_HIDDEN) {
            continue;           /* shown to who asks for it only */
        }
        crm_buf_printf(buf, "%s\"%s\":\"%s\"",
                       field == resource->fields ? "" : ",", field->name,
                       field->flags & CRM_F_DERIVED ? field->type->cast : "");
    }
    crm_buf_putc(buf, '}');
}

crm_error_t *ctl_shown_tell(ctl_t *ctl)
{
    PGresult *result;
    crm_buf_t buf;
    const char *shown;

    crm_buf_init(&buf, 4096, ctl->pool);
    for (const crm_event_type_t *type = crm_event_types; type->type; type++) {
        if (is_first(type)) {
            crm_buf_putc(&buf, buf.len ? ',' : '{');
            write_fields(&buf, type->resource);
        }
    }
    crm_buf_add(&buf, "}", 2);
    shown = buf.data;
    return ctl_query(&result, ctl, "SELECT set_config('crmapi.shown', $1,"
                     " false)", 1, &shown);
}
