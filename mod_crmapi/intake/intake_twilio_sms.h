/* SPDX-License-Identifier: Apache-2.0 */
/* intake_twilio_sms.h: messages and their status */
#ifndef CRM_INTAKE_TWILIO_SMS_H
#define CRM_INTAKE_TWILIO_SMS_H

#include "intake_twilio.h"

/* Serve the webhook of an incoming message. */
crm_error_t *crm_twilio_sms(const crm_twilio_hook_t *hook);

/* Serve the webhook of a sent message's status. */
crm_error_t *crm_twilio_status(const crm_twilio_hook_t *hook);

#endif /* CRM_INTAKE_TWILIO_SMS_H */
