/* SPDX-License-Identifier: Apache-2.0 */
/* crm_address.h: budgets of client addresses (contract 2.4, 2.5) */
#ifndef CRM_ADDRESS_H
#define CRM_ADDRESS_H

#include "apr_pools.h"

#include "crm_error.h"
#include "crm_limit.h"

/* How many times the budget of a /64 its /48 has. A customer of a provider
 * chooses among all addresses of a /64, and often among all /64s of a /48. */
#define CRM_ADDRESS_SITE 4

/* What is counted apart: each KIND of request that an address makes. */
#define CRM_ADDRESS_KEY "key"   /* with a key or token that is not known */

/* Charge a request of KIND and CLASS to the client ADDRESS ("203.0.113.7"), in
 * the table ADDRESSES, under MAX requests in 60 s. An IPv6 address stands for
 * its /64, whose /48 is charged beside it. REALM tells databases apart.
 * ADDRESSES NULL or MAX 0: nothing is counted. Error: CRM_E_RATE_LIMITED with
 * its retry_after, in POOL. */
crm_error_t *crm_address_charge(crm_limit_t *addresses, const char *kind,
                                const char *address, apr_uint32_t realm,
                                crm_limit_class_t class, apr_uint32_t max,
                                apr_pool_t *pool);

/* Charge a request likewise to NAME, whatever that is: a visitor's id. */
crm_error_t *crm_address_charge_name(crm_limit_t *addresses, const char *kind,
                                     const char *name, apr_uint32_t realm,
                                     crm_limit_class_t class,
                                     apr_uint32_t max, apr_pool_t *pool);

/* Give back what crm_address_charge() has charged with the same arguments. */
void crm_address_refund(crm_limit_t *addresses, const char *kind,
                        const char *address, apr_uint32_t realm,
                        crm_limit_class_t class, apr_uint32_t max,
                        apr_pool_t *pool);

#endif /* CRM_ADDRESS_H */
