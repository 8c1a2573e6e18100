/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_check.c: whether the settings are consistent */
#include "crmapid_check.h"

#include "crmapid_generate.h"
#include "crmapid_relay.h"

crm_error_t *crmd_config_check(const crmd_config_t *config, apr_pool_t *pool)
{
    static const char *const channels[] = {"email", "sms", "voice"};

    if (!*config->database) {
        return crm_error_create(CRM_E_BAD_REQUEST, "no database: set"
                                " \"database\", or $CRMAPI_DATABASE", pool);
    }
    for (int i = 0; i < 3; i++) {
        CRM_ERR(crmd_relay_of(config, channels[i])->check(config, channels[i],
                                                          pool));
    }
    return crmd_generator_of(config)->check(config, pool);
}
