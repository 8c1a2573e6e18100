/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_generate.c: reading generated steps, from JSON and strictly */
#include "crmapid_generate.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_text.h"
#include "crmapid_merge.h"
#include "crmapid_pacing.h"

/* The texts of a step, by channel. */
static const struct {
    const char *name;
    const char *channel;
    size_t offset;              /* in crmd_step_t */
    int required;
    int max;                    /* characters; the schema has the same limits */
} texts[] = {
    {"email_subject", "email", offsetof(crmd_step_t, email_subject), 1, 1000},
    {"email_body", "email", offsetof(crmd_step_t, email_body), 1, 65536},
    {"sms_body", "sms", offsetof(crmd_step_t, sms_body), 1, 1600},
    {"voice_objective", "voice", offsetof(crmd_step_t, voice_objective), 0,
     65536},
    {"voice_script", "voice", offsetof(crmd_step_t, voice_script), 1, 4096},
};

#define TEXTS CRM_NELTS(texts)

const crmd_generator_t *crmd_generator_of(const crmd_config_t *config)
{
    return strcmp(config->generator, crmd_generator_openai.name)
           ? &crmd_generator_template : &crmd_generator_openai;
}

/* Return whether VALUE is a string that is not blank and contains no NUL. */
static int is_text(json_object *value)
{
    return json_object_is_type(value, json_type_string)
           && json_object_get_string_len(value) > 0
           && strspn(json_object_get_string(value), " \t\r\n")
              < (size_t)json_object_get_string_len(value)
           && strlen(json_object_get_string(value))
              == (size_t)json_object_get_string_len(value);
}

const char *crmd_name_shown(const char *name)
{
    size_t len = 0;

    while (len <= 100 && (unsigned char)name[len] >= ' '
           && name[len] != 0x7f) {
        len++;
    }
    return len <= 100 && !name[len] ? name : "...";
}

/* Return the index of the member NAME in texts[], TEXTS if it is not there. */
static size_t text_index(const char *name)
{
    size_t i = 0;

    while (i < TEXTS && strcmp(texts[i].name, name)) {
        i++;
    }
    return i;
}

static const char *find(const char *const *list, const char *word)
{
    while (*list && strcmp(*list, word)) {
        list++;
    }
    return *list;
}

/* Set STEP's channel from OBJECT; *USABLE_P = whether the subject can use
 * it. */
static const char *read_channel(crmd_step_t *step, int *usable_p,
                                json_object *object,
                                const crmd_reading_t *reading)
{
    static const char *const channels[] = {"email", "sms", "voice", NULL};
    json_object *value = json_object_object_get(object, "channel");
    const char *known = json_object_is_type(value, json_type_string)
                        ? find(channels, json_object_get_string(value)) : NULL;

    if (!known) {
        return ".channel must be email, sms or voice";
    }
    step->channel = known;
    *usable_p = find(reading->subject->channels, known) != NULL;
    return *usable_p || reading->merge ? NULL
           : ".channel is not one that can be used here";
}

/* Set the text of STEP that texts[I] describes to VALUE. If the step is not
 * USABLE it is dropped, and only the syntax of its merge fields is checked. */
static const char *read_text(crmd_step_t *step, size_t i, json_object *value,
                             int usable, const crmd_reading_t *reading)
{
    const char **target = (const char **)(void *)((char *)step
                                                  + texts[i].offset);
    int one_line = !strcmp(texts[i].name, "email_subject");
    const char *text = json_object_get_string(value);
    const char *fault;

    if (!is_text(value)) {
        return apr_pstrcat(reading->pool, ".", texts[i].name,
                           " must be a text that is not empty", NULL);
    }
    if (one_line && strpbrk(text, "\r\n")) {
        return apr_pstrcat(reading->pool, ".", texts[i].name,
                           " must be one line", NULL);
    }
    if (!reading->merge) {
        *target = apr_pstrdup(reading->pool, text);
        fault = strstr(text, "{{") ? "must have no merge fields left"
                : crm_text_length(text, strlen(text))
                  > (apr_size_t)texts[i].max ? "is too long" : NULL;
    }
    else {
        fault = crmd_merge(usable ? target : NULL, text, reading->subject,
                           one_line, texts[i].max, reading->pool);
    }
    return fault ? apr_pstrcat(reading->pool, ".", texts[i].name, ": ", fault,
                               NULL) : NULL;
}

/* Read the member NAME with VALUE (NULL: a null, which counts as absent) into
 * STEP, whose channel is set. */
static const char *read_member(crmd_step_t *step, const char *name,
                               json_object *value, int usable,
                               const crmd_reading_t *reading)
{
    size_t i = text_index(name);
    const char *fault;

    if (!strcmp(name, "channel")) {
        return NULL;
    }
    if (!strcmp(name, "delay")) {
        fault = value ? crmd_delay_parse(&step->delay, value, reading->pool)
                      : NULL;
        return fault ? apr_pstrcat(reading->pool, ".delay ", fault, NULL)
                     : NULL;
    }
    if (i == TEXTS) {
        return apr_pstrcat(reading->pool, ".", crmd_name_shown(name),
                           " is not a known member", NULL);
    }
    if (!value) {
        return NULL;
    }
    if (strcmp(texts[i].channel, step->channel)) {
        return apr_psprintf(reading->pool, ".%s does not belong to a step by"
                            " %s", name, step->channel);
    }
    return read_text(step, i, value, usable, reading);
}

/* Read the members of OBJECT into STEP, whose channel is set. */
static const char *read_members(crmd_step_t *step, json_object *object,
                                int usable, const crmd_reading_t *reading)
{
    json_object_object_foreach(object, name, value) {
        const char *fault = read_member(step, name, value, usable, reading);

        if (fault) {
            return fault;
        }
    }
    for (size_t i = 0; i < TEXTS; i++) {
        if (texts[i].required && !strcmp(texts[i].channel, step->channel)
            && !json_object_object_get(object, texts[i].name)) {
            return apr_pstrcat(reading->pool, ".", texts[i].name,
                               " is required", NULL);
        }
    }
    return NULL;
}

/* Read OBJECT into STEP. *USABLE_P = whether the subject can use its
 * channel. */
static const char *read_step(crmd_step_t *step, int *usable_p,
                             json_object *object,
                             const crmd_reading_t *reading)
{
    const char *fault;

    if (!json_object_is_type(object, json_type_object)) {
        return " must be an object";
    }
    fault = read_channel(step, usable_p, object, reading);
    return fault ? fault : read_members(step, object, *usable_p, reading);
}

const char *crmd_steps_read(apr_array_header_t **steps_p, json_object *list,
                            const crmd_reading_t *reading)
{
    apr_pool_t *pool = reading->pool;
    apr_array_header_t *steps = apr_array_make(pool, 8, sizeof(crmd_step_t));
    apr_int64_t between, carried = 0;
    const char *pacing, *fault;
    size_t count;

    if (!json_object_is_type(list, json_type_array)) {
        return list ? "steps must be an array" : "there are no steps";
    }
    count = json_object_array_length(list);
    if (!count) {
        return "there are no steps";
    }
    if (count > (size_t)reading->config->max_steps) {
        return apr_psprintf(pool, "there must be at most %d steps",
                            reading->config->max_steps);
    }
    fault = crmd_pacing_parse(&pacing, &between,
                              json_object_object_get(reading->subject->plan,
                                                     "pacing"),
                              reading->subject->time_zone, pool);
    for (size_t i = 0; i < count && !fault; i++) {
        crmd_step_t step;
        int usable = 1;

        memset(&step, 0, sizeof(step));
        step.delay = i ? between : 0;
        fault = read_step(&step, &usable, json_object_array_get_idx(list, i),
                          reading);
        if (fault) {
            fault = apr_psprintf(pool, "steps[%d]%s", (int)i, fault);
        }
        else if (usable) {
            step.delay = steps->nelts ? step.delay + carried : 0;
            carried = 0;
            APR_ARRAY_PUSH(steps, crmd_step_t) = step;
        }
        else {
            carried += step.delay;
        }
    }
    *steps_p = steps;
    return fault;
}
