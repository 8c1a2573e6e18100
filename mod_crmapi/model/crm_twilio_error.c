/* SPDX-License-Identifier: Apache-2.0 */
/* crm_twilio_error.c: what Twilio's errors say of a number */
#include "crm_twilio_error.h"

#include <stddef.h>
#include <string.h>

#include "crm_array.h"

static const struct {
    const char *code;
    const char *reason;
} errors[] = {
    {"21211", "bounced"},       /* no valid number */
    {"21610", "unsubscribed"},  /* it has sent STOP to Twilio */
};

const char *crm_twilio_error_suppresses(const char *code)
{
    for (size_t i = 0; code && i < CRM_NELTS(errors); i++) {
        if (!strcmp(code, errors[i].code)) {
            return errors[i].reason;
        }
    }
    return NULL;
}
