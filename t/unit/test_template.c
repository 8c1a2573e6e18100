/* SPDX-License-Identifier: Apache-2.0 */
/* test_template.c: the finer points of steps from templates, and of those that
 * a model made (contract 11.6, 11.8) */
#include "crm_check.h"

#include <json-c/json.h>
#include <string.h>

#include "apr_strings.h"

#include "crmapid_generate.h"

#define DAY 86400

static const char *const all[] = {"email", "sms", "voice", NULL};
static const char *const email_only[] = {"email", NULL};
static const char *const voice_only[] = {"voice", NULL};

static const crmd_config_t config = {.generator = "template", .max_steps = 5};

/* Fill SUBJECT with a contact, CHANNELS and a template of STEPS and PACING. */
static void make_subject(crm_subject_t *subject, const char *const *channels,
                         const char *steps, const char *pacing)
{
    memset(subject, 0, sizeof(*subject));
    subject->contact = crm_json("{\"first_name\":\"Ada\",\"phone_numbers\":[]}");
    subject->plan = crm_json("{\"name\":\"Spring\"}");
    json_object_object_add(subject->plan, "steps", crm_json(steps));
    json_object_object_add(subject->plan, "pacing", crm_json(pacing));
    subject->time_zone = "UTC";
    subject->channels = channels;
}

static void free_subject(crm_subject_t *subject)
{
    json_object_put(subject->contact);
    json_object_put(subject->plan);
}

/* What the template's generator makes of STEPS for a contact with CHANNELS. */
static crmd_outline_t generate(const char *const *channels, const char *steps,
                               const char *pacing)
{
    crmd_outline_t outline = {NULL, NULL, NULL, 0};
    crm_subject_t subject;

    make_subject(&subject, channels, steps, pacing);
    crmd_generator_template.generate(&outline, &subject, &config, NULL,
                                     crm_check_pool());
    free_subject(&subject);
    ck_assert_msg(!outline.setback, "a template waits for nothing: %s",
                  outline.setback);
    return outline;
}

#define EMAIL(REST) "{\"channel\":\"email\",\"email_subject\":\"S\"," \
    "\"email_body\":\"B\"" REST "}"
#define SMS(REST) "{\"channel\":\"sms\",\"sms_body\":\"T\"" REST "}"
#define VOICE(REST) "{\"channel\":\"voice\",\"voice_script\":\"V\"" REST "}"

/* Delays: of the first none; of steps that are left out to the next. */
static const struct {
    const char *const *channels;
    const char *steps;
    const char *pacing;
    int count;
    apr_int64_t delays[4];
} delays[] = {
    {all, "[" EMAIL("") "," EMAIL("") "]", "{\"days_between_steps\":3}", 2,
     {0, 3 * DAY}},
    {all, "[" EMAIL("") "," EMAIL(",\"delay\":null") "]", "{}", 2,
     {0, 2 * DAY}},
    {all, "[" EMAIL("") "," EMAIL(",\"delay\":0") "]", "{}", 2, {0, 0}},
    {email_only, "[" EMAIL("") "," SMS(",\"delay\":1") ","
     VOICE(",\"delay\":\"1h\"") "," EMAIL(",\"delay\":\"1s\"") ","
     EMAIL(",\"delay\":1") "]", "{}", 3, {0, DAY + 3601, DAY}},
    {email_only, "[" SMS("") "," VOICE(",\"delay\":5") ","
     EMAIL(",\"delay\":7") "," EMAIL(",\"delay\":1") "]", "{}", 2, {0, DAY}},
    {email_only, "[" EMAIL("") "," SMS(",\"delay\":1") "]", "{}", 1, {0}},
};

START_TEST(delays_of_steps)
{
    crmd_outline_t outline = generate(delays[_i].channels, delays[_i].steps,
                                      delays[_i].pacing);

    ck_assert_msg(!outline.failure, "%s", outline.failure);
    ck_assert_int_eq(outline.steps->nelts, delays[_i].count);
    for (int i = 0; i < delays[_i].count; i++) {
        ck_assert_int_eq(APR_ARRAY_IDX(outline.steps, i, crm_step_t).delay,
                         delays[_i].delays[i]);
    }
}
END_TEST

/* The contact has no number: what an SMS would say of it does not matter, but
 * a field that nobody has is the template's mistake whoever the contact is. */
START_TEST(left_out)
{
    static const char known[] = "[" EMAIL("") ",{\"channel\":\"sms\","
        "\"sms_body\":\"Is {{phone_number}} yours?\"}]";
    static const char unknown[] = "[" EMAIL("") ",{\"channel\":\"sms\","
        "\"sms_body\":\"Is {{phone}} yours?\"}]";
    crmd_outline_t outline = generate(email_only, known, "{}");

    ck_assert_msg(!outline.failure, "%s", outline.failure);
    ck_assert_int_eq(outline.steps->nelts, 1);
    outline = generate(all, known, "{}");
    ck_assert_str_eq(outline.failure, "steps[1].sms_body: {{phone_number}} is"
                     " empty here, and there is no fallback");
    outline = generate(email_only, unknown, "{}");
    ck_assert_str_eq(outline.failure, "steps[1].sms_body: {{phone}} is not a"
                     " known field");
}
END_TEST

static const struct {
    const char *const *channels;
    const char *steps;
    const char *pacing;
    const char *failure;
} bad[] = {
    {voice_only, "[" EMAIL("") "," SMS("") "]", "{}", "no_usable_channels"},
    {all, "[" EMAIL("") ",\"email\"]", "{}", "steps[1]: must be an object"},
    {all, "[{\"channel\":\"Email\"}]", "{}",
     "steps[0].channel: must be email, sms or voice"},
    {all, "[{\"channel\":\"email\",\"email_subject\":\"S\","
     "\"email_body\":null}]", "{}", "steps[0].email_body: is required"},
    {all, "[{\"channel\":\"voice\",\"voice_objective\":\"x\"}]", "{}",
     "steps[0].voice_script: is required"},
    {email_only, "[" EMAIL("") ",{\"channel\":\"sms\"}]", "{}",
     "steps[1].sms_body: is required"},
    {all, "[" EMAIL(",\"subject\":null") "]", "{}",
     "steps[0].subject: is not a known member"},
    {all, "[" EMAIL(",\"a\\nb\":1") "]", "{}",
     "steps[0]....: is not a known member"},
    {all, "[{\"channel\":\"sms\",\"sms_body\":\"a\\u0000b\"}]", "{}",
     "steps[0].sms_body: must be a text that is not empty"},
    {all, "[{\"channel\":\"sms\",\"sms_body\":\" \\u00a0\\u200b\\n\"}]", "{}",
     "steps[0].sms_body: must be a text that is not empty"},
    {all, "[{\"channel\":\"email\",\"email_subject\":\"{{custom.x|}}\","
     "\"email_body\":\"B\"}]", "{}",
     "steps[0].email_subject: is empty with its fields filled in"},
    {all, "[" EMAIL("") "]", "{\"window\":7}",
     "pacing.window: must be an object"},
};

START_TEST(refused)
{
    crmd_outline_t outline = generate(bad[_i].channels, bad[_i].steps,
                                      bad[_i].pacing);

    ck_assert_msg(outline.failure != NULL, "%s was taken", bad[_i].steps);
    ck_assert_str_eq(outline.failure, bad[_i].failure);
}
END_TEST

/* The steps of each text that has a limit: before it, and after it. */
static const struct {
    const char *before;
    const char *after;
    int max;                    /* characters */
} texts[] = {
    {"[{\"channel\":\"email\",\"email_body\":\"B\",\"email_subject\":\"",
     "\"}]", 1000},
    {"[{\"channel\":\"email\",\"email_subject\":\"S\",\"email_body\":\"",
     "\"}]", 65536},
    {"[{\"channel\":\"sms\",\"sms_body\":\"", "\"}]", 1600},
    {"[{\"channel\":\"voice\",\"voice_script\":\"", "\"}]", 4096},
    {"[{\"channel\":\"voice\",\"voice_script\":\"V\",\"voice_objective\":\"",
     "\"}]", 65536},
};

/* A text may be as long as its limit, in characters, and no longer. */
START_TEST(lengths)
{
    char *text = apr_palloc(crm_check_pool(), 2 * 65537 + 1);

    for (int more = 0; more < 2; more++) {
        int n = texts[_i].max + more;
        crmd_outline_t outline;

        for (int i = 0; i < n; i++) {
            memcpy(text + 2 * i, "\xc3\xb8", 2);
        }
        text[2 * n] = '\0';
        outline = generate(all, apr_pstrcat(crm_check_pool(),
                                            texts[_i].before, text,
                                            texts[_i].after, NULL), "{}");
        ck_assert_msg((outline.failure != NULL) == more, "%d characters: %s",
                      n, outline.failure);
    }
}
END_TEST

/* Steps that a model made: final texts, no channel but the subject's. */
static const struct {
    const char *steps;
    const char *wrong;          /* NULL: taken */
} finals[] = {
    {"[" EMAIL("") "]", NULL},
    {"[" EMAIL("") "," SMS("") "]",
     "steps[1].channel: is not one that can be used here"},
    {"[{\"channel\":\"email\",\"email_subject\":\"S\","
     "\"email_body\":\"Hi {{first_name}}\"}]",
     "steps[0].email_body: must have no merge fields left"},
    {"[]", "there are no steps"},
};

START_TEST(final_texts)
{
    crm_subject_t subject;
    crm_reading_t reading = {&subject, 5, 0, crm_check_pool()};
    apr_array_header_t *steps;
    const char *wrong;

    make_subject(&subject, email_only, finals[_i].steps, "{}");
    wrong = crm_steps_read(&steps, json_object_object_get(subject.plan,
                                                          "steps"), &reading);
    ck_assert_msg((wrong != NULL) == (finals[_i].wrong != NULL), "%s: %s",
                  finals[_i].steps, wrong ? wrong : "taken");
    if (wrong) {
        ck_assert_str_eq(wrong, finals[_i].wrong);
    }
    else {
        ck_assert_int_eq(steps->nelts, 1);
    }
    free_subject(&subject);
}
END_TEST

START_TEST(choosing)
{
    crmd_config_t other = {.generator = "openai", .openai_url = "",
                           .openai_model = ""};

    ck_assert_ptr_eq(crmd_generator_of(&config), &crmd_generator_template);
    ck_assert_ptr_eq(crmd_generator_of(&other), &crmd_generator_openai);
    ck_assert(!crmd_generator_template.check(&config, crm_check_pool()));
    ck_assert_str_eq(crmd_generator_openai.check(&other,
                                                 crm_check_pool())->message,
                     "openai_url is not set: the generator openai needs it");
    other.openai_url = "http://127.0.0.1/v1";
    ck_assert_str_eq(crmd_generator_openai.check(&other,
                                                 crm_check_pool())->message,
                     "openai_model is not set: the generator openai needs it");
    other.openai_model = "m";
    ck_assert(!crmd_generator_openai.check(&other, crm_check_pool()));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("template");
    TCase *tcase = tcase_create("template");

    tcase_add_loop_test(tcase, delays_of_steps, 0, COUNT(delays));
    tcase_add_test(tcase, left_out);
    tcase_add_loop_test(tcase, refused, 0, COUNT(bad));
    tcase_add_loop_test(tcase, lengths, 0, COUNT(texts));
    tcase_add_loop_test(tcase, final_texts, 0, COUNT(finals));
    tcase_add_test(tcase, choosing);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
