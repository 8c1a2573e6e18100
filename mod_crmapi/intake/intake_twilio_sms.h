/* SPDX-License-Identifier: Apache-2.0 */
/* intake_twilio_sms.h: messages and their status */
#ifndef CRM_INTAKE_TWILIO_SMS_H
#define CRM_INTAKE_TWILIO_SMS_H

#include "intake_twilio.h"

/* Serve the webhook of an incoming message. */
crm_error_t *crm_twilio_sms(const crm_twilio_hook_t *hook);

/* Serve the webhook of a sent message's status. */
crm_error_t *crm_twilio_status(const crm_twilio_hook_t *hook);

/* Return what TEXT, a complete message, requests (contract 17.4): -1 to
 * unsubscribe, 1 to subscribe again, 2 help, 0 none of these. */
int crm_twilio_keyword(const char *text, apr_pool_t *scratch_pool);

#endif /* CRM_INTAKE_TWILIO_SMS_H */
