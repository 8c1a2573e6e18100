/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_check.c: whether settings go together */
#include "crmapid_check.h"

#include "crmapid_generate.h"

const char *crmd_config_check(const crmd_config_t *config, apr_pool_t *pool)
{
    static const char *const channels[] = {"email", "sms", "voice"};

    if (!*config->database) {
        return "no database: set \"database\", or $CRMAPI_DATABASE";
    }
    for (int i = 0; i < 3; i++) {
        const crmd_relay_t *relay = crmd_relay_of(config, channels[i]);
        const char *lack = relay->check(config, channels[i], pool);

        if (lack) {
            return lack;
        }
    }
    return crmd_generator_of(config)->check(config, pool);
}
