/* SPDX-License-Identifier: Apache-2.0 */
/* crm_budget.h: charging a request and setting the headers (contract 4) */
#ifndef CRM_BUDGET_H
#define CRM_BUDGET_H

#include "apr_tables.h"

#include "crm_error.h"
#include "crm_limit.h"
#include "crm_store.h"

/* The log line if there is no memory to count a request. */
#define CRM_BUDGET_FULL "CRM1003: the table of keys is full: raise " \
    "CrmApiRateLimitKeys"

/* A request to be charged to a budget. It must not move while it is
 * UNDECIDED. */
typedef struct crm_budget_t {
    /* Set by the caller: */
    crm_limit_t *limit;
    crm_store_t *store;         /* of the budgets of all hosts (contract 16.1);
                                   NULL: this host's are all */
    crm_limit_key_t *key;       /* its hash and realm; the rest is set */
    crm_limit_class_t class;
    apr_uint32_t max;           /* the limit; 0: none */
    apr_uint32_t ceiling;       /* of the key's own limit (contract 14.5) */
    int later;                  /* it may be refused after it was served */
    apr_table_t *headers;       /* get those of contract 4.2; NULL: none */
    /* Set by crm_budget_charge() and crm_budget_settle(): */
    crm_limit_verdict_t verdict;
    int undecided;              /* the store has not decided yet */
    crm_store_check_t check;
} crm_budget_t;

/* Charge BUDGET. Headers and error are allocated in POOL. Return NULL if the
 * request is admitted or the key is unknown. Errors: CRM_E_RATE_LIMITED with
 * retry_after; CRM_E_UNAVAILABLE if the request cannot be counted.
 *
 * If the decision may come LATER, and the store has refused nothing in the last
 * minute, do not wait for the store: the request is admitted and UNDECIDED.
 * Then the caller must call crm_budget_settle(). */
crm_error_t *crm_budget_charge(crm_budget_t *budget, apr_pool_t *pool);

/* Wait for the store's decision on BUDGET, which is UNDECIDED. Return as
 * crm_budget_charge() does. After a refusal the headers are all that there
 * are. */
crm_error_t *crm_budget_settle(crm_budget_t *budget, apr_pool_t *pool);

/* Set the headers of BUDGET without charging it. */
void crm_budget_show(const crm_budget_t *budget, apr_pool_t *pool);

#endif /* CRM_BUDGET_H */
