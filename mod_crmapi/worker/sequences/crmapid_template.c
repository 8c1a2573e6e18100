/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_template.c: the generator "template": the template's own steps */
#include "crmapid_generate.h"

static crm_error_t *check(const crmd_config_t *config, apr_pool_t *pool)
{
    (void)config;
    (void)pool;
    return NULL;
}

/* The result depends on the template and the subject only. */
static void generate(crmd_outline_t *outline, const crm_subject_t *subject,
                     const crmd_config_t *config, const crm_log_t *log,
                     apr_pool_t *result_pool)
{
    const crm_reading_t reading = {subject, config->max_steps, 1,
                                   result_pool};

    (void)log;
    outline->failure = crm_steps_read(&outline->steps,
                                       json_object_object_get(subject->plan,
                                                              "steps"),
                                       &reading);
    if (!outline->failure && !outline->steps->nelts) {
        outline->failure = "no_usable_channels";
    }
}

const crmd_generator_t crmd_generator_template = {
    "template", check, generate
};
