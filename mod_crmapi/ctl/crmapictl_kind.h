/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_kind.h: the kinds of objects that documents of apply and show have
 * (contract 14.1) */
#ifndef CRMAPICTL_KIND_H
#define CRMAPICTL_KIND_H

#include "crm_resource.h"
#include "crm_sql.h"

/* A kind. Its fields are those of an import, or a table of its own. */
typedef struct ctl_kind_t {
    const crm_resource_t *resource; /* with the name that "object" has */
    const char *table;
    const char *handle;         /* field that an object is matched by before NAME;
                                   or NULL */
    const char *name;           /* field that an object is matched by */
    const char *scope;          /* reference below which NAME is unique; or
                                   NULL */
    const char *where;          /* further condition on rows t; or "" */
    const char *secret;         /* member of a document that names the file of its
                                   secret; or NULL */
} ctl_kind_t;

/* The kinds, ended by one without a resource. The first is the workspace itself.
 * Each follows those that it refers to. */
extern const ctl_kind_t ctl_kinds[];

/* The maximum number of kinds. */
#define CTL_KINDS 16

/* Return the kind NAME, or NULL. */
const ctl_kind_t *ctl_kind_find(const char *name);

/* Return whether FIELD is part of a row of a kind. */
int ctl_kind_has(const crm_field_t *field);

/* Return whether FIELD only says when a row was made or changed: show leaves it
 * out, apply takes it for new rows only. */
int ctl_kind_is_stamp(const crm_field_t *field);

/* Return the index of the field NAME of KIND. */
int ctl_kind_index(const ctl_kind_t *kind, const char *name);

/* Add "SELECT ... FROM ..." with the fields of KIND that it has, and the condition
 * on the rows of the workspace WORKSPACE_ID. */
void ctl_kind_select(crm_sql_t *sql, const ctl_kind_t *kind,
                     const char *workspace_id);

#endif /* CRMAPICTL_KIND_H */
