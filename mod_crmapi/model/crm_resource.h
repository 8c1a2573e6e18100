/* SPDX-License-Identifier: Apache-2.0 */
/* crm_resource.h: tables that describe the API: resources, operations,
 * filters */
#ifndef CRM_RESOURCE_H
#define CRM_RESOURCE_H

#include "crm_deprecation.h"
#include "crm_kind.h"
#include "crm_type.h"

/* The base path of the API. */
#define CRM_API_BASE "/api/v1"

typedef struct crm_resource_t crm_resource_t;
typedef struct crm_operation_t crm_operation_t;
typedef struct crm_filter_t crm_filter_t;

/* What a filter selects rows by. */
typedef enum crm_filter_by_t {
    CRM_BY_NOTHING,             /* it only modifies others */
    CRM_BY_VALUE,               /* SQL has a '?' for the value */
    CRM_BY_BOOLEAN,
    CRM_BY_SEARCH,              /* a text, by a GIN index */
    CRM_BY_SCAN,                /* a text, without an index */
    CRM_BY_TAGS,
    CRM_BY_MEMBER,              /* a member of custom_fields */
    CRM_BY_ADDRESS              /* any of a row's addresses */
} crm_filter_by_t;

/* A query parameter of an operation. FIELD gives its name, type, values and
 * limits. With CRM_F_REQUIRED the parameter is required (contract 7.8). */
struct crm_filter_t {
    crm_field_t field;
    crm_filter_by_t by;
    /* By default: a condition with '?' for the bind. Booleans: the conditions
     * for true and for false ("": none). Searches: the column, and that of the
     * digits of phone numbers with its table, or NULL. Addresses: the key of
     * '?', the column with that of the primary one, and all over e. */
    const char *sql;
    const char *sql_false;
    const char *digits;         /* without an alias */
    const char *digits_table;
    const char *column;         /* without an alias */
    const char *keys;
    const char *order;          /* the key of the order in which an index has the
                                   rows that match SQL; or NULL */
    const char *order_false;    /* the same for SQL_FALSE */
    const char *absent;         /* the bind that says what its absence says, or
                                   NULL: with it the query is the same */
    int only_shows;             /* it says what is shown of rows, not which
                                   rows the list has */
    int counted;                /* crmapi.counter has totals by this filter */
    int by_key;                 /* it names few rows, by a key: they are read first,
                                   and other filters apply to them */
    const char *sql_by_time;    /* SQL over the resource's times c, if it has
                                   them; or NULL */
    const char *members;        /* "custom_fields.": the parameter is any name
                                   that begins so, and may be sent with several
                                   of them. The rest of a name is that of
                                   FIELD->type's parse_query(). NULL: its name
                                   is FIELD's */
};

/* Bytes of a piece of a file, but the last one: see crmapi.piece. */
#define CRM_FILE_PIECE 131072

/* A file that an operation responds with (crm_op_file.h). SQL is over t. */
typedef struct crm_file_t {
    const char *name;           /* SQL: its name, may be null */
    const char *type;           /* SQL: its media type, may be null */
    const char *size;           /* SQL: its bytes; null: there is none */
    const char *pieces;         /* table with its bytes: workspace_id, the column
                                   KEY, number from 1, bytes */
    const char *key;            /* the column that refers to t.id */
    const char *media_type;     /* for OpenAPI: its type, or a range */
} crm_file_t;

/* The maximum number of keys of a sort order. */
#define CRM_SORT_KEYS 4

/* A sort order of a list: its keys, followed by t.id in the same direction. */
typedef struct crm_sort_t {
    const char *name;           /* value of the parameter "sort", or NULL */
    const char *keys[CRM_SORT_KEYS + 1]; /* SQL over t; NULL at the end */
    unsigned char integers[CRM_SORT_KEYS]; /* 1: the key is an integer; 0: it is
                                              a timestamptz(3) */
    int ascending;              /* the default direction is ascending */
    int nulls_last;             /* rows with a null in the first key are last in
                                   both directions */
    int by_time;                /* the key is a column of the resource's times,
                                   which it must have */
} crm_sort_t;

/* By created_at, latest first, or for those who copy by updated_at (contract
 * 13.3). */
extern const crm_sort_t crm_list_by_time[];

/* An operation: a method on a path. */
struct crm_operation_t {
    const char *id;             /* OpenAPI's operationId */
    const char *method;
    const char *path;           /* below /api/v1, may have an {id} */
    crm_op_t kind;
    const crm_filter_t *filters; /* ended by one without a name; or NULL */
    const crm_sort_t *sorts;    /* the first is the default; ended by one
                                   without keys */
    int ordered;                /* takes the parameter "order" */
    int whole;                  /* a list without pagination */
    int waits;                  /* takes the parameter "wait" */
    const char *from;           /* JOIN added to FROM of a list, or NULL */
    const crm_file_t *file;     /* of a file: see crm_op_file.h; or NULL. A
                                   resource that begins with such an operation
                                   has no schema */
    const char *feed;           /* of a log: see crm_op_log.h; or NULL */
    const char *counter;        /* crmapi.counter.kind of its total, or NULL */
    const char *parent;         /* the resource that the path's {id} names,
                                   NULL: this one */
    const char *parent_column;  /* column that refers to it, NULL:
                                   "<parent>_id" */
    apr_size_t max_body;        /* as of crm_route_t */
    int sequences;              /* requires a plan with sequences */
    int location;               /* a 201 has the header Location */
    crm_deprecation_t deprecated; /* the dates, if it is deprecated */
    int statuses[8];            /* further statuses of its responses, ended by
                                   0 */
    /* For OpenAPI: names of the schemas of request and response, where they
     * differ from the default. */
    const char *body_schema;
    const char *answer_schema;
    /* Name of a schema to add: the fields of a create, none required. */
    const char *item_schema;
    const char *example;        /* a body that it takes, with ' in place of " */
    const char *doc;            /* what to know beyond the summary */
    const char *summary;
};

/* Return what is said of OPERATION's kind. */
static inline const crm_kind_t *crm_kind_of(const crm_operation_t *operation)
{
    return &crm_kinds[operation->kind];
}

/* A resource: a table of the database and its operations. */
struct crm_resource_t {
    const char *name;           /* "pipeline_card", also the table's name */
    const char *title;          /* "PipelineCard", the schema's name */
    const char *tag;            /* "Pipelines", OpenAPI's group */
    const char *doc;
    const crm_field_t *fields;  /* ended by one without a name */
    const crm_operation_t *operations; /* ended by one without an id; or NULL */
    /* A table with workspace_id, updated_at and id of each row, in the order of its
     * primary key, and its indexed_fields. The resource's own table has no index on
     * these then, so that an UPDATE can leave its indexes alone. NULL: it has them. */
    const char *times;
    /* A table with the id and merged_into of rows that were merged into others:
     * their ids answer 410 with the Location of that row. NULL: there is none. */
    const char *merged;
    /* The SET list of a soft delete (conversations); NULL: rows are deleted. */
    const char *soft_delete;
    /* Check rules that concern several fields of a new row and add errors to
     * INPUT. BINDS and SENT are indexed by field. NULL: there are none. */
    void (*check)(crm_input_t *input, const crm_resource_t *resource,
                  const char *const *binds, const unsigned char *sent);
    const char *check_schema;   /* CHECK's rules for a create as members of its
                                   schema, with ' in place of " */
    /* Write the members of its schema. NULL: it has those of "fields". */
    void (*schema)(crm_buf_t *buf);
    int no_import;              /* crmapictl import does not accept it */
};

/* A type of event. */
typedef struct crm_event_type_t {
    const char *type;           /* "contact.created" */
    const char *title;          /* "ContactCreated": its schema is
                                   ContactCreatedEvent */
    const crm_resource_t *resource; /* what its "data" shows */
    const char *doc;            /* when it happens */
    int deleted;                /* "data" has only the id */
} crm_event_type_t;

/* Make RESOURCES (static, ended by NULL) the resources of this process. Call
 * once, before threads start. Errors, in POOL: CRM_E_INTERNAL if their tables
 * are invalid, for example a duplicate field, a reference to an unknown
 * resource or an operation without a kind. */
crm_error_t *crm_registry_init(const crm_resource_t *const *resources,
                               apr_pool_t *pool);

/* Return the resources given to crm_registry_init(). */
const crm_resource_t *const *crm_registry(void);

/* Return the resource NAME, or NULL. */
const crm_resource_t *crm_resource_find(const char *name);

/* Return the field NAME of RESOURCE, or NULL. */
const crm_field_t *crm_resource_field(const crm_resource_t *resource,
                                      const char *name);

/* Return the number of fields of RESOURCE. */
int crm_resource_fields(const crm_resource_t *resource);

#endif /* CRM_RESOURCE_H */
