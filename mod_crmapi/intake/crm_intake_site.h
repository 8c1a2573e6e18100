/* SPDX-License-Identifier: Apache-2.0 */
/* crm_intake_site.h: the mount of what channels call over HTTP */
#ifndef CRM_INTAKE_SITE_H
#define CRM_INTAKE_SITE_H

#include "crm_notifier.h"
#include "crm_intake.h"
#include "crm_serve.h"

/* Where intake lives unless the configuration says otherwise. */
#define CRM_INTAKE_PATH "/crmapi/intake/v1/"

/* An account of Twilio's whose webhooks are taken (CrmApiTwilio). */
typedef struct crm_twilio_account_t {
    const char *sid;            /* "AC..." */
    const char *token;          /* what its webhooks are signed with */
    const char *workspace;      /* id or slug whose agents it may reach; NULL:
                                   those of the vhost's workspace, or all */
} crm_twilio_account_t;

/* The configuration of a vhost: its service's SITE. */
typedef struct crm_intake_site_t {
    const char *base;           /* path, with a slash at both ends */
    const char *public_url;     /* "https://crm.example.com", as callers know
                                   this host; NULL: by the request */
    const apr_array_header_t *twilio; /* of crm_twilio_account_t; or NULL */
    crm_notifier_t *notifier;   /* of conversations, in shared memory */
    int pollers;                /* long polls that may wait at once in this
                                   process */
} crm_intake_site_t;

/* The routes of all channels. */
extern crm_mount_t crm_intake_mount;

/* The routes of each; the last has no method. */
extern const crm_route_t crm_intake_event_routes[];  /* intake_event.c */
extern const crm_route_t crm_intake_twilio_routes[]; /* intake_twilio.c */
extern const crm_route_t crm_intake_form_routes[];   /* intake_form.c */
extern const crm_route_t crm_intake_chat_routes[];   /* intake_chat.c */

/* Build the router in POOL. Call once in a process, before its threads. */
void crm_intake_init(apr_pool_t *pool);

/* Return the configuration of CALL's vhost. */
static inline const crm_intake_site_t *crm_intake_site(const crm_call_t *call)
{
    return call->service->site;
}

/* Take the COUNT EVENTS of WORKSPACE_ID as crm_intake() does, in its round
 * trip, and wake those who wait for their conversations. */
crm_error_t *crm_intake_take_all(crm_intake_result_t *results, int *known_p,
                                 crm_call_t *call, const char *workspace_id,
                                 const char *key_hash,
                                 const crm_intake_event_t *events, int count);

/* Take EVENT, which our own code has made, for WORKSPACE_ID:
 * crm_intake_tidy(), then as above. An event that is refused is an error,
 * CRM_E_VALIDATION with its field. */
crm_error_t *crm_intake_take(crm_intake_result_t *result, crm_call_t *call,
                             const char *workspace_id,
                             crm_intake_event_t *event);

/* Find the agent as crm_intake_agent() does, within WORKSPACE (NULL: the
 * vhost's, if it is bound to one). */
crm_error_t *crm_intake_find_agent(crm_intake_agent_t *agent, crm_call_t *call,
                                   const char *email, const char *phone,
                                   const char *workspace);

#endif /* CRM_INTAKE_SITE_H */
