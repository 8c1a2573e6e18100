/* SPDX-License-Identifier: Apache-2.0 */
/* crm_api.h: a request of the API, from its parts to its answer */
#ifndef CRM_API_H
#define CRM_API_H

#include "apr_pools.h"
#include "apr_tables.h"

#include "crm_buf.h"
#include "crm_db.h"
#include "crm_error.h"
#include "crm_limit.h"
#include "crm_log.h"
#include "crm_resource.h"

/* Where the API lives below the host's root. */
#define CRM_API_BASE "/api/v1"

/* What a vhost has configured. */
typedef struct crm_settings_t {
    const char *key_prefix;     /* contract 1.2 */
    const char *workspace;      /* id or slug this vhost is bound to, or NULL */
    apr_uint32_t limits[CRM_LIMIT_CLASSES]; /* a minute; 0: unlimited */
    apr_uint32_t realm;         /* tells databases apart in the key memory */
    apr_uint32_t unknown_key_limit; /* look-ups a minute for each address of
                                   keys that the memory does not know; 0:
                                   unlimited (contract 2.4) */
    int request_id_in_database; /* show it as application_name */
} crm_settings_t;

/* What a request is served with; made by the module, one per vhost. */
typedef struct crm_service_t {
    crm_settings_t settings;
    crm_limit_t *limit;         /* shared memory */
    crm_limit_t *addresses;     /* the same, of client addresses; NULL where
                                   none are counted */
    /* Set *CONN_P to a connection to the vhost's database that is this
     * thread's until release() is called. BATON is the request's. Errors:
     * CRM_E_UNAVAILABLE. */
    crm_error_t *(*acquire)(crm_conn_t **conn_p, void *baton,
                            apr_pool_t *pool);
    void (*release)(crm_conn_t *conn, void *baton);
    /* Set *DATA_P, *LEN_P to the request's body, in POOL. Errors:
     * CRM_E_PAYLOAD_TOO_LARGE, CRM_E_BAD_REQUEST (it broke off),
     * CRM_E_REQUEST_TIMEOUT. */
    crm_error_t *(*read_body)(const char **data_p, apr_size_t *len_p,
                              void *baton, apr_pool_t *pool);
} crm_service_t;

/* The parts of a request. Strings live as long as POOL. */
typedef struct crm_request_t {
    apr_pool_t *pool;
    void *baton;                /* given to the service's functions */
    const char *method;         /* as sent: "GET" */
    const char *path;           /* decoded, below CRM_API_BASE: "/contacts" */
    const char *query;          /* undecoded, without '?', or NULL */
    const char *authorization;  /* header's value, or NULL */
    const char *content_type;   /* header's value, or NULL */
    const char *prefer;         /* header's value, or NULL */
    const char *request_id;     /* never NULL */
    const char *address;        /* the client's, as text: "203.0.113.7" */
    int asks_first;             /* Expect: 100-continue: the body is not sent
                                   before it is wanted */
} crm_request_t;

/* An answer. Headers that every answer has (Content-Type of a body,
 * Cache-Control, X-Request-Id, X-Content-Type-Options) are the module's. */
typedef struct crm_response_t {
    int status;
    apr_table_t *headers;       /* rate limits, Location, Allow, ... */
    crm_buf_t body;             /* len 0: none */
    const char *log;            /* a line for error_log, or NULL */
    crm_level_t level;          /* of LOG */
    const char *workspace_id;   /* for the access log; NULL where unknown */
    const char *key_id;
    const char *route;          /* "GET /contacts/{id}" */
    apr_int64_t db_us;          /* time spent on the database, waiting for a
                                   connection included */
    int touch;                  /* crm_api_touch() is due after this answer */
} crm_response_t;

/* Serve RESOURCES from now on: build what is made from their tables once
 * (routes, statement texts, the OpenAPI document) in POOL, which must live as
 * long as requests are served. Call once in a process (in a child before its
 * threads start). Errors: those of crm_registry_init(). */
crm_error_t *crm_api_init(const crm_resource_t *const *resources,
                          apr_pool_t *pool);

/* Serve REQUEST with SERVICE and fill *RESPONSE, all in REQUEST->pool. Every
 * failure becomes an answer with the JSON envelope. Nothing of the answer may
 * be sent before this returns; the database has committed by then. */
void crm_api_serve(crm_response_t *response, const crm_service_t *service,
                   const crm_request_t *request);

/* Write into BODY the JSON envelope of ERROR (contract 5.5, 5.6). */
void crm_api_write_error(crm_buf_t *body, const crm_error_t *error);

/* Write into BODY the array DETAILS (of crm_detail_t) of contract 5.6. */
void crm_api_write_details(crm_buf_t *body,
                           const apr_array_header_t *details);

/* Write into BODY that item INDEX of several was refused because of DETAILS
 * (contract 10.2): {index, message, details}. */
void crm_api_write_refused(crm_buf_t *body, int index,
                           const apr_array_header_t *details);

/* Charge ADDRESS, a client's, for looking up in SERVICE's database a key or
 * token that the memory does not know (contract 2.4). Error:
 * CRM_E_RATE_LIMITED, in POOL. */
crm_error_t *crm_api_charge_look_up(const crm_service_t *service,
                                    const char *address, apr_pool_t *pool);

/* Record in the database, by way of SERVICE and BATON, that the key KEY_ID of
 * WORKSPACE_ID was used (contract 1.2). Called after the answer has been
 * sent, when its TOUCH was set. Failure is of no consequence. */
void crm_api_touch(const crm_service_t *service, void *baton,
                   const char *workspace_id, const char *key_id,
                   apr_pool_t *scratch_pool);

#endif /* CRM_API_H */
