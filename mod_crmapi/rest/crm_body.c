/* SPDX-License-Identifier: Apache-2.0 */
/* crm_body.c: reading a JSON body against a resource's table (contract 6) */
#include "crm_body.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_rest.h"

/* Return whether a body read in MODE stores FIELD. */
static int takes(const crm_field_t *field, crm_body_mode_t mode)
{
    return (field->flags & (mode == CRM_BODY_UPDATE
                            ? CRM_F_UPDATE | CRM_F_FIXED
                            : CRM_F_CREATE)) != 0;
}

/* Read VALUE into VALUES at INDEX, the index of FIELD. A PATCH stores nothing of a
 * field that breaks a rule, and no second error follows. */
static void read_field(crm_values_t *values, crm_input_t *input,
                       const crm_field_t *field, int index,
                       crm_body_mode_t mode, const char *path,
                       json_object *value)
{
    int errors = crm_input_errors(input);

    if (mode == CRM_BODY_UPDATE && (field->flags & CRM_F_REFUSED)) {
        crm_input_error(input, path, "cannot be changed");
        return;
    }
    if (!takes(field, mode) || (mode == CRM_BODY_CREATE && !value)) {
        return;
    }
    values->sent[index] = 1;
    crm_type_parse(&values->binds[index], input, field, path, value);
    if (mode == CRM_BODY_UPDATE && crm_input_errors(input) > errors) {
        values->sent[index] = 0;
    }
}

/* Return the index of the field NAME of RESOURCE, -1 if it has none. */
static int field_index(const crm_resource_t *resource, const char *name)
{
    for (int i = 0; resource->fields[i].name; i++) {
        const crm_field_t *field = &resource->fields[i];

        if (!strcmp(field->name, name) && crm_field_is_public(field)) {
            return i;
        }
    }
    return -1;
}

/* Set the bind of each field that was not sent to its initial value. Add an
 * error to INPUT for each required field that was not sent. */
static void complete(crm_values_t *values, crm_input_t *input,
                     const crm_resource_t *resource, const char *prefix)
{
    for (int i = 0; resource->fields[i].name; i++) {
        const crm_field_t *field = &resource->fields[i];

        if (values->sent[i] || !(field->flags & CRM_F_CREATE)) {
            continue;
        }
        if (field->flags & CRM_F_REQUIRED) {
            crm_input_error(input, apr_pstrcat(input->pool, prefix,
                                               field->name, NULL),
                            "is required");
        }
        values->binds[i] = field->initial ? field->initial
                           : field->flags & CRM_F_NULLABLE ? NULL
                           : field->type->empty;
    }
}

void crm_body_read(crm_values_t *values, crm_input_t *input,
                   const crm_resource_t *resource, json_object *body,
                   crm_body_mode_t mode, const char *prefix)
{
    size_t count = (size_t)crm_resource_fields(resource);

    values->binds = apr_pcalloc(input->pool, count * sizeof(char *));
    values->sent = apr_pcalloc(input->pool, count);
    json_object_object_foreach(body, name, value) {
        const char *path = *prefix ? apr_pstrcat(input->pool, prefix, name,
                                                 NULL) : name;
        int index = field_index(resource, name);

        if (index >= 0) {
            read_field(values, input, &resource->fields[index], index, mode,
                       path, value);
        }
        else {
            crm_input_unknown(input, path, name, resource->fields, NULL);
        }
    }
    if (mode == CRM_BODY_CREATE) {
        complete(values, input, resource, prefix);
    }
    if (resource->check && mode != CRM_BODY_UPDATE) {
        resource->check(input, resource, values->binds, values->sent);
    }
}

const char *crm_body_unique_rule(const crm_resource_t *resource,
                                 apr_pool_t *pool)
{
    return apr_psprintf(pool, "is that of another %s", resource->name);
}

/* Add to CHECKS that no row of RESOURCE but ID has BIND in FIELD. */
static void check_unique(apr_array_header_t *checks,
                         const crm_resource_t *resource,
                         const crm_field_t *field, const char *bind,
                         const char *id, apr_pool_t *pool)
{
    crm_check_t *check = apr_array_push(checks);

    memset(check, 0, sizeof(*check));
    check->sql = apr_pstrcat(pool, "NOT EXISTS (SELECT FROM crmapi.",
                             resource->name, " r WHERE "
                             CRM_SQL_OWN("r") " AND r.", field->name, " = ?",
                             NULL);
    check->bind = bind;
    check->cast = field->type->cast;
    check->more_sql = id ? " AND r.id <> ?)" : ")";
    check->more_bind = id;
    check->more_cast = "uuid";
    check->field = field->name;
    check->message = crm_body_unique_rule(resource, pool);
}

void crm_body_checks(apr_array_header_t *checks, const crm_values_t *values,
                     const crm_resource_t *resource, crm_body_mode_t mode,
                     const char *id, apr_pool_t *pool)
{
    unsigned stored = mode == CRM_BODY_UPDATE ? CRM_F_UPDATE : CRM_F_CREATE;

    for (int i = 0; resource->fields[i].name; i++) {
        const crm_field_t *field = &resource->fields[i];

        if (field->ref && values->sent[i] && values->binds[i]
            && (field->flags & stored)) {
            crm_check_ref(checks, field->ref, values->binds[i], field->name);
        }
        if (field->flags & CRM_F_UNIQUE && values->sent[i]
            && values->binds[i]) {
            check_unique(checks, resource, field, values->binds[i], id, pool);
        }
    }
}
