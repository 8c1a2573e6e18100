/* SPDX-License-Identifier: Apache-2.0 */
/* crm_op.h: kinds of operations that the tables alone describe */
#ifndef CRM_OP_H
#define CRM_OP_H

#include "crm_rest.h"

extern const crm_kind_t crm_op_list;    /* rows, filtered, ordered, paged */
extern const crm_kind_t crm_op_get;     /* one row, by path or by filters */
extern const crm_kind_t crm_op_create;  /* one row from a body */
extern const crm_kind_t crm_op_update;  /* PATCH */
extern const crm_kind_t crm_op_delete;  /* for good, or soft_delete */

/* What a body says of a resource's fields, by their index in its table. */
typedef struct crm_values_t {
    const char **binds;
    unsigned char *sent;        /* 1: was in the body, and is to be stored */
} crm_values_t;

/* Ways of reading a body. */
typedef enum crm_body_mode_t {
    CRM_BODY_CREATE,            /* CRM_F_CREATE fields, required ones checked,
                                   a null counts as absent */
    CRM_BODY_UPDATE,            /* CRM_F_UPDATE and CRM_F_FIXED fields */
    CRM_BODY_MERGE              /* upsert's: CRM_F_CREATE fields, nothing is
                                   required, a null clears */
} crm_body_mode_t;

/* Read the JSON object BODY of RESOURCE into *VALUES (in INPUT's pool). PREFIX
 * ("" or "contacts[3].") goes before the names in errors. Unknown fields, and
 * fields that break a rule, are added to INPUT. */
void crm_body_read(crm_values_t *values, crm_input_t *input,
                   const crm_resource_t *resource, json_object *body,
                   crm_body_mode_t mode, const char *prefix);

/* Add to CHECKS those of the references in VALUES of RESOURCE, read in MODE,
 * that are to be stored. */
void crm_body_checks(apr_array_header_t *checks, const crm_values_t *values,
                     const crm_resource_t *resource, crm_body_mode_t mode,
                     apr_pool_t *pool);

/* The conditions that filters use: see crm_filter_t.add and add_unindexed. */
void crm_filter_bind(crm_sql_t *sql, const crm_filter_t *filter,
                     const char *bind, const crm_call_t *call);
void crm_filter_boolean(crm_sql_t *sql, const crm_filter_t *filter,
                        const char *bind, const crm_call_t *call);
void crm_filter_search(crm_sql_t *sql, const crm_filter_t *filter,
                       const char *bind, const crm_call_t *call);
void crm_filter_search_unindexed(crm_sql_t *sql, const crm_filter_t *filter,
                                 const char *bind, const crm_call_t *call);
void crm_filter_tags(crm_sql_t *sql, const crm_filter_t *filter,
                     const char *bind, const crm_call_t *call);
void crm_filter_tags_unindexed(crm_sql_t *sql, const crm_filter_t *filter,
                               const char *bind, const crm_call_t *call);

/* Conflicts that the caller could not explain are the server's fault: return
 * ERROR, made an internal error if it is an unexplained constraint. */
crm_error_t *crm_op_unexplained(crm_error_t *error);

#endif /* CRM_OP_H */
