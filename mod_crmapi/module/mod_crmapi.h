/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi.h: declarations shared by the files of the httpd module */
#ifndef MOD_CRMAPI_H
#define MOD_CRMAPI_H

#include <stddef.h>

/* apr_dbd.h first: mod_dbd.h does not include it. */
#include "apr_dbd.h"

#include "httpd.h"
#include "http_config.h"
#include "http_log.h"
#include "mod_dbd.h"

#include "crm_intake_site.h"
#include "crm_redis.h"
#include "crm_serve.h"

/* APR's bucket rings use APR_OFFSETOF, which dereferences a null pointer.
 * Compilers and sanitizers warn about that. */
#undef APR_OFFSETOF
#define APR_OFFSETOF(type, field) ((long)offsetof(type, field))

extern module AP_MODULE_DECLARE_DATA crmapi_module;

/* A connection pool of mod_dbd (mod_crmapi_pool.h). Servers share one as they
 * do in mod_dbd. */
typedef struct crmapi_pool_t crmapi_pool_t;

/* mod_dbd's directives for a server. mod_dbd.h gives them only with the first
 * connection, so mod_crmapi reads them, too. */
typedef struct crmapi_dbd_t {
    const char *driver;         /* NULL: not set */
    const char *params;         /* NULL or "": not set */
    int persist;
    int min;
    int keep;
    int max;
    int exptime;
} crmapi_dbd_t;

/* The store of CrmApiRateLimitStore. */
typedef struct crmapi_store_t {
    crm_redis_config_t redis;
    apr_interval_time_t timeout;
} crmapi_store_t;

/* A server's configuration. Numbers that are not set are -1. */
typedef struct crmapi_config_t {
    int enabled;
    int read_limit;
    int write_limit;
    int keys;                   /* CrmApiRateLimitKeys: main server only */
    const crmapi_store_t *store; /* NULL: none; main server only */
    int max_body;
    int named_statements;
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
    int intake_limit;
    int address_limit;
    int unknown_key_limit;
    int addresses;              /* CrmApiAddresses: main server only */
    int chat_polls;
    crmapi_dbd_t dbd;
    /* Made after the configuration has been read: */
    crmapi_pool_t *pool;        /* NULL: the server uses none of ours */
    crm_service_t service;
    crm_intake_site_t intake;
    const char *vhost;          /* name in metrics; NULL: it serves nothing */
    struct crmapi_counts_t *counts; /* in shared memory; NULL likewise */
} crmapi_config_t;

/* The number of mounts. */
#define CRMAPI_MOUNTS 4

/* A mount, which each server may have. */
typedef struct crmapi_mount_t {
    const char *name;           /* in metrics */
    const crm_mount_t *mount;
    /* Return its path on the server of CONFIG, "" if it is off there. */
    const char *(*path)(const crmapi_config_t *config);
    int json_errors;            /* errors from httpd itself are JSON, too
                                   (contract 5.5) */
} crmapi_mount_t;

/* The state of a request, created once it is known to be for a mount. */
typedef struct crmapi_request_t {
    request_rec *r;
    crmapi_config_t *config;
    const crmapi_mount_t *mount; /* set when CLAIMED */
    const char *path;           /* below the mount, in R's uri */
    const char *id;             /* X-Request-Id */
    int reached;                /* no rewrite rule has moved it to another
                                   path */
    int claimed;                /* the module serves it */
    ap_dbd_t *dbd;              /* the connection held, or NULL */
    int dbd_failed;             /* the connection cannot be used */
    int no_wait;                /* fail rather than wait for a connection */
    int body_read;              /* the body was read to its end */
    int caught;                 /* status of an error response that httpd sent
                                   while the body was read, or 0 */
    crm_response_t response;
} crmapi_request_t;

/* Return the configuration of S. */
static inline crmapi_config_t *crmapi_config(const server_rec *s)
{
    return ap_get_module_config(s->module_config, &crmapi_module);
}

/* mod_crmapi_config.c */
extern const command_rec crmapi_commands[];
void *crmapi_config_create(apr_pool_t *p, server_rec *s);
void *crmapi_config_merge(apr_pool_t *p, void *base, void *over);
/* Set defaults for what is not set. */
void crmapi_config_complete(crmapi_config_t *config);
/* Return NULL, or an error if VALUE of the directive NAME is not the id or slug
 * of a workspace. */
const char *crmapi_check_workspace(const cmd_parms *cmd, const char *name,
                                   const char *value);

/* Return whether CONFIG, after crmapi_config_complete(), has anything to
 * serve. */
static inline int crmapi_serves(const crmapi_config_t *config)
{
    return config->enabled == 1 || *config->review_path
           || *config->unsubscribe_path || *config->intake_path;
}

/* mod_crmapi_mount.c */
/* Make the routes of all mounts, in PCONF. */
crm_error_t *crmapi_mounts_create(apr_pool_t *pconf);
/* Let this process answer all requests with 503. */
void crmapi_mounts_close(void);
/* Return the number of MOUNT, from 0. NULL, for requests that httpd refused
 * before their mount was known: that of the API. */
int crmapi_mount_number(const crmapi_mount_t *mount);
const char *crmapi_mount_name(int number);
/* Return the number of the first route of the mount NUMBER, which stands for
 * requests without a route; the others follow in the order of
 * crm_path_number(). For CRMAPI_MOUNTS: the number of all routes. */
int crmapi_mount_first(int number);
/* Return the name of the route NUMBER for logs and metrics. */
const char *crmapi_route_name(int number);
/* Return the mount that R is for at this stage of its processing, NULL if there
 * is none. If the request line could not be parsed, its text is used. *REST_P =
 * the path below the mount. */
const crmapi_mount_t *crmapi_mount_find(const char **rest_p,
                                        const request_rec *r);

/* mod_crmapi_request.c */
void crmapi_request_register(void);
/* Return whether errors from httpd itself are sent to R as JSON. */
int crmapi_has_json_errors(const request_rec *r);
/* Return the state of R, NULL if it has none. */
crmapi_request_t *crmapi_request_find(const request_rec *r);
/* Return the state of R. Create it if R has none. */
crmapi_request_t *crmapi_request_begin(request_rec *r);

/* mod_crmapi_handler.c */
int crmapi_handler(request_rec *r);
int crmapi_log_transaction(request_rec *r);
/* Set the headers common to all responses (contract 5.4) and those of REQUEST's
 * response, for a body of LEN bytes. */
void crmapi_set_headers(crmapi_request_t *request, apr_size_t len);
/* The implementation of crm_service_t.gone. */
int crmapi_gone(void *baton);

/* mod_crmapi_keepalive.c */
void crmapi_keepalive_register(void);
/* Let the thread that serves R wait up to WAIT microseconds for the next request
 * of the connection before an asynchronous MPM gets the connection back. */
void crmapi_keepalive(request_rec *r, apr_interval_time_t wait);

/* mod_crmapi_body.c */
void crmapi_body_register(void);
crm_error_t *crmapi_read_body(const char **data_p, apr_size_t *len_p,
                              apr_size_t max, void *baton, apr_pool_t *pool);
/* Close the connection after the response if the rest of the request's body is
 * too large to be read. Return whether a short rest is still to be read. */
int crmapi_spare_body(const crmapi_request_t *request);

/* mod_crmapi_dbd.c */
void crmapi_dbd_register(void);
/* The implementations of crm_service_t's acquire, release and crowd. */
crm_error_t *crmapi_acquire(crm_conn_t **conn_p, apr_time_t since, void *baton,
                            apr_pool_t *p);
void crmapi_release(crm_conn_t *conn, void *baton);
int crmapi_crowd(int change, void *baton);

/* mod_crmapi_health.c */
/* The handler "crmapi-health" (contract 15.2). */
int crmapi_health_handler(request_rec *r);

/* mod_crmapi_batch.c */
/* Give the servers from MAIN_SERVER on their batchers, in PCHILD. */
void crmapi_batches_create(server_rec *main_server, apr_pool_t *pchild);

/* mod_crmapi_pool.c */
/* Forget the pools of the configuration before. */
void crmapi_pools_clear(apr_pool_t *pconf);
/* Set CONFIG's pool and realm. A new pool is allocated in PCONF. */
void crmapi_pool_make(crmapi_config_t *config, apr_pool_t *pconf);
/* Set CONFIG's pool to one that was made for another server, or to NULL. */
void crmapi_pool_join(crmapi_config_t *config);
/* Share with all processes what was logged about the pools. All must have been
 * made. Return NULL or an error text allocated in PTEMP. */
const char *crmapi_pools_share(apr_pool_t *pconf, apr_pool_t *ptemp);
/* Log what the configuration lacks, once for each pool. */
void crmapi_pools_complain(const server_rec *main_server, apr_pool_t *ptemp);
/* Make the locks of this process, allocated in PCHILD. */
apr_status_t crmapi_pools_create(apr_pool_t *pchild);
/* Set *USED_P to the connections in use, *MAX_P to their limit, over all pools
 * of this process. */
void crmapi_pools_stats(int *used_p, int *max_p);

/* mod_crmapi_shm.c */
typedef struct crmapi_shm_t {
    crm_limit_t *limit;         /* for keys and intake tokens */
    crm_limit_t *addresses;     /* NULL if no server limits addresses */
    crm_store_shared_t *store;  /* state of the store, also without one */
    crm_notifier_t *notifier;   /* NULL if no server has intake */
} crmapi_shm_t;
/* Create the shared memory for the servers from MAIN_SERVER on, or reuse it
 * after a restart. Return NULL or an error. */
const char *crmapi_shm_create(crmapi_shm_t *shm, server_rec *main_server,
                              apr_pool_t *ptemp);

/* mod_crmapi_store.c */
/* CrmApiRateLimitStore */
const char *crmapi_set_store(cmd_parms *cmd, void *dir, int argc,
                             char *const argv[]);
/* Set *STORE_P to the store of MAIN_SERVER's configuration, allocated in PCONF,
 * or NULL if it has none. Children connect by crm_store_open(). Return NULL or
 * an error. */
const char *crmapi_store_create(crm_store_t **store_p,
                                server_rec *main_server,
                                crm_store_shared_t *shared, apr_pool_t *pconf);

/* mod_crmapi_error.c */
void crmapi_error_register(void);
/* Disable (ON 1) or restore (ON 0) the site's ErrorDocuments for R, whose
 * errors are JSON. */
void crmapi_error_shield(request_rec *r, int on);

/* mod_crmapi_intake.c: directives */
/* Set *SECRET_P to the first line of the file PATH, which must not be readable
 * by others. Return NULL or an error, which does not tell the secret. */
const char *crmapi_read_secret(const char **secret_p, const char *path,
                               apr_pool_t *p);
const char *crmapi_set_twilio(cmd_parms *cmd, void *dir, const char *sid,
                              const char *path, const char *workspace);
const char *crmapi_set_intake_url(cmd_parms *cmd, void *dir,
                                  const char *value);

/* mod_crmapi_trace.c */
/* Return the value of R's header traceparent in R's pool: its version, trace id,
 * parent id and flags, 55 characters. NULL if it has none that is valid. */
const char *crmapi_trace(const request_rec *r);

/* mod_crmapi_scrape.c */
/* The handler "crmapi-metrics" (contract 15.1). */
int crmapi_metrics_handler(request_rec *r);

/* mod_crmapi_status.c */
/* The state that was logged last for a subject. In shared memory, initially
 * zero. */
typedef struct crmapi_news_t {
    apr_uint32_t state;
    apr_int64_t at;             /* time of the log message; 0: never */
} crmapi_news_t;
/* Return whether STATE is to be logged for the subject of NEWS: once over all
 * processes when it differs from the previous state (initially 0), and again
 * every AGAIN microseconds (0: never). */
int crmapi_status_news(crmapi_news_t *news, apr_uint32_t state,
                       apr_interval_time_t again);
void crmapi_status_register(apr_pool_t *p);
/* Let the section of mod_status and the metrics read SHM. */
void crmapi_status_init(const crmapi_shm_t *shm);
/* Set *KEYS and *ADDRESSES to the statistics of the rate limits. */
void crmapi_status_limits(crm_limit_stats_t *keys,
                          crm_limit_stats_t *addresses);
/* Return the state of the store. */
const crm_store_shared_t *crmapi_status_store(void);

#endif /* MOD_CRMAPI_H */
