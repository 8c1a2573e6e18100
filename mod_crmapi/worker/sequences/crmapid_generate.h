/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_generate.h: what the generators share */
#ifndef CRMAPID_GENERATE_H
#define CRMAPID_GENERATE_H

#include "crmapid.h"

/* Return the generator that CONFIG has chosen. */
const crmd_generator_t *crmd_generator_of(const crmd_config_t *config);

/* How steps are read. */
typedef struct crmd_reading_t {
    const crmd_subject_t *subject;
    const crmd_config_t *config;
    int merge;                  /* texts have merge fields, and channels that
                                   the subject cannot use are left out: only
                                   their form is checked, and their delays go
                                   to the next; 0: texts are final and such
                                   channels wrong */
    apr_pool_t *pool;           /* owns what is read */
} crmd_reading_t;

/* Set *STEPS_P to an array of crmd_step_t read strictly from LIST, a JSON
 * array of {channel, delay, email_subject, email_body, sms_body,
 * voice_objective, voice_script} as docs/sequences.md describes them. Return
 * NULL or what is wrong, naming it: "steps[2].email_body ...". */
const char *crmd_steps_read(apr_array_header_t **steps_p, json_object *list,
                            const crmd_reading_t *reading);

/* Return NAME, which a stranger chose, if it may stand in a line of the log:
 * at most 100 bytes, no control characters; "..." for others. */
const char *crmd_name_shown(const char *name);

/* Return the question of crmd_generator_openai about SUBJECT: the body of a
 * chat completion's request as JSON text, in POOL (crmapid_prompt.c). */
const char *crmd_prompt(const crmd_subject_t *subject,
                        const crmd_config_t *config, apr_pool_t *pool);

#endif /* CRMAPID_GENERATE_H */
