/* SPDX-License-Identifier: Apache-2.0 */
/* crm_params.h: reading the query of a request (contract 7) */
#ifndef CRM_PARAMS_H
#define CRM_PARAMS_H

#include "crm_call.h"
#include "crm_error.h"
#include "crm_near.h"
#include "crm_resource.h"

/* The value of a filter's query parameter. */
typedef struct crm_param_t {
    const crm_filter_t *filter;
    int given;                  /* the query has it, and not with what its
                                   absence says */
    const char *bind;
    const char *member;         /* see crm_filter_t.members; or NULL */
} crm_param_t;

/* The maximum number of members in a query, and of characters of a name. */
#define CRM_MEMBERS_MAX 10
#define CRM_MEMBER_MAX 100

/* Read the query's parameters, the condition header of the operation's kind,
 * and a write's Idempotency-Key into CALL. Errors: CRM_E_VALIDATION, those of
 * crm_idempotency_read(). */
crm_error_t *crm_rest_params(crm_call_t *call);

/* Return the parameter of OPERATION that IS_IT tells to be NAME, or NULL. */
const char *crm_param_name(const crm_operation_t *operation, const char *name,
                           crm_near_fn *is_it);

#endif /* CRM_PARAMS_H */
