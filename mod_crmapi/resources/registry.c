/* SPDX-License-Identifier: Apache-2.0 */
/* registry.c: the list of resources, and a check that their tables are sound */
#include <string.h>

#include "apr_strings.h"

#include "crm_resources.h"

const crm_resource_t *const crm_registry[] = {
    &crm_resource_agent,
    &crm_resource_pipeline,
    &crm_resource_pipeline_stage,
    &crm_resource_company,
    &crm_resource_contact,
    &crm_resource_pipeline_card,
    &crm_resource_activity,
    &crm_resource_conversation,
    &crm_resource_message,
    &crm_resource_form,
    &crm_resource_submission,
    &crm_resource_sequence_template,
    &crm_resource_suppression,
    &crm_resource_enrollment,
    NULL
};

const crm_resource_t *crm_resource_find(const char *name)
{
    for (int i = 0; crm_registry[i]; i++) {
        if (!strcmp(crm_registry[i]->name, name)) {
            return crm_registry[i];
        }
    }
    return NULL;
}

const crm_field_t *crm_resource_field(const crm_resource_t *resource,
                                      const char *name)
{
    for (const crm_field_t *field = resource->fields; field->name; field++) {
        if (!strcmp(field->name, name)) {
            return field;
        }
    }
    return NULL;
}

int crm_resource_fields(const crm_resource_t *resource)
{
    int count = 0;

    while (resource->fields[count].name) {
        count++;
    }
    return count;
}

/* Return NULL or what is wrong with FIELD of RESOURCE. */
static const char *check_field(const crm_resource_t *resource,
                               const crm_field_t *field)
{
    if (crm_resource_field(resource, field->name) != field) {
        return "there twice";
    }
    if (!field->type) {
        return "no type";
    }
    if (field->type == &crm_type_ref
        && (!field->ref || !crm_resource_find(field->ref))) {
        return "a reference to no resource";
    }
    if (field->type == &crm_type_enum && !field->values) {
        return "an enumeration without values";
    }
    if (!field->sql != !(field->flags & CRM_F_DERIVED)) {
        return "derived without an expression, or the reverse";
    }
    if (field->follow && (!field->follow_sql
                          || !crm_resource_field(resource, field->follow))) {
        return "follows nothing";
    }
    return NULL;
}

/* Return NULL or what is wrong with OPERATION. */
static const char *check_operation(const crm_operation_t *operation)
{
    if (!operation->method || !operation->kind || *operation->path != '/') {
        return "no method, path or kind";
    }
    if (!strcmp(operation->kind->name, "list") && !operation->sorts) {
        return "a list without an order";
    }
    if (operation->parent && (!crm_resource_find(operation->parent)
                              || !strchr(operation->path, '{'))) {
        return "no such parent";
    }
    return NULL;
}

/* Return NULL or what is unsound in RESOURCE. */
static const char *check_resource(const crm_resource_t *resource,
                                  apr_pool_t *pool)
{
    const crm_operation_t *operation = resource->operations;
    const char *wrong;

    if (crm_resource_find(resource->name) != resource) {
        return apr_pstrcat(pool, resource->name, " is there twice", NULL);
    }
    for (const crm_field_t *field = resource->fields; field->name; field++) {
        wrong = check_field(resource, field);
        if (wrong) {
            return apr_pstrcat(pool, resource->name, ".", field->name, ": ",
                               wrong, NULL);
        }
    }
    for (; operation && operation->id; operation++) {
        wrong = check_operation(operation);
        if (wrong) {
            return apr_pstrcat(pool, operation->id, ": ", wrong, NULL);
        }
    }
    return NULL;
}

const char *crm_registry_check(apr_pool_t *pool)
{
    for (int i = 0; crm_registry[i]; i++) {
        const char *wrong = check_resource(crm_registry[i], pool);

        if (wrong) {
            return wrong;
        }
    }
    return NULL;
}
