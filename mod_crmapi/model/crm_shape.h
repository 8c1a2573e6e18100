/* SPDX-License-Identifier: Apache-2.0 */
/* crm_shape.h: how rows are selected and written as JSON */
#ifndef CRM_SHAPE_H
#define CRM_SHAPE_H

#include <libpq-fe.h>

#include "crm_resource.h"

/* How the rows of a resource are selected and written as JSON. Built once from
 * the resource's table. */
typedef struct crm_shape_t {
    const crm_resource_t *resource;
    unsigned requested;         /* which CRM_F_ON_REQUEST fields it includes: a
                                   bit for each, in their order */
    int count;                  /* number of fields shown */
    const crm_field_t **fields; /* the fields shown */
    int *indexes;               /* index of each in the resource's table */
    const char **keys;          /* each field's ",\"name\":" */
    apr_size_t *key_lens;
    const char *columns;        /* SQL: columns and expressions over t */
    const char *row_columns;    /* the same, then t.updated_at if it is not
                                   among them */
    const char *new_columns;    /* ROW_COLUMNS of a row that was just inserted:
                                   fields that are computed from rows which
                                   refer to it are null, others are
                                   crm_field_t.new_sql */
    const char *one_columns;    /* ROW_COLUMNS of one row in a distributed
                                   database, without sub-selects; NULL: it
                                   lacks a function for a field */
    int updated_at;             /* index of updated_at in ROW_COLUMNS; -1: the
                                   table has no such column */
} crm_shape_t;

/* Make RESOURCES the registry and build their shapes in POOL. Call once, before
 * threads start. Errors: those of crm_registry_init(). */
crm_error_t *crm_shape_init(const crm_resource_t *const *resources,
                            apr_pool_t *pool);

/* Return the shape of RESOURCE without CRM_F_ON_REQUEST fields. */
const crm_shape_t *crm_shape_of(const crm_resource_t *resource);

/* Return the shape of RESOURCE with the CRM_F_ON_REQUEST fields whose names are in
 * NAMES, separated by commas; NULL: none. */
const crm_shape_t *crm_shape_with(const crm_resource_t *resource,
                                  const char *names);

/* Add row ROW of RESULT to BUF as a JSON object. SHAPE's columns begin at
 * FIRST_COLUMN. */
void crm_shape_write(crm_buf_t *buf, const crm_shape_t *shape,
                     const PGresult *result, int row, int first_column);

#endif /* CRM_SHAPE_H */
