/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_pacing.c: a template's pacing, delays and steps, from any JSON */
/* libFuzzer: -max_len=4096 */
#include <json-c/json.h>

#include "fuzz.h"

#include "crm_json.h"
#include "crm_pacing.h"
#include "crm_steps.h"

#define YEAR (365 * 86400)

/* What is wrong is one line that a log can have. */
static int is_wrong(const char *wrong)
{
    must(!wrong || (strlen(wrong) < 400 && !strpbrk(wrong, "\r\n")));
    return wrong != NULL;
}

/* What is taken is JSON with a time zone and a window or none, and is taken
 * again as it is. */
static void try_pacing(json_object *value, apr_pool_t *pool)
{
    apr_int64_t between;
    const char *text, *where;
    json_object *fits;

    if (is_wrong(crm_pacing_parse(&text, &between, &where, value, "UTC",
                                  pool))) {
        return;
    }
    must(between >= 0 && between <= YEAR);
    fits = json_tokener_parse(text);
    must(json_object_object_get(fits, "time_zone") != NULL);
    must(json_object_object_length(fits) == 1
         || (json_object_object_length(fits) == 4
             && json_object_array_length(json_object_object_get(fits, "days"))
             && strcmp(json_object_get_string(json_object_object_get(fits,
                                                                     "from")),
                       json_object_get_string(json_object_object_get(fits,
                                                                     "to")))
                < 0));
    json_object_put(fits);
}

static void try_steps(json_object *value, int merge, apr_pool_t *pool)
{
    static const char *const channels[] = {"email", "sms", NULL};
    crm_subject_t subject = {.time_zone = "UTC", .channels = channels};
    crm_reading_t reading = {&subject, 4, merge, pool};
    apr_array_header_t *steps;
    const char *where;

    is_wrong(crm_steps_check(&where, json_object_object_get(value, "steps"),
                             pool));
    must(!*where || *where == '/');
    subject.plan = value;
    if (is_wrong(crm_steps_read(&steps, json_object_object_get(value, "steps"),
                                 &reading))) {
        return;
    }
    must(steps->nelts <= 4 && (merge || steps->nelts));
    for (int i = 0; i < steps->nelts; i++) {
        const crm_step_t *step = &APR_ARRAY_IDX(steps, i, crm_step_t);

        must(step->delay >= 0 && step->delay <= 4 * (apr_int64_t)YEAR);
        must(i || !step->delay);
        must(!strcmp(step->channel, "email")
             ? step->email_subject && step->email_body && !step->sms_body
             : !strcmp(step->channel, "sms") && step->sms_body
               && !step->email_body);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool = fuzz_pool(NULL);
    apr_int64_t seconds = 0;
    json_object *value;
    apr_size_t offset;

    if (!crm_json_parse(&value, &offset, (const char *)data, size, pool)) {
        try_pacing(value, pool);
        if (!is_wrong(crm_delay_parse(&seconds, value, pool))) {
            must(seconds >= 0 && seconds <= YEAR);
        }
        if (json_object_is_type(value, json_type_object)) {
            try_pacing(json_object_object_get(value, "pacing"), pool);
            try_steps(value, 0, pool);
            try_steps(value, 1, pool);
        }
    }
    apr_pool_destroy(pool);
    return 0;
}
