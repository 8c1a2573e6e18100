/* SPDX-License-Identifier: Apache-2.0 */
/* test_checks.c: what names places and mistakes: pointers, nearly equal words,
 * origins, time zones (contract 14.2) */
#include "crm_check.h"

#include "crm_near.h"
#include "crm_origin.h"
#include "crm_pointer.h"
#include "crm_zone.h"

START_TEST(pointers)
{
    apr_pool_t *pool = crm_check_pool();

    ck_assert_str_eq(crm_pointer_member("", "a/b~c", pool), "/a~1b~0c");
    ck_assert_str_eq(crm_pointer_member("/x", "", pool), "/x/");
    ck_assert_str_eq(crm_pointer_member("/x", "a\nb", pool), "/x/...");
    ck_assert_str_eq(crm_pointer_item("/steps", 12, pool), "/steps/12");
    ck_assert_str_eq(crm_pointer_path("emails[0].email", pool),
                     "/emails/0/email");
    ck_assert_str_eq(crm_pointer_path("name", pool), "/name");
    ck_assert_str_eq(crm_pointer_path("/a.b", pool), "/a.b");
    ck_assert_str_eq(crm_pointer_path("", pool), "");
    ck_assert_str_eq(crm_pointer_rule("steps", "/10/email_body", "is X", pool),
                     "steps[10].email_body: is X");
    ck_assert_str_eq(crm_pointer_rule("f", "/a~1b~0/0", "is X", pool),
                     "f.a/b~[0]: is X");
    ck_assert_str_eq(crm_pointer_rule("f", "", "is X", pool), "f: is X");
    ck_assert_str_eq(crm_pointer_rule("f", "/", "is X", pool), "f.: is X");
    ck_assert_ptr_null(crm_pointer_rule("f", "/a", NULL, pool));
}
END_TEST

/* Whether WORD is meant by who has TRIED another. */
typedef struct guess_t {
    const char *word;
    const char *tried;
    int is_near;
} guess_t;

static const guess_t words[] = {
    {"required", "requierd", 1}, {"required", "requird", 1},
    {"required", "Required", 1}, {"required", "reqired ", 1},
    {"required", "desired", 0}, {"max_length", "max_lenght", 1},
    {"max_length", "maxlenth", 1}, {"max_length", "min_length", 1},
    {"min", "mn", 1}, {"min", "hint", 0}, {"min", "nim", 0},
    {"label", "lable", 1}, {"type", "text", 0}, {"label", "order", 0},
    {"email", "emial", 1}, {"email", "", 0}, {"a", "", 1},
    {"email", "emailemailemailemailemailemailemailemail", 0},
};

START_TEST(near_words)
{
    ck_assert_msg(crm_near(words[_i].word, words[_i].tried)
                  == words[_i].is_near, "%s, %s", words[_i].word,
                  words[_i].tried);
    ck_assert_int_eq(crm_near(words[_i].tried, words[_i].word),
                     words[_i].is_near);
}
END_TEST

static const guess_t parts[] = {
    {"pipeline_stage_id", "stage", 1}, {"pipeline_stage_id", "stage_id", 1},
    {"pipeline_stage_id", "stageId", 1}, {"pipeline_stage_id", "PipelineStage", 1},
    {"pipeline_stage_id", "pipeline_id", 0}, {"pipeline_stage_id", "id", 0},
    {"pipeline_stage_id", "stag", 0}, {"pipeline_stage_id", "age_id", 0},
    {"pipeline_stage_id", "stage_idx", 0}, {"pipeline_stage_id", "stage_", 0},
    {"pipeline_stage_id", "", 0}, {"pipeline_stage_id", "___", 0},
    {"due_date", "due", 1}, {"tags", "tags", 1}, {"", "due", 0},
};

static const guess_t others[] = {
    {"page_size", "limit", 1}, {"page_size", "per_page", 1}, {"page_size", "perPage", 1},
    {"page_size", "PER-PAGE", 1}, {"page_size", "limits", 0}, {"page_size", "lim", 0},
    {"page", "offset", 1}, {"cursor", "offset", 1}, {"search", "q", 1}, {"sort", "q", 0},
    {"search", "", 0}, {"search", "_", 0}, {"", "q", 0}, {"updated_after", "since", 1},
    {"last_name", "surname", 1}, {"first_name", "surname", 0}, {"limit", "page_size", 0},
};

START_TEST(names_of_others)
{
    ck_assert_msg(crm_near_other(others[_i].word, others[_i].tried)
                  == others[_i].is_near, "%s, %s", others[_i].word,
                  others[_i].tried);
}
END_TEST

START_TEST(parts_of_names)
{
    ck_assert_msg(crm_near_part(parts[_i].word, parts[_i].tried)
                  == parts[_i].is_near, "%s, %s", parts[_i].word,
                  parts[_i].tried);
}
END_TEST

static const struct {
    const char *text;
    int is_good;
} origins[] = {
    {"https://www.example.com", 1}, {"http://localhost:8080", 1},
    {"https://WIKI.example", 1}, {"http://[::1]:8080", 1},
    {"http://127.0.0.1", 1}, {"https://a_b.example:65535", 1},
    {"", 0}, {"https://", 0}, {"www.example.com", 0}, {"ftp://a.example", 0},
    {"https://a.example/", 0}, {"https://a.example?x", 0},
    {"https://a.example:", 0}, {"https://a.example:65536", 0},
    {"https://a.example:8x", 0}, {"https://user@a.example", 0},
    {"https://[::1", 0}, {"https://.example", 0}, {"null", 0}, {"*", 0},
    {"https://a b", 0}, {"https://b\xc3\xbc" "cher.example", 0},
    /* a browser leaves out the port of the scheme */
    {"https://a.example:443", 0}, {"http://a.example:80", 0},
    {"http://[::1]:80", 0}, {"https://a.example:80", 1},
    {"http://a.example:443", 1}, {"https://a.example:0", 0},
    {"https://a.example:08443", 0},
};

START_TEST(origins_of_pages)
{
    ck_assert_msg((crm_origin_rule(origins[_i].text) == NULL)
                  == origins[_i].is_good,
                  "%s", origins[_i].text);
}
END_TEST

static const struct {
    const char *name;
    int is_known;
} zones[] = {
    {"Europe/Berlin", 1}, {"UTC", 1}, {"Etc/GMT+5", 1}, {"GMT", 1},
    {"America/Argentina/Buenos_Aires", 1}, {"America/Port-au-Prince", 1},
    {"CET", 1}, {"EST5EDT", 1}, {"Japan", 1},
    {"", 0}, {"Mars/One", 0}, {"Mars/One3", 0}, {"europe/berlin", 0},
    {"PST", 0}, {"EST5", 0}, {"GMT+5", 0}, {"UTC+1", 0}, {"Etc/Unknown", 0},
    {"../etc/passwd", 0}, {"/etc/localtime", 0}, {"Europe", 0},
    {"Europe/", 0}, {"Europe/Berlin ", 0}, {"tzdata.zi", 0}, {"+VERSION", 0},
    /* files that the system has beside the zones of IANA: with leap seconds, or
     * of this host */
    {"right/Europe/Berlin", 0}, {"posix/UTC", 0}, {"localtime", 0},
    {"posixrules", 0},
    /* IANA's no more, but still ICU's */
    {"US/Pacific-New", 0}, {"Canada/East-Saskatchewan", 0},
    {"Canada/Saskatchewan", 1}, {"US/Pacific", 1},
    /* another spelling of a path is not a name */
    {"/Europe/Berlin", 0}, {"Europe//Berlin", 0}, {"//UTC", 0},
};

START_TEST(time_zones)
{
    ck_assert_msg(crm_zone_known(zones[_i].name) == zones[_i].is_known, "%s",
                  zones[_i].name);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("checks");
    TCase *tcase = tcase_create("checks");

    tcase_add_test(tcase, pointers);
    tcase_add_loop_test(tcase, near_words, 0, COUNT(words));
    tcase_add_loop_test(tcase, parts_of_names, 0, COUNT(parts));
    tcase_add_loop_test(tcase, names_of_others, 0, COUNT(others));
    tcase_add_loop_test(tcase, origins_of_pages, 0, COUNT(origins));
    tcase_add_loop_test(tcase, time_zones, 0, COUNT(zones));
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
