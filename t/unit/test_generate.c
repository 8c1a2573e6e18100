/* SPDX-License-Identifier: Apache-2.0 */
/* test_generate.c: steps from a template (contract 11.8) */
#include "crm_check.h"

#include <json-c/json.h>
#include <string.h>

#include "apr_strings.h"

#include "crm_json.h"
#include "crmapid_generate.h"

/* Return the JSON TEXT, for as long as the program runs. */
static json_object *json(const char *text)
{
    json_object *value = NULL;
    apr_size_t offset;
    const char *wrong = crm_json_parse(&value, &offset, text, strlen(text),
                                       crm_check_pool());

    ck_assert_msg(!wrong, "%s: %s", text, wrong);
    return value;
}

static const char *const all_channels[] = {"email", "sms", "voice", NULL};
static const char *const mail_only[] = {"email", NULL};

/* A subject with the template PLAN. */
static crm_subject_t subject_of(const char *plan)
{
    crm_subject_t subject;

    memset(&subject, 0, sizeof(subject));
    subject.contact = json("{\"id\":\"c-id\",\"first_name\":\"Änne\","
        "\"last_name\":\"\",\"job_title\":null,\"company\":null,"
        "\"emails\":[{\"email\":\"b@x.org\",\"is_primary\":false},"
        "{\"email\":\"a@x.org\",\"is_primary\":true}],\"phone_numbers\":[],"
        "\"deal_value\":12.5,\"tags\":[\"vip\"],\"notes\":\"x\\r\\ny\","
        "\"custom_fields\":{\"size\":7,\"ok\":true,\"list\":[1],"
        "\"code\":\"{{first_name}}\"}}");
    subject.company = json("{\"name\":\"Acme\",\"city\":\"Köln\"}");
    subject.agent = json("{\"name\":\"Ada\",\"summary\":\"answers\"}");
    subject.plan = json(plan);
    subject.time_zone = "UTC";
    subject.channels = all_channels;
    return subject;
}

/* ---- the template generator ---- */

/* Generate from PLAN for CHANNELS. */
static crmd_outline_t template_of(const char *plan,
                                  const char *const *channels)
{
    crm_subject_t subject = subject_of(plan);
    crmd_outline_t outline = {NULL, NULL, NULL, 0};

    crmd_config_t *config = apr_pcalloc(crm_check_pool(), sizeof(*config));

    config->max_steps = 5;
    subject.channels = channels;
    crmd_generator_template.generate(&outline, &subject, config, NULL,
                                     crm_check_pool());
    return outline;
}

#define MAIL(more) "{\"channel\":\"email\",\"email_subject\":\"s\"," \
    "\"email_body\":\"b\"" more "}"

START_TEST(template_steps_and_their_delays)
{
    crmd_outline_t outline = template_of("{\"pacing\":"
        "{\"days_between_steps\":1},\"steps\":["
        MAIL(",\"delay\":\"9d\"") ",{\"channel\":\"sms\",\"sms_body\":\"m\","
        "\"delay\":\"2h\"},{\"channel\":\"voice\",\"voice_script\":\"v\"}]}",
        all_channels);
    const crm_step_t *steps;

    ck_assert_msg(!outline.failure, "%s", outline.failure);
    ck_assert_int_eq(outline.steps->nelts, 3);
    steps = (const crm_step_t *)outline.steps->elts;
    ck_assert_int_eq(steps[0].delay, 0);    /* the first is sent now */
    ck_assert_int_eq(steps[1].delay, 7200);
    ck_assert_int_eq(steps[2].delay, 86400);
    ck_assert_str_eq(steps[0].email_subject, "s");
    ck_assert_str_eq(steps[1].sms_body, "m");
    ck_assert_ptr_null(steps[1].email_body);
    ck_assert_str_eq(steps[2].voice_script, "v");
    ck_assert_ptr_null(steps[2].voice_objective);
}
END_TEST

START_TEST(channels_that_cannot_be_used_are_left_out)
{
    crmd_outline_t outline = template_of("{\"pacing\":{},\"steps\":["
        "{\"channel\":\"sms\",\"sms_body\":\"m\"}," MAIL("")
        ",{\"channel\":\"voice\",\"voice_script\":\"v\",\"delay\":\"1h\"},"
        MAIL(",\"delay\":\"1d\"") "]}", mail_only);
    const crm_step_t *steps = (const crm_step_t *)outline.steps->elts;

    ck_assert_msg(!outline.failure, "%s", outline.failure);
    ck_assert_int_eq(outline.steps->nelts, 2);
    ck_assert_int_eq(steps[0].delay, 0);
    ck_assert_int_eq(steps[1].delay, 90000);    /* the call's hour counts */
    outline = template_of("{\"steps\":[{\"channel\":\"sms\","
                          "\"sms_body\":\"m\"}]}", mail_only);
    ck_assert_str_eq(outline.failure, "no_usable_channels");
}
END_TEST

static const struct {
    const char *steps, *wrong;
} bad_steps[] = {
    {"null", "there are no steps"}, {"{}", "steps must be an array"},
    {"[]", "there are no steps"},
    {"[1]", "steps[0]: must be an object"},
    {"[{}]", "steps[0].channel: must be"},
    {"[{\"channel\":\"fax\"}]", "steps[0].channel: must be"},
    {"[{\"channel\":1}]", "steps[0].channel: must be"},
    {"[{\"channel\":\"sms\"}]", "steps[0].sms_body: is required"},
    {"[{\"channel\":\"sms\",\"sms_body\":\" \\n\"}]",
     "steps[0].sms_body: must be a text"},
    {"[{\"channel\":\"sms\",\"sms_body\":1}]",
     "steps[0].sms_body: must be a text"},
    {"[{\"channel\":\"sms\",\"sms_body\":\"x\",\"email_body\":\"y\"}]",
     "steps[0].email_body: does not belong to a step by sms"},
    {"[{\"channel\":\"sms\",\"sms_body\":\"x\",\"body\":\"y\"}]",
     "steps[0].body: is not a known member"},
    {"[" MAIL("") "," MAIL(",\"delay\":\"soon\"") "]",
     "steps[1].delay: must be"},
    {"[" MAIL("") ",{\"channel\":\"email\",\"email_subject\":\"s\","
     "\"email_body\":\"{{oops}}\"}]", "steps[1].email_body: {{oops}} is not"},
    {"[{\"channel\":\"email\",\"email_subject\":\"a\\nb\","
     "\"email_body\":\"x\"}]", "steps[0].email_subject: must be one line"},
    {"[" MAIL("") "," MAIL("") "," MAIL("") "," MAIL("") "," MAIL("") ","
     MAIL("") "]", "there must be at most 5 steps"},
};

START_TEST(wrong_steps_are_told_by_place)
{
    crmd_outline_t outline = template_of(
        apr_pstrcat(crm_check_pool(), "{\"pacing\":{},\"steps\":",
                    bad_steps[_i].steps, "}", NULL), all_channels);

    ck_assert_msg(outline.failure
                  && !strncmp(outline.failure, bad_steps[_i].wrong,
                              strlen(bad_steps[_i].wrong)),
                  "%s: %s", bad_steps[_i].steps,
                  outline.failure ? outline.failure : "taken");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("generate");
    TCase *tcase = tcase_create("template");

    tcase_add_test(tcase, template_steps_and_their_delays);
    tcase_add_test(tcase, channels_that_cannot_be_used_are_left_out);
    tcase_add_loop_test(tcase, wrong_steps_are_told_by_place, 0,
                        COUNT(bad_steps));
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
