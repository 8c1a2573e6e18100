/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_config.h: the worker's settings */
#ifndef CRMAPID_CONFIG_H
#define CRMAPID_CONFIG_H

#include "apr_pools.h"
#include "apr_time.h"

#include "crm_error.h"

#define HEADING(words)
#define TEXT(member, type, initial, help) const char *member;
#define WORD(member, initial, choices, help) const char *member;
#define NUMBER(member, initial, min, max, help) int member;
#define SWITCH(member, initial, help) int member;
#define DURATION(member, initial, min, max, help) apr_interval_time_t member;

/* The settings: those of crmapid_setting_rows.h, and what was read for them. Texts
 * are never NULL; "" means not set. */
typedef struct crmd_config_t {
    const char *file;           /* the configuration file, or NULL */
#include "crmapid_setting_rows.h"
    /* secrets, read from the files that the settings name */
    const char *openai_key;
    const char *smtp_password;
    const char *provider_token;
    const char *twilio_token;
} crmd_config_t;

#undef HEADING
#undef TEXT
#undef WORD
#undef NUMBER
#undef SWITCH
#undef DURATION

/* Set *CONFIG_P to the settings in FILE (NULL: the defaults), in RESULT_POOL.
 * $CRMAPI_DATABASE and the variables of secrets are read, too. Errors name the
 * file, the line and the reason. Files with secrets must not be accessible to
 * other users. */
crm_error_t *crmd_config_read(crmd_config_t **config_p, const char *file,
                              apr_pool_t *result_pool);

#endif /* CRMAPID_CONFIG_H */
