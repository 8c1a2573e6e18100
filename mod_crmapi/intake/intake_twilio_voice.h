/* SPDX-License-Identifier: Apache-2.0 */
/* intake_twilio_voice.h: the status of calls and recordings */
#ifndef CRM_INTAKE_TWILIO_VOICE_H
#define CRM_INTAKE_TWILIO_VOICE_H

#include "intake_twilio.h"

/* Serve the webhook of a call's status or recording. */
crm_error_t *crm_twilio_voice(const crm_twilio_hook_t *hook);

/* Write SECONDS (digits) to OUT (SIZE bytes) in minutes, with at most 4
 * decimals. Return 0 if SECONDS is not a number. */
int crm_twilio_minutes(char *out, apr_size_t size, const char *seconds);

#endif /* CRM_INTAKE_TWILIO_VOICE_H */
