/* SPDX-License-Identifier: Apache-2.0 */
/* crm_resource.c: the registry of resources, and a check of their tables */
#include "crm_resource.h"

#include <string.h>

#include "apr_strings.h"

/* Set once in each process before threads start, read-only afterwards. */
static const crm_resource_t *const *registry;

const crm_sort_t crm_list_by_time[] = {
    {.name = "created_at", .keys = {"t.created_at"}},
    {.name = "updated_at", .keys = {"t.updated_at"}, .ascending = 1},
    {.name = NULL}
};

const crm_resource_t *crm_resource_find(const char *name)
{
    for (int i = 0; registry[i]; i++) {
        if (!strcmp(registry[i]->name, name)) {
            return registry[i];
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

/* Return NULL or the error in FIELD of RESOURCE. */
static const char *check_field(const crm_resource_t *resource,
                               const crm_field_t *field)
{
    if (crm_resource_field(resource, field->name) != field) {
        return "duplicate field";
    }
    if (!field->type) {
        return "no type";
    }
    if (field->type == &crm_type_ref
        && (!field->ref || !crm_resource_find(field->ref))) {
        return "reference to an unknown resource";
    }
    if (field->type == &crm_type_enum && !field->values) {
        return "enumeration without values";
    }
    if (!field->sql != !(field->flags & CRM_F_DERIVED)) {
        return "derived without an expression, or the reverse";
    }
    if (field->follow && (!field->follow_sql
                          || !crm_resource_field(resource, field->follow))) {
        return "follows an unknown field";
    }
    return NULL;
}

/* Return whether a field of RESOURCE is computed and never null, although a new row
 * has nothing to compute it of. */
static int has_computed(const crm_resource_t *resource)
{
    for (const crm_field_t *field = resource->fields; field->name; field++) {
        if (field->sql && !field->new_sql
            && !(field->flags & CRM_F_NULLABLE)) {
            return 1;
        }
    }
    return 0;
}

/* Return NULL or the error in OPERATION of RESOURCE. */
static const char *check_operation(const crm_resource_t *resource,
                                   const crm_operation_t *operation)
{
    if (!operation->method || operation->kind == CRM_OP_NONE
        || *operation->path != '/') {
        return "no method, path or kind";
    }
    if (operation->kind == CRM_OP_LIST && !operation->sorts) {
        return "list without a sort order";
    }
    if (operation->kind == CRM_OP_CREATE && has_computed(resource)) {
        return "creates rows with a computed field that is never null";
    }
    if (operation->parent && (!crm_resource_find(operation->parent)
                              || !strchr(operation->path, '{'))) {
        return "unknown parent";
    }
    if (crm_kind_of(operation)->conditional && strcmp(operation->method, "GET")
        && !crm_resource_field(resource, "updated_at")) {
        return "a condition on updated_at, which it lacks";
    }
    return crm_deprecation_rule(&operation->deprecated);
}

/* Return NULL or the first error in RESOURCE's tables, in POOL. */
static const char *check_resource(const crm_resource_t *resource,
                                  apr_pool_t *pool)
{
    const crm_operation_t *operation = resource->operations;
    const char *problem;

    if (crm_resource_find(resource->name) != resource) {
        return apr_pstrcat(pool, resource->name, ": duplicate resource", NULL);
    }
    for (const crm_field_t *field = resource->fields; field->name; field++) {
        problem = check_field(resource, field);
        if (problem) {
            return apr_pstrcat(pool, resource->name, ".", field->name, ": ",
                               problem, NULL);
        }
    }
    for (; operation && operation->id; operation++) {
        problem = check_operation(resource, operation);
        if (problem) {
            return apr_pstrcat(pool, operation->id, ": ", problem, NULL);
        }
    }
    return NULL;
}

const crm_resource_t *const *crm_registry(void)
{
    return registry;
}

crm_error_t *crm_registry_init(const crm_resource_t *const *resources,
                               apr_pool_t *pool)
{
    registry = resources;
    for (int i = 0; registry[i]; i++) {
        const char *problem = check_resource(registry[i], pool);

        if (problem) {
            return crm_error_logf(CRM_E_INTERNAL, pool,
                                  "CRM1002: invalid resource tables: %s",
                                  problem);
        }
    }
    return NULL;
}
