/* SPDX-License-Identifier: Apache-2.0 */
/* crm_address.h: budgets of client addresses (contract 2.4, 2.5) */
#ifndef CRM_ADDRESS_H
#define CRM_ADDRESS_H

#include "apr_pools.h"

#include "crm_error.h"
#include "crm_limit.h"

/* The budget of a /48 is this many times that of a /64. A customer of an
 * internet provider can use all addresses of a /64, and often all /64s of a
 * /48. */
#define CRM_ADDRESS_SITE 4

/* A kind of request: one with an unknown key or token. An address has a budget
 * for each kind. */
#define CRM_ADDRESS_KEY "key"

/* Set NAMES, in POOL, to the names of the networks of the client ADDRESS that
 * are charged: an IPv4 address, or the /64 and the /48 of an IPv6 address.
 * NAMES[1] is NULL if there is one. */
void crm_address_names(const char *names[2], const char *address,
                       apr_pool_t *pool);

/* A budget that each address has for a kind of request. */
typedef struct crm_address_budget_t {
    crm_limit_t *addresses;     /* the table; NULL: nothing is counted */
    const char *kind;
    apr_uint32_t realm;         /* of the database */
    crm_limit_class_t class;
    apr_uint32_t max;           /* requests in 60 s; 0: nothing is counted */
} crm_address_budget_t;

/* Charge a request to BUDGET of the client ADDRESS ("203.0.113.7"). For an IPv6
 * address its /64 and its /48 are charged, or neither if one of them refuses.
 * Errors, in POOL: CRM_E_RATE_LIMITED with retry_after, CRM_E_UNAVAILABLE
 * (CRM4001). */
crm_error_t *crm_address_charge(const crm_address_budget_t *budget,
                                const char *address, apr_pool_t *pool);

/* The same for NAME instead of an address, for example a visitor's id. */
crm_error_t *crm_address_charge_name(const crm_address_budget_t *budget,
                                     const char *name, apr_pool_t *pool);

/* Take back the charge of crm_address_charge() with the same arguments. */
void crm_address_refund(const crm_address_budget_t *budget,
                        const char *address, apr_pool_t *pool);

#endif /* CRM_ADDRESS_H */
