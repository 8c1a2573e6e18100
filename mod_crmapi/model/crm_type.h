/* SPDX-License-Identifier: Apache-2.0 */
/* crm_type.h: fields and their types: parsing, binding, output, schema */
#ifndef CRM_TYPE_H
#define CRM_TYPE_H

#include <json-c/json.h>

#include "apr_pools.h"

#include "crm_buf.h"
#include "crm_error.h"

typedef struct crm_field_t crm_field_t;
typedef struct crm_type_t crm_type_t;

/* Where a schema is used. */
typedef enum crm_side_t {
    CRM_SIDE_OUTPUT,            /* a response */
    CRM_SIDE_INPUT,             /* a body */
    CRM_SIDE_QUERY              /* a parameter */
} crm_side_t;

/* The state of reading a body or a query. */
typedef struct crm_input_t {
    apr_pool_t *pool;           /* owns binds and details */
    crm_error_t *error;         /* the 422 so far, or NULL */
    int lenient;                /* Prefer: handling=lenient (contract 6.2) */
} crm_input_t;

/* A type. Binds are strings in PostgreSQL's input format, NULL for null. */
struct crm_type_t {
    const char *name;
    const char *cast;           /* the SQL type of binds */
    /* The bind that replaces null in a field that is not nullable (contract
     * 6.5: [] for arrays, {} for objects). NULL: null is refused. */
    const char *empty;
    /* Set *BIND_P from VALUE, which is not a JSON null. Add rules that it
     * breaks to INPUT, with PATH as the name of FIELD. */
    void (*parse)(const char **bind_p, crm_input_t *input,
                  const crm_field_t *field, const char *path,
                  json_object *value);
    /* Set *BIND_P from TEXT, the value of a query parameter (not empty, valid
     * UTF-8, no U+0000). Return NULL or the rule that it breaks. A *BIND_P of
     * NULL matches nothing. NULL: cannot be used in a query. */
    const char *(*parse_query)(const char **bind_p, const crm_field_t *field,
                               const char *text, apr_pool_t *pool);
    /* Add TEXT (LEN bytes of PostgreSQL's output) to BUF as JSON. */
    void (*write)(crm_buf_t *buf, const char *text, apr_size_t len);
    /* The members of the JSON Schema if all fields have the same ones; otherwise
     * add those of FIELD on SIDE to BUF: without braces. */
    const char *fixed_schema;
    void (*schema)(crm_buf_t *buf, const crm_field_t *field, crm_side_t side);
};

/* Flags of a field. */
#define CRM_F_NULLABLE  0x001   /* may be null in a response */
#define CRM_F_REQUIRED  0x002   /* required in a create, never empty */
#define CRM_F_CREATE    0x004   /* accepted in a create */
#define CRM_F_UPDATE    0x008   /* accepted in a PATCH */
#define CRM_F_FIXED     0x010   /* a PATCH may only send the value it has
                                   (contract 6.7) */
#define CRM_F_REFUSED   0x020   /* refused in a PATCH (contract 6.7) */
#define CRM_F_DERIVED   0x040   /* computed by the expression SQL, not a
                                   column */
#define CRM_F_NO_CLEAR  0x080   /* null is refused, even if nullable */
#define CRM_F_HIDDEN    0x100   /* not in responses, only in import and
                                   export */
#define CRM_F_ON_REQUEST 0x200  /* hidden, but shown to who requests it by the
                                   parameter "include" (extension) */

#define CRM_F_UNIQUE    0x400   /* a text, never empty, that one row of a
                                   workspace has (contract 20.3) */
#define CRM_F_SHOWN     0x800   /* a text that shows something: more than blanks
                                   and what cannot be seen */
/* A field that a client sets and changes, and one that it clears, too. */
#define CRM_F_WRITABLE  (CRM_F_CREATE | CRM_F_UPDATE)
#define CRM_F_OPTIONAL  (CRM_F_NULLABLE | CRM_F_WRITABLE)

/* A field of a resource. The order is that of the specification. */
struct crm_field_t {
    const char *name;           /* in JSON, and name of the column */
    const crm_type_t *type;
    unsigned flags;             /* CRM_F_... */
    apr_size_t max;             /* characters, items or bytes, depending on the
                                   type; of an integer its greatest value, and
                                   the least one is 1; 0: the type's default
                                   (contract 6.3) */
    const char *const *values;  /* of an enumeration, ended by NULL */
    const char *ref;            /* resource that a reference refers to */
    const char *sql;            /* the expression of a derived field, over t;
                                   CRM_SQL_WORKSPACE is the workspace */
    const char *new_sql;        /* the same for a row that was just inserted, as
                                   calls of functions; NULL: it is null */
    const char *function;       /* a function of schema/citus/ that returns it,
                                   with the workspace and the row's id as its
                                   parameters; or NULL */
    const char *initial;        /* the bind if a create or import has no
                                   value */
    /* A PATCH that sets the field FOLLOW and not this one sets this one to
     * FOLLOW_SQL, with '?' for FOLLOW's bind. */
    const char *follow;
    const char *follow_sql;
    const char *doc;
    const char *example;        /* of a parameter; NULL: that of its type */
};

/* The types with one value. The default maximum of a text is 1,000
 * characters. */
extern const crm_type_t crm_type_uuid;      /* an id assigned by the server */
extern const crm_type_t crm_type_ref;       /* the id of a row of FIELD->ref */
extern const crm_type_t crm_type_text;
extern const crm_type_t crm_type_email;     /* one address */
extern const crm_type_t crm_type_number;    /* contract 6.4 */
extern const crm_type_t crm_type_integer;   /* 32 bits, not negative, or up to
                                               FIELD->max */
extern const crm_type_t crm_type_boolean;
extern const crm_type_t crm_type_time;      /* contract 7.5, 9.1 */
extern const crm_type_t crm_type_enum;      /* one of FIELD->values */

/* Return whether clients are shown FIELD, some of them on request. */
int crm_field_is_public(const crm_field_t *field);

/* Add to INPUT the error MESSAGE about the field PATH. Neither is copied. */
void crm_input_error(crm_input_t *input, const char *path,
                     const char *message);

/* Return the first of FIELDS (ended by one without a name) and of NAMES (ended by
 * NULL), each of which may be NULL, that NAME nearly is; NULL if there is none. */
const char *crm_field_near(const char *name, const crm_field_t *fields,
                           const char *const *names);

/* Add to INPUT, unless it is lenient, that the field PATH is not known. NAME, the
 * last part of PATH, is none of FIELDS (ended by one without a name) and of NAMES
 * (ended by NULL), each of which may be NULL; the error asks whether the first of
 * these that NAME nearly is was meant. PATH is not copied. */
void crm_input_unknown(crm_input_t *input, const char *path, const char *name,
                       const crm_field_t *fields, const char *const *names);

/* Return the number of errors in INPUT. */
int crm_input_errors(const crm_input_t *input);

/* Return, in POOL, the rule that an id breaks if it is not the id of a row of
 * the resource REF. Unknown, malformed and other workspaces' ids are not
 * distinguished (contract 6.8). */
const char *crm_ref_rule(const char *ref, apr_pool_t *pool);

/* Read VALUE (NULL: a JSON null) of FIELD at PATH into *BIND_P. Null is handled
 * here: refused, cleared or made empty (contract 6.5). Other values go to the
 * type's parse(). */
void crm_type_parse(const char **bind_p, crm_input_t *input,
                    const crm_field_t *field, const char *path,
                    json_object *value);

/* Add TEXT, PostgreSQL's output of FIELD (LEN bytes, NULL for null), to BUF as
 * JSON. */
void crm_type_write(crm_buf_t *buf, const crm_field_t *field,
                    const char *text, apr_size_t len);

/* Return TEXT, a bind or output of FIELD that is not null, as JSON in RESULT_POOL. */
const char *crm_type_json(const crm_field_t *field, const char *text,
                          apr_pool_t *result_pool);

/* Return whether A and B, binds or output of FIELD (NULL for null), are equal
 * as JSON values: 12.5 equals 12.5000, and the order of members is ignored. */
int crm_type_equal(const crm_field_t *field, const char *a, const char *b,
                   apr_pool_t *scratch_pool);

/* Add the members of the JSON Schema of FIELD on SIDE to BUF, without braces. */
void crm_field_schema(crm_buf_t *buf, const crm_field_t *field,
                      crm_side_t side);

/* Add the member "type" of a schema to BUF: TYPE, and "null" if FIELD may be
 * null on SIDE. Return whether it may. */
int crm_type_schema(crm_buf_t *buf, const char *type,
                    const crm_field_t *field, crm_side_t side);

#endif /* CRM_TYPE_H */
