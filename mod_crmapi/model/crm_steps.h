/* SPDX-License-Identifier: Apache-2.0 */
/* crm_steps.h: the steps of a sequence, read from JSON (docs/sequences.md) */
#ifndef CRM_STEPS_H
#define CRM_STEPS_H

#include <json-c/json.h>

#include "apr_pools.h"
#include "apr_tables.h"

/* The most steps that a sequence may have, whatever the setting max_steps. */
#define CRM_STEPS_MAX 100

/* What steps are made for. Objects are as the API shows them; NULL if there
 * is none. */
typedef struct crm_subject_t {
    json_object *contact;
    json_object *company;       /* the contact's, or NULL */
    json_object *agent;
    json_object *plan;          /* the template: name, allowed_channels,
                                   goal_prompt, pacing, steps */
    const char *time_zone;      /* the workspace's */
    const char *const *channels; /* those that can be used, at least one; ends
                                   with NULL */
} crm_subject_t;

/* A generated step. Texts of other channels are NULL. */
typedef struct crm_step_t {
    const char *channel;        /* one of the subject's */
    apr_int64_t delay;          /* seconds after the previous step; 0 for the
                                   first */
    const char *email_subject;
    const char *email_body;
    const char *sms_body;
    const char *voice_objective;
    const char *voice_script;
} crm_step_t;

/* How steps are read. */
typedef struct crm_reading_t {
    const crm_subject_t *subject;
    int max_steps;
    int merge;                  /* 1: texts contain merge fields. Steps of
                                   channels that the subject cannot use are
                                   checked and dropped; their delays are added
                                   to the next step's. 0: texts are final, and
                                   such steps are refused. */
    apr_pool_t *pool;           /* owns the steps */
} crm_reading_t;

/* Set *STEPS_P to an array of crm_step_t read from LIST, a JSON array of
 * {channel, delay, email_subject, email_body, sms_body, voice_objective,
 * voice_script} as docs/sequences.md describes it. Return NULL, or the member
 * and the rule that it breaks: "steps[2].email_body ...". */
const char *crm_steps_read(apr_array_header_t **steps_p, json_object *list,
                           const crm_reading_t *reading);

/* Return how many characters the text NAME of a step, such as "sms_body", may
 * have. */
int crm_step_max(const char *name);

/* Check LIST, the steps of a template, without a subject. Return NULL, or the rule
 * that is broken at *WHERE_P, a JSON pointer into LIST, in POOL. */
const char *crm_steps_check(const char **where_p, json_object *list,
                            apr_pool_t *pool);

#endif /* CRM_STEPS_H */
