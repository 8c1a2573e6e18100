/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_generate.h: generators of steps */
#ifndef CRMAPID_GENERATE_H
#define CRMAPID_GENERATE_H

#include "apr_pools.h"
#include "apr_tables.h"
#include "apr_time.h"

#include "crm_error.h"
#include "crm_log.h"
#include "crm_steps.h"

#include "crmapid_config.h"

/* The output of a generator, in its RESULT_POOL. */
typedef struct crmd_outline_t {
    apr_array_header_t *steps;  /* of crm_step_t, at least one */
    const char *failure;        /* NULL, or why there can never be steps: the
                                   enrollment's generation_error */
    const char *setback;        /* NULL, or why there are none now: the job is
                                   retried */
    apr_interval_time_t retry_after; /* requested by the service; 0: none */
} crmd_outline_t;

/* A way of making steps, selected in the configuration. */
typedef struct crmd_generator_t {
    const char *name;           /* "template", "openai" */
    /* Check that CONFIG has all settings that the generator needs. The error is
     * made in POOL. */
    crm_error_t *(*check)(const crmd_config_t *config, apr_pool_t *pool);
    void (*generate)(crmd_outline_t *outline, const crm_subject_t *subject,
                     const crmd_config_t *config, const crm_log_t *log,
                     apr_pool_t *result_pool);
} crmd_generator_t;

/* The generators: crmapid_template.c and crmapid_openai.c. */
extern const crmd_generator_t crmd_generator_template;
extern const crmd_generator_t crmd_generator_openai;

/* Return the generator that CONFIG selects. */
const crmd_generator_t *crmd_generator_of(const crmd_config_t *config);

#endif /* CRMAPID_GENERATE_H */
