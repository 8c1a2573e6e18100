/* SPDX-License-Identifier: Apache-2.0 */
/* test_pacing.c: when steps may be sent, as templates say it (contract 11.8) */
#include "crm_check.h"

#include <json-c/json.h>
#include <string.h>

#include "crm_pacing.h"
#include "crm_pointer.h"

#define DAY 86400

/* What is taken: the normalised text, and the seconds between steps. */
static const struct {
    const char *pacing;         /* NULL: the template has none */
    const char *fits;
    apr_int64_t between;
} good[] = {
    {NULL, "{\"time_zone\":\"Asia/Tokyo\"}", 2 * DAY},
    {"{}", "{\"time_zone\":\"Asia/Tokyo\"}", 2 * DAY},
    {"{\"days_between_steps\":0}", "{\"time_zone\":\"Asia/Tokyo\"}", 0},
    {"{\"days_between_steps\":0.5}", "{\"time_zone\":\"Asia/Tokyo\"}", 43200},
    {"{\"days_between_steps\":365}", "{\"time_zone\":\"Asia/Tokyo\"}",
     365 * DAY},
    {"{\"time_zone\":\"Etc/GMT+5\"}", "{\"time_zone\":\"Etc/GMT+5\"}",
     2 * DAY},
    {"{\"time_zone\":\"America/Port-au-Prince\"}",
     "{\"time_zone\":\"America/Port-au-Prince\"}", 2 * DAY},
    {"{\"window\":null}", "{\"time_zone\":\"Asia/Tokyo\"}", 2 * DAY},
    {"{\"window\":{}}", "{\"time_zone\":\"Asia/Tokyo\",\"from\":\"00:00\","
     "\"to\":\"24:00\",\"days\":[1,2,3,4,5,6,7]}", 2 * DAY},
    {"{\"window\":{\"from\":\"09:00\",\"to\":\"17:30\"}}",
     "{\"time_zone\":\"Asia/Tokyo\",\"from\":\"09:00\",\"to\":\"17:30\","
     "\"days\":[1,2,3,4,5,6,7]}", 2 * DAY},
    {"{\"window\":{\"from\":\"23:59\",\"to\":\"24:00\","
     "\"days\":[\"sun\",\"mon\",\"mon\"]},\"days_between_steps\":1,"
     "\"time_zone\":\"Europe/Berlin\"}",
     "{\"time_zone\":\"Europe/Berlin\",\"from\":\"23:59\",\"to\":\"24:00\","
     "\"days\":[1,7]}", DAY},
};

/* What is refused: with its member, and no other. */
static const struct {
    const char *pacing;
    const char *wrong;
} bad[] = {
    {"[]", "pacing: must be an object"},
    {"\"often\"", "pacing: must be an object"},
    {"{\"days\":1}", "pacing.days: is not a known member"},
    {"{\"a\\nb\":1}", "pacing....: is not a known member"},
    {"{\"days_between_steps\":-1}",
     "pacing.days_between_steps: must be a number from 0 to 365"},
    {"{\"days_between_steps\":365.1}",
     "pacing.days_between_steps: must be a number from 0 to 365"},
    {"{\"days_between_steps\":\"2\"}",
     "pacing.days_between_steps: must be a number from 0 to 365"},
    {"{\"days_between_steps\":null}",
     "pacing.days_between_steps: must be a number from 0 to 365"},
    {"{\"days_between_steps\":true}",
     "pacing.days_between_steps: must be a number from 0 to 365"},
    {"{\"time_zone\":\"\"}",
     "pacing.time_zone: must be the name of a time zone such as Europe/Berlin"},
    {"{\"time_zone\":\"A/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}",
     "pacing.time_zone: must be the name of a time zone such as Europe/Berlin"},
    {"{\"time_zone\":7}",
     "pacing.time_zone: must be the name of a time zone such as Europe/Berlin"},
    {"{\"time_zone\":null}",
     "pacing.time_zone: must be the name of a time zone such as Europe/Berlin"},
    {"{\"time_zone\":\"Mars/One\"}",
     "pacing.time_zone: must be the name of a time zone such as Europe/Berlin"},
    {"{\"time_zone\":\"EST5\"}",
     "pacing.time_zone: must be the name of a time zone such as Europe/Berlin"},
    {"{\"time_zone\":\"PST\"}",
     "pacing.time_zone: must be the name of a time zone such as Europe/Berlin"},
    {"{\"time_zone\":\"../etc/passwd\"}",
     "pacing.time_zone: must be the name of a time zone such as Europe/Berlin"},
    {"{\"time_zone\":\"UTC' OR 1\"}",
     "pacing.time_zone: must be the name of a time zone such as Europe/Berlin"},
    {"{\"window\":\"09:00\"}", "pacing.window: must be an object"},
    {"{\"window\":{\"until\":\"09:00\"}}",
     "pacing.window.until: is not a known member"},
    {"{\"window\":{\"from\":\"9:00\"}}",
     "pacing.window.from: must be a time such as 09:00"},
    {"{\"window\":{\"from\":\"09:60\"}}",
     "pacing.window.from: must be a time such as 09:00"},
    {"{\"window\":{\"from\":\"09-00\"}}",
     "pacing.window.from: must be a time such as 09:00"},
    {"{\"window\":{\"from\":\"09:0\"}}",
     "pacing.window.from: must be a time such as 09:00"},
    {"{\"window\":{\"from\":\"09:00x\"}}",
     "pacing.window.from: must be a time such as 09:00"},
    {"{\"window\":{\"from\":9}}",
     "pacing.window.from: must be a time such as 09:00"},
    {"{\"window\":{\"to\":\"24:01\"}}",
     "pacing.window.to: must be a time such as 09:00"},
    {"{\"window\":{\"to\":\"25:00\"}}",
     "pacing.window.to: must be a time such as 09:00"},
    {"{\"window\":{\"to\":null}}",
     "pacing.window.to: must be a time such as 09:00"},
    {"{\"window\":{\"from\":\"17:00\",\"to\":\"09:00\"}}",
     "pacing.window.to: must be later than from"},
    {"{\"window\":{\"from\":\"09:00\",\"to\":\"09:00\"}}",
     "pacing.window.to: must be later than from"},
    {"{\"window\":{\"from\":\"24:00\"}}",
     "pacing.window.to: must be later than from"},
    {"{\"window\":{\"days\":null}}",
     "pacing.window.days: must be an array"},
    {"{\"window\":{\"days\":[]}}", "pacing.window.days: must name at least one"
     " of mon, tue, wed, thu, fri, sat, sun"},
    {"{\"window\":{\"days\":[\"Mon\"]}}", "pacing.window.days[0]: must name at"
     " least one of mon, tue, wed, thu, fri, sat, sun"},
    {"{\"window\":{\"days\":[\"mon\",1]}}", "pacing.window.days[1]: must name at"
     " least one of mon, tue, wed, thu, fri, sat, sun"},
    {"{\"window\":{\"days\":\"mon\"}}", "pacing.window.days: must name at"
     " least one of mon, tue, wed, thu, fri, sat, sun"},
};

static const struct {
    const char *delay;
    apr_int64_t seconds;        /* -1: it is none */
} delays[] = {
    {"0", 0}, {"2", 2 * DAY}, {"0.25", 21600}, {"0.175", 15120}, {"365", 365 * DAY},
    {"\"0s\"", 0}, {"\"90s\"", 90}, {"\"45m\"", 2700}, {"\"36h\"", 129600},
    {"\"2d\"", 2 * DAY}, {"\"1d12h\"", 129600}, {"\"1d2h3m4s\"", 93784},
    {"\"365d\"", 365 * DAY}, {"\"8760h\"", 365 * DAY},
    {"-1", -1}, {"365.5", -1}, {"1e300", -1}, {"true", -1}, {"[]", -1},
    {"{}", -1}, {"\"\"", -1}, {"\"d\"", -1}, {"\"2\"", -1}, {"\"2w\"", -1},
    {"\"-2d\"", -1}, {"\"+2d\"", -1}, {"\" 2d\"", -1}, {"\"2d \"", -1},
    {"\"2 d\"", -1}, {"\"1.5d\"", -1}, {"\"2D\"", -1}, {"\"366d\"", -1},
    {"\"365d1s\"", -1}, {"\"999999999d\"", -1}, {"\"9999999999d\"", -1},
    {"\"99999999999999999999s\"", -1},
    /* 2^64 s and some hours */
    {"\"213503982334602d\"", -1}, {"\"1dd\"", -1},
};

START_TEST(pacing_taken)
{
    json_object *pacing = good[_i].pacing
                          ? json_tokener_parse(good[_i].pacing) : NULL;
    apr_int64_t between = -1;
    const char *fits = NULL, *wrong, *where;
    json_object *parsed;

    wrong = crm_pacing_parse(&fits, &between, &where, pacing, "Asia/Tokyo",
                             crm_check_pool());
    ck_assert_msg(!wrong, "%s: %s", good[_i].pacing, wrong);
    ck_assert_str_eq(fits, good[_i].fits);
    ck_assert_int_eq(between, good[_i].between);
    parsed = json_tokener_parse(fits);
    ck_assert_msg(parsed != NULL, "%s is no JSON", fits);
    json_object_put(parsed);
    json_object_put(pacing);
}
END_TEST

START_TEST(pacing_refused)
{
    json_object *pacing = json_tokener_parse(bad[_i].pacing);
    apr_int64_t between;
    const char *fits, *wrong, *where;

    ck_assert(pacing != NULL);
    wrong = crm_pacing_parse(&fits, &between, &where, pacing, "UTC",
                             crm_check_pool());
    wrong = crm_pointer_rule("pacing", where, wrong, crm_check_pool());
    ck_assert_msg(wrong != NULL, "%s was taken: %s", bad[_i].pacing, fits);
    ck_assert_str_eq(wrong, bad[_i].wrong);
    json_object_put(pacing);
}
END_TEST

START_TEST(delay)
{
    json_object *value = json_tokener_parse(delays[_i].delay);
    apr_int64_t seconds = -2;
    const char *wrong = crm_delay_parse(&seconds, value, crm_check_pool());

    if (delays[_i].seconds < 0) {
        ck_assert_msg(wrong != NULL, "%s was taken", delays[_i].delay);
        ck_assert_msg(strstr(wrong, "1d12h") != NULL, "%s", wrong);
    }
    else {
        ck_assert_msg(!wrong, "%s: %s", delays[_i].delay, wrong);
        ck_assert_int_eq(seconds, delays[_i].seconds);
    }
    json_object_put(value);
}
END_TEST

/* A number that only as a string, or never, can be had from json_tokener. */
START_TEST(delay_odd)
{
    json_object *nan = json_object_new_double(0.0 / 0.0);
    apr_int64_t seconds;

    ck_assert(crm_delay_parse(&seconds, nan, crm_check_pool()) != NULL);
    ck_assert(crm_delay_parse(&seconds, NULL, crm_check_pool()) != NULL);
    json_object_put(nan);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pacing");
    TCase *tcase = tcase_create("pacing");

    tcase_add_loop_test(tcase, pacing_taken, 0, COUNT(good));
    tcase_add_loop_test(tcase, pacing_refused, 0, COUNT(bad));
    tcase_add_loop_test(tcase, delay, 0, COUNT(delays));
    tcase_add_test(tcase, delay_odd);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
