/* SPDX-License-Identifier: Apache-2.0 */
/* crm_steps.c: the steps of a sequence, read from JSON and strictly */
#include "crm_steps.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_bare.h"
#include "crm_channel.h"
#include "crm_json.h"
#include "crm_merge.h"
#include "crm_pacing.h"
#include "crm_pointer.h"
#include "crm_text.h"

/* The texts of a step, by channel. */
static const struct {
    const char *name;
    int channel;                /* CRM_CHANNEL_... */
    size_t offset;              /* in crm_step_t */
    int required;
    int max;                    /* characters; the schema has the same limits */
} texts[] = {
    {"email_subject", CRM_CHANNEL_EMAIL, offsetof(crm_step_t, email_subject), 1,
     1000},
    {"email_body", CRM_CHANNEL_EMAIL, offsetof(crm_step_t, email_body), 1,
     65536},
    {"sms_body", CRM_CHANNEL_TEXT, offsetof(crm_step_t, sms_body), 1, 1600},
    {"voice_objective", CRM_CHANNEL_PHONE,
     offsetof(crm_step_t, voice_objective), 0, 65536},
    {"voice_script", CRM_CHANNEL_PHONE, offsetof(crm_step_t, voice_script), 1,
     4096},
};

#define TEXTS CRM_NELTS(texts)

/* Return whether VALUE is a string that shows something and contains no NUL. */
static int is_text(json_object *value)
{
    return json_object_is_type(value, json_type_string)
           && crm_text_shows(json_object_get_string(value))
           && strlen(json_object_get_string(value))
              == (size_t)json_object_get_string_len(value);
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

int crm_step_max(const char *name)
{
    size_t i = text_index(name);

    return i < TEXTS ? texts[i].max : 0;
}

static const char *find(const char *const *list, const char *word)
{
    while (*list && strcmp(*list, word)) {
        list++;
    }
    return *list;
}

/* A step that is being read. */
typedef struct reader_t {
    const crm_reading_t *reading;
    const char *item;           /* its place in the list */
    const char *where;          /* the place of what is being read */
    const crm_channel_t *channel; /* of the step */
    crm_step_t step;
    int usable;                 /* the subject can use its channel */
} reader_t;

/* Let READER read the member NAME. */
static void enter(reader_t *reader, const char *name)
{
    reader->where = crm_pointer_member(reader->item, name,
                                       reader->reading->pool);
}

/* Read the channel of OBJECT. */
static const char *read_channel(reader_t *reader, json_object *object)
{
    const crm_reading_t *reading = reader->reading;
    const char *name = crm_json_text(json_object_object_get(object, "channel"));

    reader->channel = name ? crm_channel_way(name) : NULL;
    enter(reader, "channel");
    if (!reader->channel) {
        return crm_channel_way_rule;
    }
    reader->step.channel = reader->channel->way;
    reader->usable = find(reading->subject->channels,
                          reader->channel->way) != NULL;
    return reader->usable || reading->merge ? NULL
           : "is not one that can be used here";
}

/* Read VALUE, the text that texts[I] describes. If the step is not usable it is
 * dropped, and its texts are only checked. */
static const char *read_text(reader_t *reader, size_t i, json_object *value)
{
    const crm_reading_t *reading = reader->reading;
    const char **target = (const char **)(void *)((char *)&reader->step
                                                  + texts[i].offset);
    int one_line = !strcmp(texts[i].name, "email_subject");
    const char *text = json_object_get_string(value);

    if (!is_text(value)) {
        return "must be a text that is not empty";
    }
    if (one_line && strpbrk(text, "\r\n")) {
        return "must be one line";
    }
    if (reading->merge) {
        return crm_merge(reader->usable ? target : NULL, text,
                         reading->subject, one_line, texts[i].max,
                         reading->pool);
    }
    *target = apr_pstrdup(reading->pool, text);
    return strstr(text, "{{") ? "must have no merge fields left"
           : crm_text_length(text, strlen(text)) > (apr_size_t)texts[i].max
             ? "is too long" : NULL;
}

/* Read the member NAME with VALUE (NULL: a null, which counts as absent). The
 * step's channel is set. */
static const char *read_member(reader_t *reader, const char *name,
                               json_object *value)
{
    apr_pool_t *pool = reader->reading->pool;
    size_t i = text_index(name);

    if (!strcmp(name, "channel")) {
        return NULL;
    }
    enter(reader, name);
    if (!strcmp(name, "delay")) {
        return value ? crm_delay_parse(&reader->step.delay, value, pool)
                     : NULL;
    }
    if (i == TEXTS) {
        return "is not a known member";
    }
    if (!value) {
        return NULL;
    }
    return crm_channel_is(reader->channel, texts[i].channel)
           ? read_text(reader, i, value)
           : apr_psprintf(pool, "does not belong to a step by %s",
                          reader->channel->way);
}

/* Read the step OBJECT. */
static const char *read_step(reader_t *reader, json_object *object)
{
    const char *rule;

    reader->where = reader->item;
    if (!json_object_is_type(object, json_type_object)) {
        return "must be an object";
    }
    rule = read_channel(reader, object);
    if (rule) {
        return rule;
    }
    json_object_object_foreach(object, name, value) {
        rule = read_member(reader, name, value);
        if (rule) {
            return rule;
        }
    }
    for (size_t i = 0; i < TEXTS; i++) {
        if (texts[i].required
            && crm_channel_is(reader->channel, texts[i].channel)
            && !json_object_object_get(object, texts[i].name)) {
            enter(reader, texts[i].name);
            return "is required";
        }
    }
    return NULL;
}

/* Add the steps of LIST to STEPS; BETWEEN is the delay of those without one.
 * Return NULL, or the rule that is broken at *WHERE_P. */
static const char *read_steps(apr_array_header_t *steps, const char **where_p,
                              json_object *list, apr_int64_t between,
                              const crm_reading_t *reading)
{
    size_t count = json_object_array_length(list);
    apr_int64_t carried = 0;

    for (size_t i = 0; i < count; i++) {
        reader_t reader = {.reading = reading, .step.delay = i ? between : 0,
                           .item = crm_pointer_item("", (int)i,
                                                    reading->pool)};
        const char *rule = read_step(&reader,
                                     json_object_array_get_idx(list, i));

        *where_p = reader.where;
        if (rule) {
            return rule;
        }
        if (reader.usable) {
            reader.step.delay = steps->nelts ? reader.step.delay + carried : 0;
            carried = 0;
            APR_ARRAY_PUSH(steps, crm_step_t) = reader.step;
        }
        else {
            carried += reader.step.delay;
        }
    }
    return NULL;
}

const char *crm_steps_read(apr_array_header_t **steps_p, json_object *list,
                           const crm_reading_t *reading)
{
    apr_pool_t *pool = reading->pool;
    const char *pacing, *rule, *where;
    apr_int64_t between;

    *steps_p = apr_array_make(pool, 8, sizeof(crm_step_t));
    if (list && !json_object_is_type(list, json_type_array)) {
        return "steps must be an array";
    }
    if (!list || !json_object_array_length(list)) {
        return "there are no steps";
    }
    if (json_object_array_length(list) > (size_t)reading->max_steps) {
        return apr_psprintf(pool, "there must be at most %d steps",
                            reading->max_steps);
    }
    rule = crm_pacing_parse(&pacing, &between, &where,
                            json_object_object_get(reading->subject->plan,
                                                   "pacing"),
                            reading->subject->time_zone, pool);
    if (rule) {
        return crm_pointer_rule("pacing", where, rule, pool);
    }
    rule = read_steps(*steps_p, &where, list, between, reading);
    return crm_pointer_rule("steps", where, rule, pool);
}

const char *crm_steps_check(const char **where_p, json_object *list,
                            apr_pool_t *pool)
{
    /* who can use no channel: no text is filled in */
    static const char *const none[] = {NULL};
    static const crm_subject_t nobody = {.channels = none};
    const crm_reading_t reading = {&nobody, CRM_STEPS_MAX, 1, pool};
    apr_array_header_t *steps = apr_array_make(pool, 1, sizeof(crm_step_t));

    *where_p = "";
    if (!json_object_is_type(list, json_type_array)) {
        return "must be an array";
    }
    return json_object_array_length(list) > CRM_STEPS_MAX
           ? "must have at most 100 steps"
           : read_steps(steps, where_p, list, 0, &reading);
}
