/* SPDX-License-Identifier: Apache-2.0 */
/* crm_request.h: a request, its response, and what a vhost serves it with */
#ifndef CRM_REQUEST_H
#define CRM_REQUEST_H

#include "apr_pools.h"
#include "apr_tables.h"

#include "crm_buf.h"
#include "crm_db.h"
#include "crm_error.h"
#include "crm_limit.h"
#include "crm_log.h"

/* The configuration of a vhost. */
typedef struct crm_settings_t {
    const char *key_prefix;     /* contract 1.2 */
    const char *workspace;      /* id or slug this vhost is bound to, or NULL */
    apr_uint32_t realm;         /* tells databases apart in shared memory */
    /* Requests a minute; 0: unlimited. */
    apr_uint32_t limits[CRM_LIMIT_CLASSES]; /* for each API key */
    apr_uint32_t token_limit;   /* for each intake token */
    apr_uint32_t address_limit; /* for each address, without proven rights */
    apr_uint32_t unknown_key_limit; /* look-ups of unknown keys and tokens for
                                   each address (contract 2.4) */
    int request_id_in_database; /* show it as application_name */
} crm_settings_t;

/* What a vhost serves requests with. BATON is the request's. */
typedef struct crm_service_t {
    crm_settings_t settings;
    crm_limit_t *limit;         /* keys and tokens, in shared memory */
    crm_limit_t *addresses;     /* client addresses, likewise; NULL: they are
                                   not counted */
    const void *site;           /* configuration that only a mount knows */
    /* Set *CONN_P to a connection to the vhost's database. It is this thread's
     * until release(). Errors: CRM_E_UNAVAILABLE. */
    crm_error_t *(*acquire)(crm_conn_t **conn_p, void *baton,
                            apr_pool_t *pool);
    void (*release)(crm_conn_t *conn, void *baton);
    /* Set *DATA_P, *LEN_P to the request's body, in POOL: at most MAX bytes
     * (0: as many as the vhost allows). Errors: CRM_E_PAYLOAD_TOO_LARGE,
     * CRM_E_BAD_REQUEST (it ended early), CRM_E_REQUEST_TIMEOUT. */
    crm_error_t *(*read_body)(const char **data_p, apr_size_t *len_p,
                              apr_size_t max, void *baton, apr_pool_t *pool);
    /* Return whether the client has closed the connection or this process is
     * about to end. */
    int (*gone)(void *baton);
} crm_service_t;

/* A request. Strings live as long as POOL. */
typedef struct crm_request_t {
    apr_pool_t *pool;
    void *baton;                /* for the service's functions */
    const char *method;         /* as sent: "GET" */
    const char *path;           /* decoded, below the mount: "/contacts" */
    const char *query;          /* undecoded, without '?', or NULL */
    const char *target;         /* path and query as sent, undecoded */
    const char *scheme;         /* "https" */
    const char *address;        /* the client's, as text: "203.0.113.7" */
    const char *request_id;     /* never NULL */
    const apr_table_t *headers;
    int expects_continue;       /* "Expect: 100-continue": the client sends its
                                   body when the server asks for it */
} crm_request_t;

/* A response. The module adds the headers that every response has. */
typedef struct crm_response_t {
    int status;
    apr_table_t *headers;       /* rate limits, Location, Allow, ... */
    const char *content_type;   /* of a body; NULL: application/json */
    crm_buf_t body;             /* len 0: none */
    const char *log;            /* a line for error_log, or NULL; no secrets */
    crm_level_t level;          /* of LOG */
    const char *workspace_id;   /* for the access log; NULL where unknown */
    const char *key_id;
    const char *route;          /* "GET /contacts/{id}"; NULL: no such route */
    apr_int64_t db_us;          /* time spent on the database, waiting for a
                                   connection included */
    int touch;                  /* crm_access_touch() is due */
} crm_response_t;

/* Return the value of the header NAME of REQUEST, NULL if it has none. */
static inline const char *crm_request_header(const crm_request_t *request,
                                             const char *name)
{
    return apr_table_get(request->headers, name);
}

#endif /* CRM_REQUEST_H */
