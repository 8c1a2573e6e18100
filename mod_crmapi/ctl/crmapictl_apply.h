/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_apply.h: making a workspace as documents say (contract 14.1) */
#ifndef CRMAPICTL_APPLY_H
#define CRMAPICTL_APPLY_H

#include "crmapictl_document.h"

/* A row of the workspace, or one that was made. */
typedef struct ctl_row_t {
    const char *id;
    const char *alias;          /* the id in the document, if it is another */
    const char **values;        /* by field */
    ctl_item_t *item;           /* that names it; or NULL */
} ctl_row_t;

/* An object, its row, and what it says. */
typedef struct ctl_work_t {
    ctl_item_t *item;
    ctl_row_t *row;
    int is_new;
    const char **binds;         /* by field */
    unsigned char *sent;        /* by field: whether the document has it */
} ctl_work_t;

/* Something that was changed. */
typedef struct ctl_change_t {
    char sign;                  /* '+', '~' or '-' */
    const ctl_kind_t *kind;
    const ctl_row_t *row;
    const char *fields;         /* those of '~' */
    const char *secret;         /* that was made; or NULL */
} ctl_change_t;

/* An apply. */
typedef struct ctl_apply_t {
    ctl_t *ctl;
    const char *workspace_id;
    apr_array_header_t *items;  /* ctl_item_t * */
    apr_array_header_t *rows[CTL_KINDS];        /* ctl_row_t *, by kind */
    apr_array_header_t *changes;        /* ctl_change_t */
    int created;                /* the workspace was made */
    int same;                   /* objects that are as the document says */
    int events;                 /* its events were turned on or off */
} ctl_apply_t;

/* The updated_at of a row t that changes, in a form that Citus takes. */
#define CTL_SQL_LATER \
    "greatest(crmapi.now_ms(), t.updated_at + interval '1 millisecond')"

/* Return the rows of KIND. */
#define CTL_ROWS(apply, kind) ((apply)->rows[(kind) - ctl_kinds])

/* Return the value of the field NAME of ROW, a row of KIND. */
const char *ctl_row_value(const ctl_row_t *row, const ctl_kind_t *kind,
                          const char *name);

/* Note that ROW of KIND was changed. */
ctl_change_t *ctl_apply_note(ctl_apply_t *apply, char sign,
                             const ctl_kind_t *kind, const ctl_row_t *row);

/* Run SQL. */
crm_error_t *ctl_apply_run(PGresult **result_p, ctl_apply_t *apply,
                           crm_sql_t *sql);

/* The command. The manual page describes its output. */
crm_error_t *ctl_apply(ctl_t *ctl);

#endif /* CRMAPICTL_APPLY_H */
