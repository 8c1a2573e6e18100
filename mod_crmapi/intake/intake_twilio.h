/* SPDX-License-Identifier: Apache-2.0 */
/* intake_twilio.h: a webhook request of Twilio, and its routes */
#ifndef CRM_INTAKE_TWILIO_H
#define CRM_INTAKE_TWILIO_H

#include "crm_intake_site.h"

/* A webhook request that one of the site's accounts has signed. */
typedef struct crm_twilio_hook_t {
    crm_call_t *call;
    const apr_array_header_t *params;   /* of crm_query_param_t */
    const crm_twilio_account_t *account;
} crm_twilio_hook_t;

/* Return the first parameter NAME of HOOK, NULL if it is absent or empty. */
const char *crm_twilio_get(const crm_twilio_hook_t *hook, const char *name);

/* Return whether ADDRESS is one of WhatsApp ("whatsapp:+4930..."). */
int crm_twilio_is_whatsapp(const char *address);

/* Return the phone number in ADDRESS (may be NULL) without the prefix of its
 * channel ("whatsapp:+4930..."). NULL if it is not a phone number: a sender's
 * name, a client's name, or a hidden caller. */
const char *crm_twilio_phone(const char *address, apr_pool_t *pool);

/* Set *AGENT to the agent whose number is ADDRESS (may be NULL), among those
 * that HOOK's account may reach. Its workspace_id is NULL if there is none. */
crm_error_t *crm_twilio_agent(crm_intake_agent_t *agent,
                              const crm_twilio_hook_t *hook,
                              const char *address);

/* Return the workspace (id or slug) that HOOK's account may reach, NULL: any. */
const char *crm_twilio_workspace(const crm_twilio_hook_t *hook);

/* Return the error that no agent has the number ADDRESS (may be NULL). */
crm_error_t *crm_twilio_unknown_number(const crm_twilio_hook_t *hook,
                                       const char *address);

/* Return the error that HOOK lacks the parameter NAME. */
crm_error_t *crm_twilio_missing(const crm_twilio_hook_t *hook,
                                const char *name);

/* Respond to HOOK with TwiML that sends TEXT, or nothing if it is NULL. */
void crm_twilio_answer(const crm_twilio_hook_t *hook, const char *text);

/* Respond to HOOK with 204. */
void crm_twilio_done(const crm_twilio_hook_t *hook);

/* Store EVENT as verified, since Twilio has signed the request. */
crm_error_t *crm_twilio_take(crm_intake_result_t *result,
                             const crm_twilio_hook_t *hook,
                             const char *workspace_id,
                             crm_intake_event_t *event);

/* Store EVENT, an update of a message or conversation, as verified. If that is
 * unknown, do nothing. */
crm_error_t *crm_twilio_update(const crm_twilio_hook_t *hook,
                               const char *workspace_id,
                               crm_intake_event_t *event);

/* The routes of Twilio's webhooks. */
extern const crm_route_t crm_intake_twilio_routes[];

#endif /* CRM_INTAKE_TWILIO_H */
