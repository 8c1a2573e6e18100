/* SPDX-License-Identifier: Apache-2.0 */
/* crm_shape.c: how rows are selected and written as JSON */
#include "crm_shape.h"

#include <string.h>

#include "apr_strings.h"
#include "apr_tables.h"

#include "crm_db.h"
#include "crm_sql.h"

/* Of crm_shape_t; set once in each process before threads start, read-only
 * afterwards. */
static apr_array_header_t *shapes;

/* Return the bit of FIELD of RESOURCE in crm_shape_t.requested; 0: it has
 * none. */
static unsigned bit_of(const crm_resource_t *resource,
                       const crm_field_t *field)
{
    unsigned bit = 1;

    if (!(field->flags & CRM_F_ON_REQUEST)) {
        return 0;
    }
    for (const crm_field_t *one = resource->fields; one != field; one++) {
        bit <<= one->flags & CRM_F_ON_REQUEST ? 1 : 0;
    }
    return bit;
}

/* Return whether SHAPE shows FIELD. */
static int is_shown(const crm_shape_t *shape, const crm_field_t *field)
{
    return !(field->flags & CRM_F_HIDDEN)
           || shape->requested & bit_of(shape->resource, field);
}

/* Return COLUMNS and the column of FIELD, with SQL (NULL: none) for one that is
 * computed. */
static const char *and_column(const char *columns, const crm_field_t *field,
                              const char *sql, apr_pool_t *pool)
{
    const char *comma = *columns ? ", " : "";

    return sql ? apr_pstrcat(pool, columns, comma, "(", sql, ")", NULL)
           : apr_pstrcat(pool, columns, comma, "t.", field->name, NULL);
}

/* Add FIELD to SHAPE's one_columns. */
static void add_to_one(crm_shape_t *shape, const crm_field_t *field,
                       apr_pool_t *pool)
{
    const char *call = field->function
        ? apr_pstrcat(pool, "crmapi.", field->function,
                      "(" CRM_SQL_WORKSPACE ", t.id)", NULL) : NULL;

    if (field->sql && !call) {
        shape->one_columns = NULL;
    }
    if (shape->one_columns) {
        shape->one_columns = and_column(shape->one_columns, field, call, pool);
    }
}

/* Set SHAPE's row_columns and updated_at, for entity tags. */
static void set_updated_at(crm_shape_t *shape, apr_pool_t *pool)
{
    const crm_field_t *field = crm_resource_field(shape->resource,
                                                  "updated_at");

    shape->row_columns = shape->columns;
    shape->updated_at = -1;
    if (!field) {
        return;
    }
    for (int i = 0; i < shape->count; i++) {
        if (shape->fields[i] == field) {
            shape->updated_at = i;
            return;
        }
    }
    shape->updated_at = shape->count;
    shape->row_columns = and_column(shape->columns, field, NULL, pool);
    shape->new_columns = and_column(shape->new_columns, field, NULL, pool);
    add_to_one(shape, field, pool);
}

/* Add the shape of RESOURCE to shapes. REQUESTED: crm_shape_t.requested. */
static void add_shape(const crm_resource_t *resource, unsigned requested,
                      apr_pool_t *pool)
{
    crm_shape_t *shape = apr_array_push(shapes);
    size_t count = (size_t)crm_resource_fields(resource);

    memset(shape, 0, sizeof(*shape));
    shape->columns = shape->new_columns = shape->one_columns = "";
    shape->resource = resource;
    shape->requested = requested;
    shape->fields = apr_palloc(pool, count * sizeof(*shape->fields));
    shape->indexes = apr_palloc(pool, count * sizeof(*shape->indexes));
    shape->keys = apr_palloc(pool, count * sizeof(*shape->keys));
    shape->key_lens = apr_palloc(pool, count * sizeof(*shape->key_lens));
    for (const crm_field_t *field = resource->fields; field->name; field++) {
        int i = shape->count;

        if (!is_shown(shape, field)) {
            continue;
        }
        shape->fields[i] = field;
        shape->indexes[i] = (int)(field - resource->fields);
        shape->keys[i] = apr_pstrcat(pool, i ? ",\"" : "\"", field->name,
                                     "\":", NULL);
        shape->key_lens[i] = strlen(shape->keys[i]);
        shape->columns = and_column(shape->columns, field, field->sql, pool);
        shape->new_columns = and_column(shape->new_columns, field,
                                        field->new_sql ? field->new_sql
                                        : field->sql ? "NULL" : NULL, pool);
        add_to_one(shape, field, pool);
        shape->count++;
    }
    set_updated_at(shape, pool);
}

static const crm_shape_t *find_shape(const crm_resource_t *resource,
                                     unsigned requested)
{
    for (int i = 0; i < shapes->nelts; i++) {
        const crm_shape_t *shape = &APR_ARRAY_IDX(shapes, i, crm_shape_t);

        if (shape->resource == resource && shape->requested == requested) {
            return shape;
        }
    }
    return NULL;
}

const crm_shape_t *crm_shape_of(const crm_resource_t *resource)
{
    return find_shape(resource, 0);
}

/* Return the CRM_F_ON_REQUEST fields of RESOURCE that are in NAMES, separated by
 * commas, as bits; NULL: all. */
static unsigned bits_of(const crm_resource_t *resource, const char *names)
{
    unsigned bits = 0;

    for (const crm_field_t *field = resource->fields; field->name; field++) {
        unsigned bit = bit_of(resource, field);
        size_t len = strlen(field->name);

        for (const char *at = names; bit && at; at = strchr(at, ',')) {
            at += *at == ',';
            if (!strncmp(at, field->name, len) && strchr(",", at[len])) {
                bits |= bit;
            }
        }
        bits |= names ? 0 : bit;
    }
    return bits;
}

const crm_shape_t *crm_shape_with(const crm_resource_t *resource,
                                  const char *names)
{
    return find_shape(resource, names ? bits_of(resource, names) : 0);
}

crm_error_t *crm_shape_init(const crm_resource_t *const *resources,
                            apr_pool_t *pool)
{
    CRM_ERR(crm_registry_init(resources, pool));
    shapes = apr_array_make(pool, 40, sizeof(crm_shape_t));
    for (int i = 0; resources[i]; i++) {
        unsigned all = bits_of(resources[i], NULL);

        for (unsigned bits = 0; bits <= all; bits++) {
            add_shape(resources[i], bits, pool);
        }
    }
    return NULL;
}

void crm_shape_write(crm_buf_t *buf, const crm_shape_t *shape,
                     const PGresult *result, int row, int first_column)
{
    crm_buf_putc(buf, '{');
    for (int i = 0; i < shape->count; i++) {
        int column = first_column + i;

        crm_buf_add(buf, shape->keys[i], shape->key_lens[i]);
        crm_type_write(buf, shape->fields[i],
                       crm_db_value(result, row, column),
                       (apr_size_t)PQgetlength(result, row, column));
    }
    crm_buf_putc(buf, '}');
}
