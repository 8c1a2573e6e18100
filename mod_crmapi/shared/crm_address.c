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

/* Set KEY to the key for requests of KIND in REALM from addresses that begin
 * with the LEN bytes at NET. */
static void make_key(crm_limit_key_t *key, const char *kind,
                     const unsigned char *net, apr_size_t len,
                     apr_uint32_t realm, apr_pool_t *pool)
{
    crm_buf_t text;

    memset(key, 0, sizeof(*key));
    key->realm = realm;
    crm_buf_init(&text, 64, pool);
    crm_buf_add(&text, kind, strlen(kind) + 1);
    crm_buf_add(&text, (const char *)net, len);
    crm_key_hash(key->hash, text.data, text.len);
}

/* Charge a request to KEY, which gets a slot if it has none. */
static crm_error_t *charge(crm_limit_t *addresses, crm_limit_key_t *key,
                           crm_limit_class_t class, apr_uint32_t max,
                           apr_pool_t *pool)
{
    crm_budget_t budget = {
        .limit = addresses, .key = key, .class = class, .max = max
    };
    crm_error_t *error;

    do {
        error = crm_budget_charge(&budget, pool);
        if (budget.verdict.known) {
            return error;
        }
    } while (crm_limit_add(addresses, key, NULL) == CRM_LIMIT_ADDED);
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
 * /64 and its /48, or one for IPv4. Return their number. */
static int make_keys(crm_limit_key_t keys[2], const char *kind,
                     const char *address, apr_uint32_t realm, apr_pool_t *pool)
{
    unsigned char net[16];
    apr_size_t len = crm_network_address(net, address);

    make_key(&keys[0], kind, net, len == 16 ? SUBNET : len, realm, pool);
    if (len == 16) {
        make_key(&keys[1], kind, net, SITE, realm, pool);
    }
    return len == 16 ? 2 : 1;
}

crm_error_t *crm_address_charge(crm_limit_t *addresses, const char *kind,
                                const char *address, apr_uint32_t realm,
                                crm_limit_class_t class, apr_uint32_t max,
                                apr_pool_t *pool)
{
    crm_limit_key_t keys[2];
    crm_error_t *error = NULL;
    int count;

    if (!addresses || !max) {
        return NULL;
    }
    count = make_keys(keys, kind, address, realm, pool);
    /* A request that one of the two refuses is charged to neither. */
    CRM_ERR(charge(addresses, &keys[0], class, max, pool));
    if (count == 2) {
        error = charge(addresses, &keys[1], class, max * CRM_ADDRESS_SITE,
                       pool);
    }
    if (error) {
        crm_limit_refund(addresses, keys[0].hash, realm, class);
    }
    return error;
}

crm_error_t *crm_address_charge_name(crm_limit_t *addresses, const char *kind,
                                     const char *name, apr_uint32_t realm,
                                     crm_limit_class_t class,
                                     apr_uint32_t max, apr_pool_t *pool)
{
    crm_limit_key_t key;

    if (!addresses || !max) {
        return NULL;
    }
    make_key(&key, kind, (const unsigned char *)name, strlen(name), realm,
             pool);
    return charge(addresses, &key, class, max, pool);
}

void crm_address_refund(crm_limit_t *addresses, const char *kind,
                        const char *address, apr_uint32_t realm,
                        crm_limit_class_t class, apr_uint32_t max,
                        apr_pool_t *pool)
{
    crm_limit_key_t keys[2];
    int count;

    if (!addresses || !max) {
        return;
    }
    count = make_keys(keys, kind, address, realm, pool);
    for (int i = 0; i < count; i++) {
        crm_limit_refund(addresses, keys[i].hash, realm, class);
    }
}
