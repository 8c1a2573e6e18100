/* SPDX-License-Identifier: Apache-2.0 */
/* crm_request.h: a request, its response, and the service of a vhost */
#ifndef CRM_REQUEST_H
#define CRM_REQUEST_H

#include "apr_pools.h"
#include "apr_tables.h"

#include "crm_batch.h"
#include "crm_buf.h"
#include "crm_db_conn.h"
#include "crm_error.h"
#include "crm_flight.h"
#include "crm_limit.h"
#include "crm_log.h"
#include "crm_roll.h"
#include "crm_store.h"

/* The configuration of a vhost. */
typedef struct crm_settings_t {
    const char *key_prefix;     /* contract 1.2 */
    const char *workspace;      /* id or slug of the only workspace served, or
                                   NULL */
    apr_uint32_t realm;         /* identifies the database in shared memory */
    /* Requests per minute. 0: unlimited. */
    apr_uint32_t limits[CRM_LIMIT_CLASSES]; /* for each API key */
    apr_uint32_t limit_ceiling; /* the highest limit that a key may have of its
                                   own */
    apr_uint32_t token_limit;   /* for each intake token */
    apr_uint32_t address_limit; /* for each address, for requests without proven
                                   rights */
    apr_uint32_t unknown_key_limit; /* look-ups of unknown keys and tokens, for
                                       each address (contract 2.4) */
    int refuse_unknown;         /* unknown query parameters are 422 (contract
                                   7.1) */
    int request_id_in_database; /* set application_name to the request's id */
    apr_interval_time_t database_wait; /* time limit of the wait for a
                                          connection */
    int clients_max;            /* how many threads of the process may wait for
                                   their client's next request while another
                                   thread answers for them */
} crm_settings_t;

/* What all processes of the host know of keys that are not in their table. */
typedef struct crm_keys_t {
    crm_flights_t *flights;     /* look-ups under way */
    crm_roll_t *roll;           /* which keys exist, in all databases */
    crm_roll_state_t *state;    /* of the roll of the vhost's database */
} crm_keys_t;

/* The configuration and functions of a vhost. BATON is the request's. */
typedef struct crm_service_t {
    crm_settings_t settings;
    crm_limit_t *limit;         /* keys and tokens, in shared memory */
    crm_store_t *store;         /* their budgets over all hosts; NULL: each host
                                   has its own */
    crm_limit_t *addresses;     /* client addresses, in shared memory; NULL: not
                                   limited */
    const crm_keys_t *keys;     /* NULL: look-ups are neither shared nor
                                   charged */
    const void *site;           /* configuration that one mount needs */
    const void *mcp;            /* crm_mcp_site_t, for another one */
    crm_batcher_t *batcher;     /* NULL: requests share no statements */
    /* Set *CONN_P to a connection to the vhost's database, for this thread
     * until release(). The time limit of the wait for it counts from SINCE.
     * Errors: CRM_E_UNAVAILABLE. */
    crm_error_t *(*acquire)(crm_conn_t **conn_p, apr_time_t since, void *baton,
                            apr_pool_t *pool);
    void (*release)(crm_conn_t *conn, void *baton);
    /* Return 1 if the vhost's database is distributed (crm_schema_t), 0 if it
     * is not, -1 before the first connection to it. */
    int (*distributed)(void *baton);
    /* See crm_conn_source_t. NULL if there is no BATCHER. */
    int (*add_waiting)(int change, void *baton);
    /* Set *DATA_P and *LEN_P to the request's body, in POOL. It has at most MAX
     * bytes (0: the vhost's limit). Errors: CRM_E_PAYLOAD_TOO_LARGE,
     * CRM_E_BAD_REQUEST (it ended early), CRM_E_REQUEST_TIMEOUT. */
    crm_error_t *(*read_body)(const char **data_p, apr_size_t *len_p,
                              apr_size_t max, void *baton, apr_pool_t *pool);
    /* Return whether the site decodes bodies itself (mod_deflate): of what READ_BODY
     * has decoded, the Content-Encoding does not tell any more. */
    int (*decodes)(void *baton);
    /* Return whether the client has closed the connection. */
    int (*aborted)(void *baton);
    /* Return the client's connection if another thread may send the answer
     * (crm_conn_source_t.client), else -1. */
    int (*client)(void *baton);
    /* Send the response that was made so far, in any thread, unless that could
     * block. */
    crm_answered_t (*send)(void *baton);
    /* Note what has happened in WORKSPACE so far, for a request that may wait for
     * more: messages of VISITOR's chats, or anything (NULL). Return 0 if it may
     * not. NULL: no request may. */
    int (*watch)(const char *workspace_id, const char *visitor, void *baton);
    /* Return how many of MOST requests with a place may wait in this process: less
     * than MOST if each needs a thread, as this one does. NULL: MOST. */
    int (*threads)(int most, void *baton);
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
    const char *trace;          /* crm_trace_read() of its traceparent, or
                                   NULL */
    const apr_table_t *headers;
    int expects_continue;       /* "Expect: 100-continue": the client waits for
                                   the server before it sends the body */
} crm_request_t;

/* The result of looking up a key or token that is not in shared memory. */
typedef enum crm_look_up_t {
    CRM_LOOK_UP_NONE,           /* there was no look-up */
    CRM_LOOK_UP_REFUSED,        /* the address has no budget left */
    CRM_LOOK_UP_FAILED,         /* the query failed */
    CRM_LOOK_UP_UNKNOWN,
    CRM_LOOK_UP_KNOWN,
    CRM_LOOK_UPS
} crm_look_up_t;

/* The rest of a body, which is not held in memory. */
typedef struct crm_stream_t {
    apr_off_t left;             /* bytes that were not read */
    /* Set *DATA_P to the next *LEN_P bytes of STREAM, in POOL, and subtract them
     * from LEFT. Called after crm_serve() has returned, until nothing is left;
     * what it takes from the service it gives back before it returns. An error
     * ends the response; before the first part was sent, it is the response. */
    crm_error_t *(*read)(const char **data_p, apr_size_t *len_p,
                         struct crm_stream_t *stream, apr_pool_t *pool);
    void *baton;                /* for READ */
} crm_stream_t;

/* A response. The module adds the headers common to all responses. */
typedef struct crm_response_t {
    int status;
    apr_table_t *headers;       /* rate limits, Location, Allow, ... */
    const char *content_type;   /* type of the body; NULL: application/json */
    crm_buf_t body;             /* empty: no body */
    crm_stream_t *stream;       /* what follows BODY, or NULL */
    const char *log;            /* a line for error_log without secrets, or
                                   NULL */
    crm_level_t level;          /* of LOG */
    crm_outage_t outage;        /* which one LOG tells of */
    const char *workspace_id;   /* for the access log; NULL if unknown */
    const char *key_id;
    const char *route;          /* its name, "GET /contacts/{id}"; NULL: none
                                   matches */
    int route_number;           /* crm_path_number() of it; 0: none matches */
    crm_look_up_t look_up;
    apr_int64_t db_us;          /* microseconds spent on the database, including
                                   the wait for a connection */
    int batched;                /* number of requests in the shared statement
                                   that this request sent; 0: it sent none */
    int touch;                  /* call crm_touch() after the response */
    int sent;                   /* it was sent by crm_service_t.send() */
    apr_interval_time_t idle;   /* time since then, in microseconds */
    apr_time_t wait_until;      /* 0: the client does not wait */
    int placed;                 /* the handler has counted it among those that
                                   wait */
    int waits;                  /* there is nothing yet: crm_serve_again() when
                                   something has happened, and at WAIT_UNTIL */
    struct crm_call_t *call;    /* for crm_serve_again() */
} crm_response_t;

/* Return the value of the header NAME of REQUEST, NULL if it is absent. */
static inline const char *crm_request_header(const crm_request_t *request,
                                             const char *name)
{
    return apr_table_get(request->headers, name);
}

#endif /* CRM_REQUEST_H */
