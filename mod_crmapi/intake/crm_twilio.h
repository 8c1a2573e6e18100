/* SPDX-License-Identifier: Apache-2.0 */
/* crm_twilio.h: declarations shared by the files of Twilio's webhooks */
#ifndef CRM_TWILIO_H
#define CRM_TWILIO_H

#include "crm_intake_site.h"

/* ---- intake_twilio_sign.c ------------------------------------------------ */

/* The size of a signature as text, 20 bytes in base64, with its NUL. */
#define CRM_TWILIO_SIGNATURE_SIZE 29

/* Write to OUT the signature with the key TOKEN of a request to URL with PARAMS
 * (of crm_query_param_t), the decoded fields of its form. By Twilio's
 * "Validating Signatures from Twilio" it is base64(HMAC-SHA1(TOKEN, URL and all
 * names and values, sorted by name, then value, without duplicates)). */
void crm_twilio_sign(char out[CRM_TWILIO_SIGNATURE_SIZE], const char *token,
                     const char *url, const apr_array_header_t *params,
                     apr_pool_t *scratch_pool);

/* Return, in POOL, the absolute URL with the default port of its scheme added,
 * or without its port if it has one; NULL if URL is malformed. */
const char *crm_twilio_other_url(const char *url, apr_pool_t *pool);

/* Return whether SIGNATURE (may be NULL) is the signature with the key TOKEN of
 * a request to URL with PARAMS. URL is tried with and without a port, as
 * Twilio's own libraries do. The comparison takes constant time. */
int crm_twilio_signed(const char *signature, const char *token,
                      const char *url, const apr_array_header_t *params,
                      apr_pool_t *scratch_pool);

/* ---- intake_twilio.c ----------------------------------------------------- */

/* A webhook request that one of the site's accounts has signed. */
typedef struct crm_twilio_hook_t {
    crm_call_t *call;
    const apr_array_header_t *params;   /* of crm_query_param_t */
    const crm_twilio_account_t *account;
} crm_twilio_hook_t;

/* Return the first parameter NAME of HOOK, NULL if it is absent or empty. */
const char *crm_twilio_get(const crm_twilio_hook_t *hook, const char *name);

/* Return the phone number in ADDRESS (may be NULL) without the prefix of its
 * channel ("whatsapp:+4930..."). NULL if it is not a phone number: a sender's
 * name, a client's name, or a hidden caller. */
const char *crm_twilio_phone(const char *address, apr_pool_t *pool);

/* Set *AGENT to the agent whose number is ADDRESS (may be NULL), among those
 * that HOOK's account may reach. Its workspace_id is NULL if there is none. */
crm_error_t *crm_twilio_agent(crm_intake_agent_t *agent,
                              const crm_twilio_hook_t *hook,
                              const char *address);

/* Return the error that no agent has the number ADDRESS. */
crm_error_t *crm_twilio_unknown_number(const crm_twilio_hook_t *hook,
                                       const char *address);

/* Respond to HOOK with TwiML that sends TEXT, or nothing if it is NULL. */
void crm_twilio_answer(const crm_twilio_hook_t *hook, const char *text);

/* Respond to HOOK with 204. */
void crm_twilio_done(const crm_twilio_hook_t *hook);

/* Store EVENT as verified, since Twilio has signed the request. */
crm_error_t *crm_twilio_take(crm_intake_result_t *result,
                             const crm_twilio_hook_t *hook,
                             const char *workspace_id,
                             crm_intake_event_t *event);

/* Store EVENT, an update of a message or conversation. *KNOWN_P = 0 if that is
 * unknown. */
crm_error_t *crm_twilio_update(int *known_p, const crm_twilio_hook_t *hook,
                               const char *workspace_id,
                               crm_intake_event_t *event);

/* Handlers of the webhooks: an incoming message, the status of a sent message
 * (intake_twilio_sms.c), and of a call (intake_twilio_voice.c). */
crm_error_t *crm_twilio_sms(const crm_twilio_hook_t *hook);
crm_error_t *crm_twilio_status(const crm_twilio_hook_t *hook);
crm_error_t *crm_twilio_voice(const crm_twilio_hook_t *hook);

/* Return what TEXT, a complete message, requests: -1 to unsubscribe, 1 to
 * subscribe again, 0 neither (intake_twilio_sms.c). */
int crm_twilio_keyword(const char *text);

/* Write SECONDS (digits) to OUT (SIZE bytes) in minutes, with at most 4
 * decimals. Return 0 if SECONDS is not a number (intake_twilio_voice.c). */
int crm_twilio_minutes(char *out, apr_size_t size, const char *seconds);

#endif /* CRM_TWILIO_H */
