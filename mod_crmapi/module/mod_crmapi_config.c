/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_config.c: what directives have set, merged and completed */
#include "mod_crmapi_config.h"

#include <string.h>

#include "apr_strings.h"

#include "mod_crmapi_directive.h"

static const int no_number = -1;
static const apr_interval_time_t no_time = -1;
static const void *const no_pointer;

/* The kinds of members: the value of one that is not set. */
static const struct {
    const void *unset;
    size_t size;
} kinds[] = {
    [CRMAPI_NUMBER] = {&no_number, sizeof(no_number)},
    [CRMAPI_TIME] = {&no_time, sizeof(no_time)},
    [CRMAPI_POINTER] = {&no_pointer, sizeof(no_pointer)},
};

/* Copy SETTING's member from FROM to TO if it is set there. */
static void copy(const crmapi_setting_t *setting, crmapi_config_t *to,
                 const crmapi_config_t *from)
{
    const void *value = (const char *)from + setting->offset;
    size_t size = kinds[setting->kind].size;

    if (memcmp(value, kinds[setting->kind].unset, size)) {
        memcpy(crmapi_setting_at(setting, to), value, size);
    }
}

void *crmapi_config_create(apr_pool_t *p, server_rec *s)
{
    crmapi_config_t *config = apr_pcalloc(p, sizeof(*config));

    (void)s;
    for (const command_rec *row = crmapi_commands; row->name; row++) {
        const crmapi_setting_t *setting = row->cmd_data;

        if (setting) {
            memcpy(crmapi_setting_at(setting, config),
                   kinds[setting->kind].unset, kinds[setting->kind].size);
        }
    }
    return config;
}

void *crmapi_config_merge(apr_pool_t *p, void *base, void *over)
{
    crmapi_config_t *merged = apr_pmemdup(p, base, sizeof(*merged));

    for (const command_rec *row = crmapi_commands; row->name; row++) {
        if (row->cmd_data) {
            copy(row->cmd_data, merged, over);
        }
    }
    return merged;
}

void crmapi_config_complete(crmapi_config_t *config)
{
    crmapi_config_t set = *config;

    for (const command_rec *row = crmapi_commands; row->name; row++) {
        const crmapi_setting_t *setting = row->cmd_data;

        if (setting) {
            memcpy(crmapi_setting_at(setting, config), &setting->initial,
                   kinds[setting->kind].size);
            copy(setting, config, &set);
        }
    }
}
