/* SPDX-License-Identifier: Apache-2.0 */
/* crm_twilio.h: what the files of Twilio's webhooks share */
#ifndef CRM_TWILIO_H
#define CRM_TWILIO_H

#include "crm_intake_site.h"

/* ---- intake_twilio_sign.c ------------------------------------------------ */

/* Room for a signature as text, with its NUL: 20 bytes in base64. */
#define CRM_TWILIO_SIGNATURE_SIZE 29

/* Write to OUT the signature of a request to URL with PARAMS (of
 * crm_query_param_t), the decoded fields of its form, by TOKEN (Twilio:
 * "Validating Signatures from Twilio"): base64(HMAC-SHA1(TOKEN, URL and all
 * names and values, by name, then by value, the same pair once)). */
void crm_twilio_sign(char out[CRM_TWILIO_SIGNATURE_SIZE], const char *token,
                     const char *url, const apr_array_header_t *params,
                     apr_pool_t *scratch_pool);

/* Return URL, absolute, with the port of its scheme where it has none, and
 * without a port where it has one, in POOL; NULL if it is no such URL. */
const char *crm_twilio_other_url(const char *url, apr_pool_t *pool);

/* Return whether SIGNATURE (may be NULL) is that of a request to URL with
 * PARAMS by TOKEN: URL is taken as it is and in its other spelling, as Twilio's
 * own libraries do. In a time that does not tell where it differs. */
int crm_twilio_signed(const char *signature, const char *token,
                      const char *url, const apr_array_header_t *params,
                      apr_pool_t *scratch_pool);

/* ---- intake_twilio.c ----------------------------------------------------- */

/* A webhook that one of the site's accounts has signed. */
typedef struct crm_twilio_hook_t {
    crm_call_t *call;
    const apr_array_header_t *params;   /* of crm_query_param_t */
    const crm_twilio_account_t *account;
} crm_twilio_hook_t;

/* Return the first parameter NAME of HOOK, NULL if it is not there or empty. */
const char *crm_twilio_get(const crm_twilio_hook_t *hook, const char *name);

/* Return the phone number in ADDRESS (may be NULL) without what stands for its
 * channel ("whatsapp:+4930..."); NULL if it is none: a sender's name, a
 * client's, what Twilio says of callers that hide theirs. */
const char *crm_twilio_phone(const char *address, apr_pool_t *pool);

/* Set *AGENT to the agent whose number is ADDRESS (may be NULL), its
 * workspace_id NULL if there is none, as far as HOOK's account may reach. */
crm_error_t *crm_twilio_agent(crm_intake_agent_t *agent,
                              const crm_twilio_hook_t *hook,
                              const char *address);

/* Return the error that no agent has the number ADDRESS. */
crm_error_t *crm_twilio_nobody(const crm_twilio_hook_t *hook,
                               const char *address);

/* Answer HOOK with TwiML that sends TEXT, or with NULL nothing. */
void crm_twilio_answer(const crm_twilio_hook_t *hook, const char *text);

/* Answer HOOK with nothing at all: 204. */
void crm_twilio_done(const crm_twilio_hook_t *hook);

/* Take EVENT, which Twilio has signed: it is no claim. */
crm_error_t *crm_twilio_take(crm_intake_result_t *result,
                             const crm_twilio_hook_t *hook,
                             const char *workspace_id,
                             crm_intake_event_t *event);

/* Take EVENT about something that we may not know: *KNOWN_P = 0 then. */
crm_error_t *crm_twilio_news(int *known_p, const crm_twilio_hook_t *hook,
                             const char *workspace_id,
                             crm_intake_event_t *event);

/* What the webhooks do: an incoming message, news of a sent one
 * (intake_twilio_sms.c), of a call (intake_twilio_voice.c). */
crm_error_t *crm_twilio_sms(const crm_twilio_hook_t *hook);
crm_error_t *crm_twilio_status(const crm_twilio_hook_t *hook);
crm_error_t *crm_twilio_voice(const crm_twilio_hook_t *hook);

/* What a whole message TEXT asks for, by itself: -1 no more messages, 1
 * messages again, 0 neither (intake_twilio_sms.c). */
int crm_twilio_keyword(const char *text);

/* Write to OUT (SIZE bytes) the minutes that SECONDS, digits, are, with at
 * most 4 decimals; return 0 if that is no number (intake_twilio_voice.c). */
int crm_twilio_minutes(char *out, apr_size_t size, const char *seconds);

#endif /* CRM_TWILIO_H */
