/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_config.h: the configuration of a server */
#ifndef MOD_CRMAPI_CONFIG_H
#define MOD_CRMAPI_CONFIG_H

#include "crm_intake_site.h"
#include "crm_mcp.h"
#include "crm_request.h"

#include "mod_crmapi.h"

/* The default of CrmApiMaxBody. */
#define CRMAPI_MAX_BODY 2097152

/* mod_dbd's directives for a server. mod_crmapi reads them itself, because
 * mod_dbd passes them on only with the first connection. */
typedef struct crmapi_dbd_t {
    const char *driver;         /* NULL: not set */
    const char *params;         /* NULL or "": not set */
    int persist;
    int min;
    int keep;
    int max;
    int exptime;
} crmapi_dbd_t;

/* A server's configuration. What is not set: crmapi_kind_t. */
typedef struct crmapi_config_t {
    int enabled;
    int read_limit;
    int limit_ceiling;
    int write_limit;
    int keys;                   /* CrmApiRateLimitKeys: main server only */
    int usage_interval;         /* seconds: main server only */
    const struct crmapi_store_t *store; /* NULL: none; main server only */
    int max_body;
    int named_statements;       /* crm_names_t */
    int refuse_unknown;
    int request_id_in_database;
    int keepalive_wait;         /* microseconds */
    int batches;
    apr_interval_time_t database_wait;
    apr_interval_time_t database_timeout;
    const char *key_prefix;
    const char *workspace;
    const char *review_path;    /* "": off; NULL: not set */
    const char *unsubscribe_path;
    const char *intake_path;
    const char *intake_url;     /* NULL: taken from the request */
    apr_array_header_t *twilio; /* of crm_twilio_account_t, or NULL */
    const char *mcp_path;       /* as above */
    apr_array_header_t *mcp_origins; /* of const char *, or NULL */
    int mcp_tools;              /* a crm_mcp_tools_t */
    int intake_limit;
    int address_limit;
    int unknown_key_limit;
    int addresses;              /* CrmApiAddresses: main server only */
    int chat_polls;
    int waiters;
    crmapi_dbd_t dbd;
    /* Set after the configuration was read: */
    struct crmapi_pool_t *pool; /* NULL: it serves nothing from a database */
    crm_service_t service;
    crm_intake_site_t intake;
    crm_mcp_site_t mcp;
    const char *vhost;          /* name in metrics; NULL: it has no mounts */
    struct crmapi_counts_t *counts; /* in shared memory, or NULL */
} crmapi_config_t;

/* Return the configuration of S. */
static inline crmapi_config_t *crmapi_config(const server_rec *s)
{
    return ap_get_module_config(s->module_config, &crmapi_module);
}

/* Return whether CONFIG, after crmapi_config_complete(), has anything to
 * serve. */
static inline int crmapi_serves(const crmapi_config_t *config)
{
    return config->enabled == 1 || *config->review_path
           || *config->unsubscribe_path || *config->intake_path
           || *config->mcp_path;
}

/* Return a new configuration of S, in P, with nothing set. */
void *crmapi_config_create(apr_pool_t *p, server_rec *s);

/* Return, in P, the configuration of a vhost: OVER, its own, and what is not
 * set there from BASE, the main server's. */
void *crmapi_config_merge(apr_pool_t *p, void *base, void *over);

/* Set defaults for members of CONFIG that are not set. */
void crmapi_config_complete(crmapi_config_t *config);

#endif /* MOD_CRMAPI_CONFIG_H */
