/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_generate.h: generators, and the steps that they make */
#ifndef CRMAPID_GENERATE_H
#define CRMAPID_GENERATE_H

#include <json-c/json.h>

#include "apr_pools.h"
#include "apr_tables.h"
#include "apr_time.h"

#include "crm_error.h"
#include "crm_log.h"

#include "crmapid_config.h"

/* The input of a generator. Objects are as the API shows them; NULL if there
 * is none. */
typedef struct crmd_subject_t {
    json_object *contact;
    json_object *company;       /* the contact's, or NULL */
    json_object *agent;
    json_object *plan;          /* the template: name, allowed_channels,
                                   goal_prompt, pacing, steps */
    const char *time_zone;      /* the workspace's */
    const char *const *channels; /* those that can be used, at least one; ends
                                   with NULL */
} crmd_subject_t;

/* A generated step. Texts of other channels are NULL. */
typedef struct crmd_step_t {
    const char *channel;        /* one of the subject's */
    apr_int64_t delay;          /* seconds after the previous step; 0 for the
                                   first */
    const char *email_subject;
    const char *email_body;
    const char *sms_body;
    const char *voice_objective;
    const char *voice_script;
} crmd_step_t;

/* The output of a generator, in its RESULT_POOL. */
typedef struct crmd_outline_t {
    apr_array_header_t *steps;  /* of crmd_step_t, at least one */
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
    void (*generate)(crmd_outline_t *outline, const crmd_subject_t *subject,
                     const crmd_config_t *config, const crm_log_t *log,
                     apr_pool_t *result_pool);
} crmd_generator_t;

/* The generators: crmapid_template.c and crmapid_openai.c. */
extern const crmd_generator_t crmd_generator_template;
extern const crmd_generator_t crmd_generator_openai;

/* Return the generator that CONFIG selects. */
const crmd_generator_t *crmd_generator_of(const crmd_config_t *config);

/* How steps are read. */
typedef struct crmd_reading_t {
    const crmd_subject_t *subject;
    const crmd_config_t *config;
    int merge;                  /* 1: texts contain merge fields. Steps of
                                   channels that the subject cannot use are
                                   checked and dropped; their delays are added
                                   to the next step's. 0: texts are final, and
                                   such steps are refused. */
    apr_pool_t *pool;           /* owns the steps */
} crmd_reading_t;

/* Set *STEPS_P to an array of crmd_step_t read from LIST, a JSON array of
 * {channel, delay, email_subject, email_body, sms_body, voice_objective,
 * voice_script} as docs/sequences.md describes it. Return NULL, or the member
 * and the rule that it breaks: "steps[2].email_body ...". */
const char *crmd_steps_read(apr_array_header_t **steps_p, json_object *list,
                            const crmd_reading_t *reading);

/* Return NAME, which is untrusted input, if it is safe to log: at most 100
 * bytes, no control characters. Return "..." otherwise. */
const char *crmd_name_shown(const char *name);

#endif /* CRMAPID_GENERATE_H */
