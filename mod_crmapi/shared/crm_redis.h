/* SPDX-License-Identifier: Apache-2.0 */
/* crm_redis.h: a store of budgets on Redis or Valkey (contract 16.1) */
#ifndef CRM_REDIS_H
#define CRM_REDIS_H

#include "crm_error.h"
#include "crm_store.h"
#include "crm_wire.h"

#define CRM_REDIS_PREFIX "crmapi"
#define CRM_REDIS_PREFIX_MAX 64

/* The script that counts a request (crm_store.lua), with a NUL. */
extern const char crm_store_script[];

/* Where a server is, and how to use it. */
typedef struct crm_redis_config_t {
    crm_wire_place_t place;
    const char *name;           /* URL without user and password file */
    int tls;                    /* use TLS; crm_redis_create() then sets
                                   PLACE's context */
    int database;
    const char *user;           /* NULL or "": the default user */
    const char *password_file;  /* NULL: no password */
    /* Not in a URL: */
    const char *password;       /* NULL: none */
    const char *ca;             /* file of certificates, NULL: the system's */
    const char *prefix;         /* of the names of keys: at most
                                   CRM_REDIS_PREFIX_MAX bytes */
} crm_redis_config_t;

/* Return NULL, or the reason why the certificates of CONFIG cannot be used. Nothing is
 * connected or resolved. */
const char *crm_redis_check(const crm_redis_config_t *config);

/* Set *BACKEND to the server of CONFIG, allocated in POOL. It is resolved and
 * connected later, by children of this process. Return NULL, or the reason why TLS
 * or SHA-1 cannot be used. */
const char *crm_redis_create(crm_store_backend_t *backend,
                             const crm_redis_config_t *config,
                             apr_pool_t *pool);

#endif /* CRM_REDIS_H */
