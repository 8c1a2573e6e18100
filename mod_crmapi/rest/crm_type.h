/* SPDX-License-Identifier: Apache-2.0 */
/* crm_type.h: types of fields: how each is read, bound, written, described */
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

/* What is gathered while a body or a query is read. */
typedef struct crm_input_t {
    apr_pool_t *pool;           /* owns binds and details */
    crm_error_t *error;         /* the 422 so far, or NULL */
    int lenient;                /* Prefer: handling=lenient (contract 6.2) */
} crm_input_t;

/* A type. Binds are texts in PostgreSQL's input format, NULL for a null. */
struct crm_type_t {
    const char *name;
    const char *cast;           /* SQL type that a bind is cast to */
    /* Bind of a null in what is never null (contract 6.5: arrays become [],
     * objects {}); NULL where null is refused instead. */
    const char *empty;
    /* Set *BIND_P from the JSON VALUE (never a JSON null) of FIELD, which the
     * client knows as PATH; where it breaks a rule, add that to INPUT. */
    void (*parse)(const char **bind_p, crm_input_t *input,
                  const crm_field_t *field, const char *path,
                  json_object *value);
    /* Set *BIND_P from the TEXT of a query parameter (not empty, valid UTF-8,
     * without U+0000); return NULL or the rule that it breaks. A *BIND_P of
     * NULL matches nothing. NULL: not usable in a query. */
    const char *(*parse_query)(const char **bind_p, const crm_field_t *field,
                               const char *text, apr_pool_t *pool);
    /* Add to BUF the JSON of TEXT (LEN bytes), PostgreSQL's output. */
    void (*write)(crm_buf_t *buf, const char *text, apr_size_t len);
    /* Add to BUF the members of the JSON Schema of FIELD on SIDE, without
     * braces. */
    void (*schema)(crm_buf_t *buf, const crm_field_t *field, crm_side_t side);
};

/* Flags of a field. */
#define CRM_F_NULLABLE  0x001   /* a response may show null */
#define CRM_F_REQUIRED  0x002   /* a create must have it; never empty */
#define CRM_F_CREATE    0x004   /* a create may have it */
#define CRM_F_UPDATE    0x008   /* a PATCH may have it */
#define CRM_F_FIXED     0x010   /* a PATCH may only repeat it (contract 6.7) */
#define CRM_F_REFUSED   0x020   /* a PATCH must not have it (contract 6.7) */
#define CRM_F_DERIVED   0x040   /* computed (SQL is its expression), no column */
#define CRM_F_NO_CLEAR  0x080   /* null is refused though nullable or empty */
#define CRM_F_HIDDEN    0x100   /* not in responses: import and export only */
#define CRM_F_ON_REQUEST 0x200  /* hidden, but in a list that was asked for it
                                   by the parameter "include" (extension) */

/* A field of a resource, in the order of the specification's table. */
struct crm_field_t {
    const char *name;           /* in JSON, and of the column */
    const crm_type_t *type;
    unsigned flags;             /* CRM_F_... */
    apr_size_t max;             /* characters, items, bytes: by type; 0: the
                                   type's usual (contract 6.3) */
    const char *const *values;  /* of an enumeration, NULL at the end */
    const char *ref;            /* resource that a reference names */
    const char *sql;            /* expression of a derived field over t */
    const char *initial;        /* bind where a create or import has none */
    /* What a PATCH of FOLLOW sets this field to, unless it is sent itself:
     * FOLLOW_SQL with '?' for FOLLOW's bind. */
    const char *follow;
    const char *follow_sql;
    const char *doc;
};

/* The types. Text that is not otherwise limited has 1,000 characters. */
extern const crm_type_t crm_type_uuid;      /* an id, made by us */
extern const crm_type_t crm_type_ref;       /* the id of a FIELD->ref */
extern const crm_type_t crm_type_text;
extern const crm_type_t crm_type_email;     /* one address */
extern const crm_type_t crm_type_number;    /* contract 6.4 */
extern const crm_type_t crm_type_integer;   /* 32 bits, not negative */
extern const crm_type_t crm_type_boolean;
extern const crm_type_t crm_type_time;      /* contract 7.5, 9.1 */
extern const crm_type_t crm_type_enum;      /* one of FIELD->values */
extern const crm_type_t crm_type_object;    /* free-form JSON, 6.3 */
extern const crm_type_t crm_type_array;     /* free-form JSON array */
extern const crm_type_t crm_type_tags;
extern const crm_type_t crm_type_strings;   /* string[] or null */
extern const crm_type_t crm_type_emails;    /* contract 9.2 */
extern const crm_type_t crm_type_phones;    /* contract 9.2 */

/* Add to INPUT that PATH is wrong because of MESSAGE (kept). */
void crm_input_error(crm_input_t *input, const char *path,
                     const char *message);

/* Return how many things were found wrong in INPUT so far. */
int crm_input_errors(const crm_input_t *input);

/* Return, in POOL, the rule that an id breaks which names no row of the
 * resource called REF: unknown, malformed or another workspace's, it is the
 * same (contract 6.8). */
const char *crm_ref_rule(const char *ref, apr_pool_t *pool);

/* Read VALUE (NULL: a JSON null) of FIELD at PATH into *BIND_P: what every
 * field has in common before its type's parse(): null, which is refused,
 * cleared or made empty (contract 6.5). */
void crm_type_parse(const char **bind_p, crm_input_t *input,
                    const crm_field_t *field, const char *path,
                    json_object *value);

/* Add to BUF the JSON of column COLUMN of FIELD: TEXT, NULL for a null. */
void crm_type_write(crm_buf_t *buf, const crm_field_t *field,
                    const char *text, apr_size_t len);

/* Return whether A and B, binds or output of FIELD (NULL: null), mean the
 * same: 12.5 is 12.5000, and the order of an object's members is nothing. */
int crm_type_equal(const crm_field_t *field, const char *a, const char *b,
                   apr_pool_t *scratch_pool);

/* Add to BUF a schema's "type": TYPE, and "null" where FIELD may be null on
 * SIDE. Return whether it may. */
int crm_type_schema(crm_buf_t *buf, const char *type,
                    const crm_field_t *field, crm_side_t side);

/* Set *MERGED_P to the e-mail or phone list HAVE with those entries of MORE
 * that it lacks behind it, and HAVE's primary (contract 10.3). All are binds
 * of FIELD, whose type is crm_type_emails or crm_type_phones. */
void crm_type_merge(const char **merged_p, const crm_field_t *field,
                    const char *have, const char *more, apr_pool_t *pool);

/* Set *MERGED_P to the tags HAVE followed by those of MORE that it lacks
 * (contract 11.5); all are binds of crm_type_tags. */
void crm_type_merge_tags(const char **merged_p, const char *have,
                         const char *more, apr_pool_t *pool);

/* Return the strings of ARRAY, PostgreSQL's text of a text[] without nulls,
 * as an array of const char * in POOL. */
apr_array_header_t *crm_type_array_strings(const char *array,
                                           apr_pool_t *pool);

#endif /* CRM_TYPE_H */
