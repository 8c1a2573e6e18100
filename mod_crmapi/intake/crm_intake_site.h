/* SPDX-License-Identifier: Apache-2.0 */
/* crm_intake_site.h: the mount of channel intake over HTTP */
#ifndef CRM_INTAKE_SITE_H
#define CRM_INTAKE_SITE_H

#include "crm_intake.h"
#include "crm_places.h"
#include "crm_serve.h"

/* The default path of intake. */
#define CRM_INTAKE_PATH "/crmapi/intake/v1/"

/* The condition that the workspace w is $2 (id or slug; null: any) and not held
 * (contract 14.2). WORKSPACE: SQL of its id; its parameter where it has one, because
 * a distributed database looks for that. */
#define CRM_INTAKE_SERVES(workspace) \
    "($2::text IS NULL OR w.id::text = lower($2::text) OR w.slug = $2::text)" \
    " AND NOT EXISTS (SELECT FROM crmapi.workspace_hold h" \
    " WHERE h.workspace_id = " workspace ")"

/* A Twilio account whose webhooks are accepted (CrmApiTwilio). */
typedef struct crm_twilio_account_t {
    const char *sid;            /* "AC..." */
    const char *token;          /* the key of its webhooks' signatures */
    const char *workspace;      /* id or slug of the workspace whose agents it
                                   may reach; NULL: that of the vhost, or all */
} crm_twilio_account_t;

/* The configuration of a vhost for intake: crm_service_t.site. */
typedef struct crm_intake_site_t {
    const char *public_url;     /* "https://crm.example.com", as seen by
                                   callers; NULL: taken from the request */
    const apr_array_header_t *twilio; /* of crm_twilio_account_t; or NULL */
    crm_places_t *places;       /* of chats that wait, in shared memory */
    int pollers;                /* maximum number of waiting long polls in this
                                   process */
} crm_intake_site_t;

/* The mount of all channels. */
extern crm_mount_t crm_intake_mount;

/* Build the router in POOL. Call once in each process, before its threads
 * start. */
void crm_intake_init(apr_pool_t *pool);

/* Return the configuration of CALL's vhost. */
static inline const crm_intake_site_t *crm_intake_site(const crm_call_t *call)
{
    return call->service->site;
}

/* Store BATCH by crm_intake(), in its round trip. */
crm_error_t *crm_intake_take_all(crm_intake_batch_t *batch, crm_call_t *call);

/* Store EVENT, which comes from an internal source, for WORKSPACE_ID:
 * crm_intake_tidy(), then as above. If EVENT is refused, the error is
 * CRM_E_VALIDATION with its field. */
crm_error_t *crm_intake_take(crm_intake_result_t *result, crm_call_t *call,
                             const char *workspace_id,
                             crm_intake_event_t *event);

/* Set *AGENT as crm_intake_agent() does, within WORKSPACE. If that is NULL:
 * within the vhost's workspace, or in all if the vhost is not bound to one. */
crm_error_t *crm_intake_find_agent(crm_intake_agent_t *agent, crm_call_t *call,
                                   const char *email, const char *phone,
                                   const char *workspace);

#endif /* CRM_INTAKE_SITE_H */
