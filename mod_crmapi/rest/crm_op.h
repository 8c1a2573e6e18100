/* SPDX-License-Identifier: Apache-2.0 */
/* crm_op.h: the kinds of operations that tables describe completely */
#ifndef CRM_OP_H
#define CRM_OP_H

#include "crm_rest.h"

extern const crm_kind_t crm_op_list;    /* rows, filtered, ordered, paged */
extern const crm_kind_t crm_op_get;     /* one row, by path or by parameters */
extern const crm_kind_t crm_op_create;  /* one row, inserted from a body */
extern const crm_kind_t crm_op_update;  /* PATCH */
extern const crm_kind_t crm_op_delete;  /* DELETE, or an update (soft_delete) */

/* The values of a body, by index in the resource's table of fields. */
typedef struct crm_values_t {
    const char **binds;
    unsigned char *sent;        /* 1: was sent and is to be stored */
} crm_values_t;

/* How a body is read. */
typedef enum crm_body_mode_t {
    CRM_BODY_CREATE,            /* CRM_F_CREATE fields; CRM_F_REQUIRED is
                                   enforced, null counts as absent */
    CRM_BODY_UPDATE,            /* CRM_F_UPDATE and CRM_F_FIXED fields */
    CRM_BODY_MERGE              /* for upsert: CRM_F_CREATE fields; none is
                                   required, null clears */
} crm_body_mode_t;

/* Read the JSON object BODY of RESOURCE into *VALUES, in INPUT's pool. Errors
 * are added to INPUT: unknown fields, and fields that break a rule. Their names
 * begin with PREFIX ("" or "contacts[3]."). */
void crm_body_read(crm_values_t *values, crm_input_t *input,
                   const crm_resource_t *resource, json_object *body,
                   crm_body_mode_t mode, const char *prefix);

/* Add to CHECKS (of crm_check_t) one check for each reference in VALUES, that
 * its row exists. VALUES of RESOURCE were read in MODE. The checks are in
 * POOL. */
void crm_body_checks(apr_array_header_t *checks, const crm_values_t *values,
                     const crm_resource_t *resource, crm_body_mode_t mode,
                     apr_pool_t *pool);

/* Implementations of crm_filter_t.add and add_unindexed. */
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

/* Return ERROR. If it is a conflict that the caller could not attribute to a
 * field of the request, make it CRM_E_INTERNAL. */
crm_error_t *crm_op_unexplained(crm_error_t *error);

#endif /* CRM_OP_H */
