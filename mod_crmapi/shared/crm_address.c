/* SPDX-License-Identifier: Apache-2.0 */
/* crm_address.c: budgets of client addresses */
#include "crm_address.h"

#include <string.h>

#include "apr_escape.h"

#include "crm_budget.h"
#include "crm_buf.h"
#include "crm_key.h"
#include "crm_limit_key.h"
#include "crm_network.h"

/* Lengths of IPv6 prefixes, in bytes. */
#define SUBNET 8                /* /64 */
#define SITE 6                  /* /48 */

/* Set KEY to the key for BUDGET of the addresses that begin with the LEN bytes at
 * NET. */
static void make_key(crm_limit_key_t *key, const crm_address_budget_t *budget,
                     const unsigned char *net, apr_size_t len, apr_pool_t *pool)
{
    crm_buf_t text;

    memset(key, 0, sizeof(*key));
    key->realm = budget->realm;
    crm_buf_init(&text, 64, pool);
    crm_buf_add(&text, budget->kind, strlen(budget->kind) + 1);
    crm_buf_add(&text, (const char *)net, len);
    crm_key_hash(key->hash, text.data, text.len);
}

/* Charge a request to BUDGET of KEY, TIMES as large, which gets a slot if it has
 * none. */
static crm_error_t *charge(const crm_address_budget_t *budget,
                           crm_limit_key_t *key, apr_uint32_t times,
                           apr_pool_t *pool)
{
    crm_budget_t own = {.limit = budget->addresses, .key = key,
                        .class = budget->class, .max = times * budget->max};
    crm_error_t *error;

    do {
        error = crm_budget_charge(&own, pool);
        if (own.verdict.known) {
            return error;
        }
    } while (crm_limit_add(own.limit, key, NULL) == CRM_LIMIT_ADDED);
    return crm_error_logf(CRM_E_UNAVAILABLE, pool,
                          "CRM4001: the table of addresses cannot be used");
}

void crm_address_names(const char *names[2], const char *address,
                       apr_pool_t *pool)
{
    unsigned char net[16];
    apr_size_t len = crm_network_address(net, address);

    names[0] = apr_pescape_hex(pool, net, len == 16 ? SUBNET : len, 0);
    names[1] = len == 16 ? apr_pescape_hex(pool, net, SITE, 0) : NULL;
}

/* Set KEYS to the keys that a request from ADDRESS is charged to: those of its
 * /64 and its /48, or one for IPv4. Return their number; 0: nothing is counted. */
static int make_keys(crm_limit_key_t keys[2],
                     const crm_address_budget_t *budget, const char *address,
                     apr_pool_t *pool)
{
    unsigned char net[16];
    apr_size_t len;

    if (!budget->addresses || !budget->max) {
        return 0;
    }
    len = crm_network_address(net, address);
    make_key(&keys[0], budget, net, len == 16 ? SUBNET : len, pool);
    if (len == 16) {
        make_key(&keys[1], budget, net, SITE, pool);
    }
    return len == 16 ? 2 : 1;
}

crm_error_t *crm_address_charge(const crm_address_budget_t *budget,
                                const char *address, apr_pool_t *pool)
{
    crm_limit_key_t keys[2];
    crm_error_t *error;
    int count = make_keys(keys, budget, address, pool);

    error = count ? charge(budget, &keys[0], 1, pool) : NULL;
    if (error || count < 2) {
        return error;
    }
    error = charge(budget, &keys[1], CRM_ADDRESS_SITE, pool);
    if (error) {                /* it is charged to neither */
        crm_limit_refund(budget->addresses, keys[0].hash, budget->realm,
                         budget->class);
    }
    return error;
}

crm_error_t *crm_address_charge_name(const crm_address_budget_t *budget,
                                     const char *name, apr_pool_t *pool)
{
    crm_limit_key_t key;

    if (!budget->addresses || !budget->max) {
        return NULL;
    }
    make_key(&key, budget, (const unsigned char *)name, strlen(name), pool);
    return charge(budget, &key, 1, pool);
}

void crm_address_refund(const crm_address_budget_t *budget,
                        const char *address, apr_pool_t *pool)
{
    crm_limit_key_t keys[2];
    int count = make_keys(keys, budget, address, pool);

    for (int i = 0; i < count; i++) {
        crm_limit_refund(budget->addresses, keys[i].hash, budget->realm,
                         budget->class);
    }
}
