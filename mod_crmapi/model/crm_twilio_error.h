/* SPDX-License-Identifier: Apache-2.0 */
/* crm_twilio_error.h: what Twilio's errors say of a number */
#ifndef CRM_TWILIO_ERROR_H
#define CRM_TWILIO_ERROR_H

/* Return the reason for which the number is suppressed that the error CODE (NULL:
 * none) speaks of, or NULL: "Error and Warning Dictionary" of Twilio. Others, as
 * 21614, "not a mobile number", speak of one channel. */
const char *crm_twilio_error_suppresses(const char *code);

#endif /* CRM_TWILIO_ERROR_H */
