/* SPDX-License-Identifier: Apache-2.0 */
/* crm_openapi_schema.c: the schemas of resources and their bodies */
#include "crm_openapi_schema.h"

#include "apr_strings.h"

/* Add the schema of FIELD on SIDE and its description. */
static void add_field_schema(crm_buf_t *buf, const crm_field_t *field,
                             crm_side_t side)
{
    crm_buf_putc(buf, '{');
    crm_field_schema(buf, field, side);
    if (field->doc) {
        crm_buf_json(buf, ",'description':");
        crm_buf_json_text(buf, field->doc);
    }
    crm_buf_putc(buf, '}');
}

/* A flag that no field has. */
#define NONE_REQUIRED 0x80000000U

/* Add the members 'required' and 'properties' for those fields of RESOURCE that
 * have one of FLAGS (0: all fields of responses). Fields that have one of
 * REQUIRED are required (0: all if FLAGS is 0, otherwise none). The caller closes
 * 'properties'. */
static void add_properties(crm_buf_t *buf, const crm_resource_t *resource,
                           unsigned flags, unsigned required,
                           crm_side_t side)
{
    const crm_field_t *field;
    const char *separator = ",'required':[";
    int count = 0;

    for (field = resource->fields; field->name; field++) {
        if ((required ? field->flags & required : !flags)
            && !(field->flags & CRM_F_HIDDEN)) {
            crm_buf_json(buf, count++ ? "," : separator);
            crm_buf_json_text(buf, field->name);
        }
    }
    crm_buf_json(buf, count ? "],'properties':{" : ",'properties':{");
    count = 0;
    for (field = resource->fields; field->name; field++) {
        if ((!flags || (field->flags & flags))
            && crm_field_is_public(field)) {
            crm_field_t shown = *field;

            if (flags & CRM_F_CREATE && !(field->flags & required)
                && (required != NONE_REQUIRED || field->ref
                    || !(field->flags & CRM_F_REQUIRED))) {
                /* null counts as absent (contract 6.5). In an item of an upsert
                 * it clears, so that not all may be null. */
                shown.flags &= ~(CRM_F_NO_CLEAR | CRM_F_REQUIRED);
            }
            crm_buf_json(buf, count++ ? "," : "");
            crm_buf_json_text(buf, field->name);
            crm_buf_json(buf, ":");
            add_field_schema(buf, &shown, side);
        }
    }
}

/* Add the fields of RESOURCE that a GET shows and a body with fields of FLAGS does
 * not take, so that what was read may be sent back (contract 6.2). */
static void add_shown(crm_buf_t *buf, const crm_resource_t *resource,
                      unsigned flags)
{
    const crm_field_t *field;

    for (field = resource->fields; field->name; field++) {
        if (!(field->flags & flags) && crm_field_is_public(field)) {
            crm_buf_json(buf, ",");
            crm_buf_json_text(buf, field->name);
            crm_buf_json(buf, ":{'$ref':'#/components/schemas/Shown'}");
        }
    }
}

/* Add the schema NAME of a body that may have RESOURCE's fields with FLAGS and
 * must have those with REQUIRED. MORE: further members of the schema, or
 * NULL. */
static void add_body_schema(crm_buf_t *buf, const char *name,
                            const crm_resource_t *resource, unsigned flags,
                            unsigned required, const char *more)
{
    crm_buf_json(buf, ",");
    crm_buf_json_text(buf, name);
    crm_buf_json(buf, ":{'type':'object','additionalProperties':false");
    crm_buf_json(buf, more ? "," : "");
    crm_buf_json(buf, more ? more : "");
    add_properties(buf, resource, flags, required, CRM_SIDE_INPUT);
    add_shown(buf, resource, flags);
    crm_buf_json(buf, "}}");
}

void crm_openapi_schemas(crm_buf_t *buf, const crm_resource_t *resource)
{
    const crm_operation_t *operation = resource->operations;

    crm_buf_printf(buf, "\"%s\":", resource->title);
    crm_buf_json(buf, "{'type':'object','description':");
    crm_buf_json_text(buf, resource->doc);
    if (resource->schema) {
        crm_buf_json(buf, ",");
        resource->schema(buf);
    }
    else {
        add_properties(buf, resource, 0, 0, CRM_SIDE_OUTPUT);
        crm_buf_json(buf, "}");
    }
    crm_buf_json(buf, "}");
    for (; operation->id; operation++) {
        char name[64];

        apr_snprintf(name, sizeof(name), "%s%s", resource->title,
                     operation->kind == CRM_OP_CREATE ? "Create" : "Update");
        if (operation->kind == CRM_OP_CREATE) {
            add_body_schema(buf, name, resource, CRM_F_CREATE, CRM_F_REQUIRED,
                            resource->check_schema);
        }
        else if (operation->kind == CRM_OP_UPDATE) {
            add_body_schema(buf, name, resource, CRM_F_UPDATE, NONE_REQUIRED,
                            NULL);
        }
        if (operation->item_schema) {
            add_body_schema(buf, operation->item_schema, resource,
                            CRM_F_CREATE, NONE_REQUIRED, NULL);
        }
    }
}
