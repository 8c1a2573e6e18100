/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi.h: what the files of the httpd module share */
#ifndef MOD_CRMAPI_H
#define MOD_CRMAPI_H

/* apr_dbd.h first: mod_dbd.h does not include it. */
#include "apr_dbd.h"

#include "httpd.h"
#include "http_config.h"
#include "http_log.h"
#include "mod_dbd.h"

#include "crm_api.h"

extern module AP_MODULE_DECLARE_DATA crmapi_module;

/* Connections of this process to one database: how many may be in use, and
 * who waits (mod_dbd would wait for ever). */
typedef struct crmapi_gate_t crmapi_gate_t;

/* What mod_dbd has been told, read from the configuration's tree. */
typedef struct crmapi_database_t {
    const char *driver;         /* DBDriver, or NULL */
    apr_uint32_t realm;         /* of DBDriver and DBDParams */
    int max;                    /* DBDMax */
} crmapi_database_t;

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
    const char *key_prefix;
    const char *workspace;
    /* Made after the configuration has been read: */
    crmapi_database_t database;
    const char *missing;        /* why nothing can be served, or NULL */
    crm_service_t service;
    /* Made in each child: */
    crmapi_gate_t *gate;
    int ready;                  /* the schema is the one expected */
    apr_time_t complained;      /* when it was said that it is not */
} crmapi_config_t;

/* A request under way. */
typedef struct crmapi_request_t {
    request_rec *r;
    crmapi_config_t *config;
    ap_dbd_t *dbd;              /* held at the moment, or NULL */
    int no_wait;                /* do without rather than wait */
    int body_read;              /* to its end */
    crm_response_t response;
} crmapi_request_t;

/* Return the configuration of S. */
static inline crmapi_config_t *crmapi_config(const server_rec *s)
{
    return ap_get_module_config(s->module_config, &crmapi_module);
}

/* Return whether PATH, decoded or not, is CRM_API_BASE or below it. */
int crmapi_is_ours(const char *path);

/* mod_crmapi_config.c */
extern const command_rec crmapi_commands[];
void *crmapi_config_create(apr_pool_t *p, server_rec *s);
void *crmapi_config_merge(apr_pool_t *p, void *base, void *over);
/* Give what was not set its default. */
void crmapi_config_complete(crmapi_config_t *config);

/* mod_crmapi_handler.c */
int crmapi_handler(request_rec *r);
int crmapi_log_transaction(request_rec *r);
/* Set *HEADERS that every answer under CRM_API_BASE has (contract 5.4). */
void crmapi_set_headers(request_rec *r, apr_table_t *headers);
/* Return the request's id, made and noted at the first call. */
const char *crmapi_request_id(request_rec *r);

/* mod_crmapi_body.c */
crm_error_t *crmapi_read_body(const char **data_p, apr_size_t *len_p,
                              void *baton, apr_pool_t *pool);
/* Do not read the rest of a large body that was not wanted: close instead. */
void crmapi_spare_body(const crmapi_request_t *request);

/* mod_crmapi_dbd.c */
/* Set what mod_dbd has been told for server S. */
void crmapi_database_find(crmapi_database_t *database, const server_rec *s,
                          apr_pool_t *pool);
/* Make the gates of all servers in this process. */
void crmapi_gates_create(apr_pool_t *pchild, server_rec *main_server);
crm_error_t *crmapi_acquire(crm_conn_t **conn_p, void *baton,
                            apr_pool_t *pool);
void crmapi_release(crm_conn_t *conn, void *baton);
/* Set connections in use and the most that may be, over all of this process's
 * databases. */
void crmapi_gates_stats(int *used_p, int *max_p);

/* mod_crmapi_shm.c */
/* Make, or find again, the shared memory for the servers from MAIN_SERVER on.
 * Return NULL or what is wrong. */
const char *crmapi_shm_create(crm_limit_t **limit_p, server_rec *main_server,
                              apr_pool_t *ptemp);

/* mod_crmapi_error.c */
void crmapi_error_register(void);
void crmapi_insert_error_filter(request_rec *r);
void crmapi_insert_filter(request_rec *r);

/* mod_crmapi_status.c */
/* Count an answer with STATUS in this host's metrics. */
void crmapi_status_count(int status, apr_int64_t db_us);
void crmapi_status_register(apr_pool_t *p);
/* Share metrics with all processes. */
void crmapi_status_init(server_rec *main_server, crm_limit_t *limit);

#endif /* MOD_CRMAPI_H */
