/* SPDX-License-Identifier: Apache-2.0 */
/* crm_intake_site.h: what channels call over HTTP, from a request's parts to
 * its answer */
#ifndef CRM_INTAKE_SITE_H
#define CRM_INTAKE_SITE_H

#include "crm_api.h"
#include "crm_bell.h"

/* Where intake lives unless the configuration says otherwise. */
#define CRM_INTAKE_PATH "/crmapi/intake/v1/"

/* An account of Twilio's whose webhooks are taken (CrmApiTwilio). */
typedef struct crm_twilio_account_t {
    const char *sid;            /* "AC..." */
    const char *token;          /* what its webhooks are signed with */
    const char *workspace;      /* id or slug whose agents it may reach; NULL:
                                   those of the vhost's workspace, or all */
} crm_twilio_account_t;

/* What a vhost has configured for intake. */
typedef struct crm_intake_site_t {
    const char *base;           /* path, with a slash at both ends */
    const char *public_url;     /* "https://crm.example.com", as callers know
                                   this host; NULL: by the request */
    const apr_array_header_t *twilio; /* of crm_twilio_account_t; or NULL */
    apr_uint32_t token_limit;   /* requests a minute for each intake token;
                                   0: unlimited */
    apr_uint32_t address_limit; /* posts a minute for each address of forms and
                                   chats; 0: unlimited */
    crm_bell_t *bell;           /* rings for conversations, in shared memory */
    int pollers;                /* long polls that may wait at once in this
                                   process */
} crm_intake_site_t;

/* The parts of a request. Strings live as long as POOL. */
typedef struct crm_intake_request_t {
    apr_pool_t *pool;
    void *baton;                /* given to the service's functions */
    const char *method;         /* as sent: "POST" */
    const char *path;           /* decoded, below the base: "forms/0198..." */
    const char *query;          /* undecoded, without '?', or NULL */
    const char *scheme;         /* "https" */
    const char *address;        /* the client's, as text: "203.0.113.7" */
    const char *target;         /* path and query as sent, undecoded */
    const char *request_id;     /* never NULL */
    /* headers' values, or NULL */
    const char *authorization;
    const char *content_type;
    const char *host;
    const char *origin;
    const char *referer;
    const char *fetch_site;     /* Sec-Fetch-Site */
    const char *twilio_signature; /* X-Twilio-Signature */
    const char *if_none_match;
    int (*gone)(void *baton);   /* whether the client has hung up meanwhile */
} crm_intake_request_t;

/* Serve REQUEST at SITE with SERVICE (its settings, limit, acquire, release
 * and read_body) and fill *RESPONSE, all in REQUEST->pool: status, all headers
 * but Content-Length, Content-Type among them, body, and for the log what
 * went wrong here, never a token. */
void crm_intake_serve(crm_response_t *response, const crm_service_t *service,
                      const crm_intake_site_t *site,
                      const crm_intake_request_t *request);

#endif /* CRM_INTAKE_SITE_H */
