/* SPDX-License-Identifier: Apache-2.0 */
/* crm_resource.h: the tables that say what the API consists of */
#ifndef CRM_RESOURCE_H
#define CRM_RESOURCE_H

#include "crm_sql.h"
#include "crm_type.h"

typedef struct crm_resource_t crm_resource_t;
typedef struct crm_operation_t crm_operation_t;
typedef struct crm_filter_t crm_filter_t;
typedef struct crm_call_t crm_call_t;

/* A query parameter of an operation. Its FIELD gives name, type, values,
 * limits; CRM_F_REQUIRED makes it one that must be there (contract 7.8). */
struct crm_filter_t {
    crm_field_t field;
    /* Add to SQL " AND ..." for BIND, this filter's value; CALL for what else
     * the request says. NULL: the parameter filters nothing by itself. */
    void (*add)(crm_sql_t *sql, const crm_filter_t *filter, const char *bind,
                const crm_call_t *call);
    /* The same condition in a form that the index that ADD's is for does not
     * serve. NULL: ADD's is not for one that finds rows by what they hold
     * (GIN), but by the order of a list or less. */
    void (*add_unindexed)(crm_sql_t *sql, const crm_filter_t *filter,
                          const char *bind, const crm_call_t *call);
    /* What ADD uses: a condition with '?' for the bind; for a boolean the
     * conditions for true and false ("" for none); for a search the column,
     * and one more for what only digits make up. */
    const char *sql;
    const char *sql_false;
    const char *digits;
    int absent_is_false;        /* a boolean that is not sent counts as false */
    int counted;                /* the totals' counters know this filter */
};

/* One order of a list: its first keys; "t.id" in the same direction is always
 * the last. */
typedef struct crm_sort_t {
    const char *name;           /* value of the sort parameter, or NULL */
    const char *keys[5];        /* SQL over t; NULL at the end */
    int nulls_last;             /* the first key may be null: always last */
} crm_sort_t;

/* How a kind of operation is planned and answered: list, get, create ... */
typedef struct crm_kind_t {
    const char *name;
    int status;                 /* of success */
    /* Serve CALL, whose request has passed authentication and budget, and
     * fill its response; see crm_op.h. */
    crm_error_t *(*serve)(crm_call_t *call);
    int has_body;               /* a JSON object is read */
} crm_kind_t;

/* An operation: a method on a path. */
struct crm_operation_t {
    const char *id;             /* OpenAPI's operationId */
    const char *method;
    const char *path;           /* below /api/v1, with {parameters} */
    const crm_kind_t *kind;
    const crm_filter_t *filters; /* ends with one without a name; or NULL */
    const crm_sort_t *sorts;    /* first: the default; ends with keys[0] NULL */
    int ascending;              /* the default direction of the list */
    int ordered;                /* takes the parameter "order" */
    int whole;                  /* a list without pagination */
    const char *from;           /* FROM of a list, if not the resource's own */
    const char *counter;        /* kind of crmapi.counter for totals, or NULL */
    const char *parent;         /* the resource that the path's {id} names, if
                                   not this one */
    const char *parent_column;  /* column that holds its id, default
                                   "<parent>_id" */
    int sequences;              /* needs a plan with sequences */
    int location;               /* 201 has a Location */
    int statuses[8];            /* what else it answers, beside what every
                                   operation can; 0 at the end */
    /* For OpenAPI where the usual bodies do not fit: name of the schema. */
    const char *body_schema;
    const char *answer_schema;
    /* Name of a schema of what a create takes, of which nothing is required:
     * an item of the body. */
    const char *item_schema;
    const char *summary;
};

/* A resource: a table of the database and what the API does with it. */
struct crm_resource_t {
    const char *name;           /* "pipeline_card": the table crmapi.<name> */
    const char *title;          /* "PipelineCard": OpenAPI's schema */
    const char *tag;            /* OpenAPI's group: "Pipelines" */
    const char *doc;
    const crm_field_t *fields;  /* end with one without a name */
    const crm_operation_t *operations; /* end with one without an id; or NULL */
    /* SET list and condition of a DELETE that only marks (conversations). */
    const char *soft_delete;
    /* Check what concerns several fields of a body whose binds are BINDS (by
     * index of the field; SENT tells which were there). NULL: nothing. */
    void (*check)(crm_input_t *input, const crm_resource_t *resource,
                  const char *const *binds, const unsigned char *sent);
    const char *check_schema;   /* what CHECK asks of a create's body, as
                                   members of its schema with ' for " */
    int no_import;              /* not a T of crmapictl import */
};

/* Make RESOURCES (NULL at the end, static) the resources of this process.
 * Call once, before there are threads. Errors, in POOL: CRM_E_INTERNAL if
 * their tables are unsound: a reference to nothing, a field twice, an
 * operation without a kind ... */
crm_error_t *crm_registry_init(const crm_resource_t *const *resources,
                               apr_pool_t *pool);

/* Return the resources given to crm_registry_init(). */
const crm_resource_t *const *crm_registry(void);

/* Return the resource called NAME, or NULL. */
const crm_resource_t *crm_resource_find(const char *name);

/* Return the field NAME of RESOURCE, or NULL. */
const crm_field_t *crm_resource_field(const crm_resource_t *resource,
                                      const char *name);

/* Return the number of fields of RESOURCE. */
int crm_resource_fields(const crm_resource_t *resource);

#endif /* CRM_RESOURCE_H */
