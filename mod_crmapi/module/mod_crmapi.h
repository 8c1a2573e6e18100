/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi.h: what the files of the httpd module share */
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
#include "crm_serve.h"

/* APR's rings of buckets use its own offsetof(), which goes by way of a null
 * pointer; compilers and sanitizers complain of that. */
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

/* A server's configuration. Numbers are -1 where nothing was set. */
typedef struct crmapi_config_t {
    int enabled;
    int read_limit;
    int write_limit;
    int keys;                   /* CrmApiRateLimitKeys: of the main server */
    int max_body;
    int named_statements;
    int request_id_in_database;
    apr_interval_time_t database_wait;
    apr_interval_time_t database_timeout;
    const char *key_prefix;
    const char *workspace;
    const char *review_path;    /* "": no such page; NULL: not set */
    const char *unsubscribe_path;
    const char *intake_path;
    const char *intake_url;     /* NULL: by the request */
    apr_array_header_t *twilio; /* of crm_twilio_account_t, or NULL */
    int intake_limit;
    int address_limit;
    int unknown_key_limit;
    int addresses;              /* CrmApiAddresses: of the main server */
    int chat_polls;
    crmapi_dbd_t dbd;
    /* Made after the configuration has been read: */
    crmapi_pool_t *pool;        /* NULL: the server uses none of ours */
    crm_service_t service;
    crm_intake_site_t intake;
} crmapi_config_t;

/* A mount of every server. */
typedef struct crmapi_mount_t {
    const crm_mount_t *mount;
    /* Return its path on the server of CONFIG; "": it is not served there. */
    const char *(*path)(const crmapi_config_t *config);
    int json_errors;            /* errors that httpd itself sends are JSON, too
                                   (contract 5.5) */
} crmapi_mount_t;

/* A request, from when it is known to be for a mount. */
typedef struct crmapi_request_t {
    request_rec *r;
    crmapi_config_t *config;
    const crmapi_mount_t *mount; /* when it is claimed */
    const char *path;           /* below the mount, in R's uri */
    const char *id;             /* X-Request-Id */
    int reached;                /* no rewriting led it elsewhere */
    int claimed;                /* the module serves it */
    ap_dbd_t *dbd;              /* held at the moment, or NULL */
    int dbd_failed;             /* and of no use */
    int no_wait;                /* do without rather than wait */
    int body_read;              /* to its end */
    int caught;                 /* status httpd wanted to send while the body
                                   was read, or 0 */
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
/* Give what was not set its default. */
void crmapi_config_complete(crmapi_config_t *config);
/* Return NULL or why VALUE of the directive NAME is no workspace's id or slug. */
const char *crmapi_check_workspace(const cmd_parms *cmd, const char *name,
                                   const char *value);

/* Return whether CONFIG, a complete one, has anything to serve. */
static inline int crmapi_serves(const crmapi_config_t *config)
{
    return config->enabled == 1 || *config->review_path
           || *config->unsubscribe_path || *config->intake_path;
}

/* mod_crmapi_mount.c */
/* Return the mount that R is for, by what is known of it at this time (where
 * the request line could not be parsed, by its text), NULL if there is none.
 * *REST_P = the path below the mount. */
const crmapi_mount_t *crmapi_mount_find(const char **rest_p,
                                        const request_rec *r);

/* mod_crmapi_request.c */
void crmapi_request_register(void);
/* Return whether errors that httpd itself sends to R are JSON. */
int crmapi_has_json_errors(const request_rec *r);
/* Return what is known of R, NULL if no mount was found for it so far. */
crmapi_request_t *crmapi_request_find(const request_rec *r);
/* Return what is known of R; begin to know it. */
crmapi_request_t *crmapi_request_begin(request_rec *r);

/* mod_crmapi_handler.c */
int crmapi_handler(request_rec *r);
int crmapi_log_transaction(request_rec *r);
/* Set the headers that every response has (contract 5.4) and those of
 * REQUEST's response, for a body of LEN bytes. */
void crmapi_set_headers(crmapi_request_t *request, apr_size_t len);
/* The service's function gone(). */
int crmapi_gone(void *baton);

/* mod_crmapi_body.c */
void crmapi_body_register(void);
crm_error_t *crmapi_read_body(const char **data_p, apr_size_t *len_p,
                              apr_size_t max, void *baton, apr_pool_t *pool);
/* Do not read the rest of a large body that was not wanted: close instead.
 * Return whether a short one is still to be read. */
int crmapi_spare_body(const crmapi_request_t *request);

/* mod_crmapi_dbd.c */
void crmapi_dbd_register(void);
crm_error_t *crmapi_acquire(crm_conn_t **conn_p, void *baton, apr_pool_t *p);
void crmapi_release(crm_conn_t *conn, void *baton);

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
    crm_limit_t *limit;         /* of keys and intake tokens */
    crm_limit_t *addresses;     /* NULL where no server counts any */
    crm_notifier_t *notifier;           /* NULL where no server has intake */
} crmapi_shm_t;
/* Make, or find again, the shared memory for the servers from MAIN_SERVER on.
 * Return NULL or what is wrong. */
const char *crmapi_shm_create(crmapi_shm_t *shm, server_rec *main_server,
                              apr_pool_t *ptemp);

/* mod_crmapi_error.c */
void crmapi_error_register(void);
/* Keep the site's ErrorDocuments from R's errors, which are JSON; ON 0: let
 * them work again. */
void crmapi_error_shield(request_rec *r, int on);

/* mod_crmapi_intake.c: directives */
const char *crmapi_set_twilio(cmd_parms *cmd, void *dir, const char *sid,
                              const char *path, const char *workspace);
const char *crmapi_set_intake_url(cmd_parms *cmd, void *dir,
                                  const char *value);

/* mod_crmapi_status.c: what all processes share beside the limits */
/* Count an answer with STATUS in this host's metrics. */
void crmapi_status_count(int status, apr_int64_t db_us);
/* Count a request that found no connection in time. */
void crmapi_status_busy(void);
/* What was logged last of a thing; in shared memory, all zeros at the start. */
typedef struct crmapi_news_t {
    apr_uint32_t state;
    apr_int64_t at;             /* when; 0: never */
} crmapi_news_t;
/* May it be logged that the thing of NEWS is in STATE? Once over all processes
 * when it was in another one before (0 at the start), and again where AGAIN
 * (microseconds, 0: never) have passed since. */
int crmapi_status_news(crmapi_news_t *news, apr_uint32_t state,
                       apr_interval_time_t again);
void crmapi_status_register(apr_pool_t *p);
/* Share metrics with all processes. Return NULL or what is wrong. */
const char *crmapi_status_init(server_rec *main_server,
                               const crmapi_shm_t *shm, apr_pool_t *ptemp);

#endif /* MOD_CRMAPI_H */
