/* SPDX-License-Identifier: Apache-2.0 */
/* crm_type.c: reading, writing and comparing values of any type */
#include "crm_type.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_json_equal.h"
#include "crm_near.h"

#define GUESSES 10              /* errors up to which a near name is looked for */

void crm_input_error(crm_input_t *input, const char *path,
                     const char *message)
{
    crm_error_detail(&input->error, path, message, input->pool);
}

int crm_field_is_public(const crm_field_t *field)
{
    return !(field->flags & CRM_F_HIDDEN) || field->flags & CRM_F_ON_REQUEST;
}

/* Return the one of NAMES or FIELDS (each may be NULL) for which IS_NEAR says that NAME
 * is near, NULL if there is none. */
static const char *near_name(const char *name, const crm_field_t *fields,
                             const char *const *names, crm_near_fn *is_near)
{
    const char *near = crm_near_of(names, name, is_near);

    while (!near && fields && fields->name) {
        near = crm_field_is_public(fields)
               && is_near(fields->name, name) ? fields->name : NULL;
        fields++;
    }
    return near;
}

const char *crm_field_near(const char *name, const crm_field_t *fields,
                           const char *const *names)
{
    const char *near = NULL;

    for (int i = 0; !near && crm_near_ways[i]; i++) {
        near = near_name(name, fields, names, crm_near_ways[i]);
    }
    return near;
}

void crm_input_unknown(crm_input_t *input, const char *path, const char *name,
                       const crm_field_t *fields, const char *const *names)
{
    if (!input->lenient) {
        crm_input_error(input, path, crm_near_ask(
                            "is not a known field",
                            crm_input_errors(input) < GUESSES
                            ? crm_field_near(name, fields, names) : NULL,
                            input->pool));
    }
}

int crm_input_errors(const crm_input_t *input)
{
    return input->error && input->error->details
           ? input->error->details->nelts : 0;
}

const char *crm_ref_rule(const char *ref, apr_pool_t *pool)
{
    char *rule = apr_psprintf(pool, "is not the id of an existing %s of this "
                              "workspace", ref);

    for (char *c = rule; *c; c++) {
        *c = *c == '_' ? ' ' : *c;      /* sequence_template */
    }
    return rule;
}

void crm_type_parse(const char **bind_p, crm_input_t *input,
                    const crm_field_t *field, const char *path,
                    json_object *value)
{
    *bind_p = NULL;
    if (value) {
        field->type->parse(bind_p, input, field, path, value);
    }
    else if (field->flags & (CRM_F_REQUIRED | CRM_F_NO_CLEAR)) {
        crm_input_error(input, path, "must not be null");
    }
    else if (!(field->flags & CRM_F_NULLABLE)) {
        *bind_p = field->type->empty;
        if (!*bind_p) {
            crm_input_error(input, path, "must not be null");
        }
    }
}

void crm_type_write(crm_buf_t *buf, const crm_field_t *field,
                    const char *text, apr_size_t len)
{
    if (text) {
        field->type->write(buf, text, len);
    }
    else {
        crm_buf_add(buf, "null", 4);
    }
}

const char *crm_type_json(const crm_field_t *field, const char *text,
                          apr_pool_t *result_pool)
{
    crm_buf_t buf;

    crm_buf_init(&buf, strlen(text) + 16, result_pool);
    field->type->write(&buf, text, strlen(text));
    crm_buf_putc(&buf, '\0');
    return buf.data;
}

int crm_type_equal(const crm_field_t *field, const char *a, const char *b,
                   apr_pool_t *scratch_pool)
{
    if (!a || !b || !strcmp(a, b)) {
        return a == b || (a && b);
    }
    return crm_json_equal(crm_type_json(field, a, scratch_pool),
                          crm_type_json(field, b, scratch_pool), scratch_pool);
}

void crm_field_schema(crm_buf_t *buf, const crm_field_t *field,
                      crm_side_t side)
{
    if (field->type->fixed_schema) {
        crm_buf_puts(buf, field->type->fixed_schema);
    }
    else {
        field->type->schema(buf, field, side);
    }
}

int crm_type_schema(crm_buf_t *buf, const char *type,
                    const crm_field_t *field, crm_side_t side)
{
    int null = side == CRM_SIDE_OUTPUT ? field->flags & CRM_F_NULLABLE
               : side == CRM_SIDE_INPUT
               ? !(field->flags & (CRM_F_REQUIRED | CRM_F_NO_CLEAR)) : 0;

    crm_buf_printf(buf, null ? "\"type\":[\"%s\",\"null\"]"
                   : "\"type\":\"%s\"", type);
    return null;
}
