/* SPDX-License-Identifier: Apache-2.0 */
/* test_merge.c: merge fields, and what must never become a mail */
#include "crm_check.h"

#include <json-c/json.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "apr_strings.h"

#include "crm_merge.h"
#include "crm_pointer.h"

static const char contact[] =
    "{\"id\":\"0197c0de-0000-7000-8000-000000000001\",\"first_name\":\"Ada\","
    "\"last_name\":\"L\\u00f8v \\\"x\\\"\",\"job_title\":null,\"city\":\"\","
    "\"state\":\" \\n\",\"country\":\"{{first_name}}\",\"company\":null,"
    "\"deal_value\":12.5,\"notes\":\"one\\r\\ntwo\",\"tags\":[\"a\"],"
    "\"emails\":[{\"email\":\"old@x.org\",\"is_primary\":false},"
    "{\"email\":\"ada@x.org\",\"is_primary\":true}],"
    "\"phone_numbers\":[{\"phone_number\":\"+4930123\","
    "\"is_primary\":false}],"
    "\"custom_fields\":{\"plan\":\"gold\",\"seats\":3,\"paid\":false,"
    "\"share\":0.5,\"list\":[1],\"deep\":{\"a\":1},\"no\":null,"
    "\"Two words\":\"2\",\"blank\":\"\\u00a0\\u2028\\u3164\","
    "\"url\":\"https://a.example/b\",\"a.b\":\"dots\"}}";
static const char company[] =
    "{\"name\":\"Analytical Engines\",\"city\":\"London\","
    "\"employee_count\":7,\"emails\":[],\"industry\":null}";
static const char agent[] =
    "{\"name\":\"Bo\",\"agent_role\":\"sales\",\"enabled\":true,"
    "\"summary\":\"Ask\\nhttps://b.example\\u2029now\","
    "\"agent_email\":null,\"popular_topics\":[\"x\"]}";

/* What becomes of texts. */
static const struct {
    const char *text;
    const char *becomes;
} good[] = {
    {"Hello", "Hello"},
    {"Hi {{first_name}}!", "Hi Ada!"},
    {"{{first_name}}{{first_name}}", "AdaAda"},
    {"{{ first_name }} {{\tfirst_name\n|\n x }}", "Ada Ada"},
    {"{{contact.first_name}} {{contact.email}}", "Ada ada@x. org"},
    {"{{full_name}}", "Ada Løv \"x\""},
    {"{{email}} {{phone_number}}", "ada@x. org +4930123"},
    {"{{deal_value}}", "12.5"},
    {"{{company}} in {{company.city}}", "Analytical Engines in London"},
    {"{{company.employee_count}}", "7"},
    {"{{agent.name}}, {{agent.agent_role}}, {{agent.enabled}}",
     "Bo, sales, true"},
    {"{{template.name}}", "Spring"},
    {"{{custom.plan}} {{custom.seats}} {{custom.paid}} {{custom.share}}",
     "gold 3 false 0.5"},
    {"{{custom.Two words}} {{custom.a.b}}", "2 dots"},
    /* by the names that the API has */
    {"{{custom_fields.plan}} {{contact.custom_fields.seats}}"
     " {{contact.custom.plan}} {{custom_fields.no|-}}", "gold 3 gold -"},
    /* fallbacks: of what is empty, blank, null, missing, no scalar */
    {"{{job_title|boss}} {{city| y }} {{state|z}}", "boss y z"},
    {"{{custom.none|-}}{{custom.list|-}}{{custom.deep|-}}{{custom.no|-}}",
     "----"},
    {"{{company.industry|trade}}", "trade"},
    {"{{agent.agent_email|a|b}}", "a|b"},
    {"{{first_name|there}}", "Ada"},
    /* as Liquid, Django, Jinja and Go write them */
    {"{{job_title | default: \"my boss\"}}|{{city|default:'x'}}|"
     "{{state|default(\"a\")}}|{{state|default \"b\"}}|{{state|default:\"\"}}|"
     "{{first_name|default: 'x'}}", "my boss|x|a|b||Ada"},
    {"{{city|default:friend}}|{{city | default : old friend }}|"
     "{{city|fallback:\"a\"}}|{{city|fallback=\"b\"}}|{{city|fallback: c}}|"
     "{{city|default = 'd'}}|{{city|default(\"e|f\")}}",
     "friend|old friend|a|b|c|d|e|f"},
    {"{{city | Default: 'a'}}|{{city|default=b c}}|{{city|default(\"d\", true)}}|"
     "{{city || 'e'}}|{{city||f}}|{{city|default: 'g' | default: 'h'}}|"
     "{{city|default: \u201ci\u201d}}|{{city|default='it'}}",
     "a|b c|d|e|f|h|i|it"},
    /* quotes around all of it, as others want them */
    {"{{city|\"a b\"}}|{{city|'c'}}|{{city|\u201cd\u201d}}|{{city|\u2018e\u2019}}|"
     "{{city|\"\"}}|{{city|'a' 'b'}}|{{city|it's}}|{{city|\"a}}|{{city|a\"b\"}}|"
     "{{city|\"a|b\"}}|{{city|'a'|'b'}}",
     "a b|c|d|e||'a' 'b'|it's|\"a|a\"b\"|a|b|'a'|'b'"},
    /* words that are filters elsewhere, in a text */
    {"{{city|the title}}|{{city|Title}}|{{city|safe and sound}}|{{city|trims}}",
     "the title|Title|safe and sound|trims"},
    /* blanks as editors of texts write them */
    {"{{\u00a0first_name\u00a0}}{{first_name\u00a0|\u00a0x}}", "AdaAda"},
    {"{{city|fallback}}|{{city|fallback x}}|{{city|fallbacks: x}}|{{city|default:}}|"
     "{{city|default(x)}}", "fallback|fallback x|fallbacks: x|default:|default(x)"},
    {"{{city|default}} {{city|default x}} {{city|defaults \"x\"}}"
     " {{city|default:\"}} {{city|default: 'x' y}}",
     "default default x defaults \"x\" default:\" default: 'x' y"},
    {"Hi{{job_title|}}.", "Hi."},
    /* values are not read again */
    {"{{country}}", "{{first_name}}"},
    /* braces that are no fields */
    {"{{{{first_name}} {{{{ }} } { {x}", "{{first_name}} {{ }} } { {x}"},
    {"{{{{{{first_name}}", "{{Ada"},
    {"a { b } c }} d", "a { b } c }} d"},
    {"{{notes}}", "one two"},
    /* a value that shows nothing is empty */
    {"{{custom.blank|x}}", "x"},
    /* only the workspace's own values are links */
    {"{{custom.url}}", "https: / /a. example/b"},
    {"{{agent.summary}}", "Ask https://b.example now"},
};

static const struct {
    const char *text;
    const char *wrong;
} bad[] = {
    {"{{frist_name}}", "{{frist_name}} is not a known field"},
    {"{{frist_name|there}}", "{{frist_name}} is not a known field"},
    {"{{First_name}}", "{{First_name}} is not a known field"},
    {"{{}}", "{{}} is not a known field"},
    {"{{|x}}", "{{}} is not a known field"},
    {"{{first name}}", "{{first name}} is not a known field"},
    {"{{tags}}", "{{tags}} is not a known field"},
    {"{{emails}}", "{{emails}} is not a known field"},
    {"{{custom_fields}}", "{{custom_fields}} is not a known field"},
    {"{{custom.}}", "{{custom.}} is not a known field"},
    {"{{custom_fields.}}", "{{custom_fields.}} is not a known field"},
    {"{{company.custom.a}}", "{{company.custom.a}} is not a known field"},
    {"{{contact.company.name}}", "{{contact.company.name}} is not a known field"},
    {"{{custom}}", "{{custom}} is not a known field"},
    {"{{agent}}", "{{agent}} is not a known field"},
    {"{{agent.secret}}", "{{agent.secret}} is not a known field"},
    {"{{agent.popular_topics}}",
     "{{agent.popular_topics}} is not a known field"},
    {"{{company.full_name}}", "{{company.full_name}} is not a known field"},
    {"{{contact.agent.name}}", "{{contact.agent.name}} is not a known field"},
    {"{{template.goal_prompt}}",
     "{{template.goal_prompt}} is not a known field"},
    {"{{template.name.x}}", "{{template.name.x}} is not a known field"},
    {"{{x.name}}", "{{x.name}} is not a known field"},
    {"{{.name}}", "{{.name}} is not a known field"},
    {"{{a\nb}}", "{{...}} is not a known field"},
    {"{{job_title}}", "{{job_title}} is empty here, and there is no fallback"},
    {"{{city}}", "{{city}} is empty here, and there is no fallback"},
    {"{{state}}", "{{state}} is empty here, and there is no fallback"},
    {"{{custom.none}}",
     "{{custom.none}} is empty here, and there is no fallback"},
    /* filters of others, which would be the fallback */
    {"{{first_name|upcase}}", "{{first_name}} has the filter upcase, and only default"
     " is known"},
    {"{{city | capitalize | default: 'x'}}", "{{city}} has the filter capitalize, and"
     " only default is known"},
    {"{{city|default: 'x' | truncate: 10}}", "{{city}} has the filter truncate, and"
     " only default is known"},
    {"{{city|x|upper}}", "{{city}} has the filter upper, and only default is known"},
    {"{{city|replace('a', 'b')}}", "{{city}} has the filter replace, and only default"
     " is known"},
    {"{{first_name", "a {{ is not closed"},
    {"Hi {{first_name}", "a {{ is not closed"},
    {"{{", "a {{ is not closed"},
    {"}}{{{{{{", "a {{ is not closed"},
    {"{{job_title|{{city}}}}", "a {{ is within another field"},
    {"{{job_title {{first_name}}", "a {{ is within another field"},
    {"{{job_title|}}", "is empty with its fields filled in"},
    {" {{job_title|}}\n", "is empty with its fields filled in"},
    {"\xc2\xa0{{job_title|\xe2\x80\x8b}}\xe3\x80\x80",
     "is empty with its fields filled in"},
};

static crm_subject_t subject;

static void set_up(void)
{
    subject.contact = crm_json(contact);
    subject.company = crm_json(company);
    subject.agent = crm_json(agent);
    subject.plan = crm_json("{\"name\":\"Spring\",\"goal_prompt\":\"x\"}");
}

static void tear_down(void)
{
    json_object_put(subject.contact);
    json_object_put(subject.company);
    json_object_put(subject.agent);
    json_object_put(subject.plan);
}

START_TEST(filled_in)
{
    const char *out = NULL;
    const char *wrong = crm_merge(&out, good[_i].text, &subject, 0, 1000,
                                  crm_check_pool());

    ck_assert_msg(!wrong, "%s: %s", good[_i].text, wrong);
    ck_assert_str_eq(out, good[_i].becomes);
    wrong = crm_merge(NULL, good[_i].text, &subject, 0, 1000,
                      crm_check_pool());
    ck_assert_msg(!wrong, "%s, checked only: %s", good[_i].text, wrong);
}
END_TEST

START_TEST(refused)
{
    const char *out = NULL;
    const char *wrong = crm_merge(&out, bad[_i].text, &subject, 0, 1000,
                                  crm_check_pool());
    int about_values;

    ck_assert_msg(wrong != NULL, "%s became %s", bad[_i].text, out);
    ck_assert_str_eq(wrong, bad[_i].wrong);
    /* Of another subject the values may be there. */
    about_values = strstr(wrong, "empty") != NULL;
    wrong = crm_merge(NULL, bad[_i].text, &subject, 0, 1000,
                      crm_check_pool());
    ck_assert_msg((wrong == NULL) == about_values, "%s, checked only: %s",
                  bad[_i].text, wrong);
}
END_TEST

/* The company's text of the contact goes before the company's name; without
 * either, and without a company or an agent, there is nothing. */
START_TEST(missing_objects)
{
    json_object *own = crm_json("{\"company\":\"Own\",\"last_name\":\"L\"}");
    crm_subject_t lone = {.contact = own, .plan = subject.plan};
    const char *out = NULL;

    ck_assert(!crm_merge(&out, "{{company}}, {{full_name}}, {{email|-}}",
                         &lone, 0, 1000, crm_check_pool()));
    ck_assert_str_eq(out, "Own, L, -");
    json_object_object_del(own, "company");
    json_object_object_del(own, "last_name");
    ck_assert(!crm_merge(&out, "{{company|-}}{{full_name|-}}"
                          "{{company.name|-}}{{agent.name|-}}{{custom.a|-}}",
                         &lone, 0, 1000, crm_check_pool()));
    ck_assert_str_eq(out, "-----");
    ck_assert_str_eq(crm_merge(&out, "{{agent.name}}", &lone, 0, 1000,
                               crm_check_pool()),
                     "{{agent.name}} is empty here, and there is no"
                     " fallback");
    json_object_put(own);
}
END_TEST

START_TEST(one_line)
{
    const char *out = NULL;

    ck_assert(!crm_merge(&out, "{{notes}} {{job_title|a\nb}}", &subject, 1,
                         1000, crm_check_pool()));
    ck_assert_str_eq(out, "one two a b");
}
END_TEST

/* Characters are counted, not bytes, and after filling in. */
START_TEST(limits)
{
    const char *out = NULL;

    ck_assert(!crm_merge(&out, "{{last_name}}", &subject, 0, 7,
                         crm_check_pool()));
    ck_assert_str_eq(crm_merge(&out, "{{last_name}}", &subject, 0, 6,
                               crm_check_pool()),
                     "must have at most 6 characters, with its fields filled"
                     " in");
    ck_assert(!crm_merge(&out, "øøø", &subject, 0, 3,
                         crm_check_pool()));
    ck_assert(!crm_merge(&out, "{{custom.seats|a very long fallback}}",
                         &subject, 0, 1, crm_check_pool()));
}
END_TEST

/* COUNT times TEXT. */
static char *repeat(const char *text, size_t count)
{
    size_t len = strlen(text);
    char *all = apr_palloc(crm_check_pool(), len * count + 1);

    for (size_t i = 0; i < count; i++) {
        memcpy(all + i * len, text, len);
    }
    all[len * count] = '\0';
    return all;
}

/* The most memory this process had so far, in KiB. */
static long most_memory(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* Neither many fields of a long value fill the memory, nor do braces take the
 * square of their number in time. (Not longer: a sanitizer's strstr() looks at
 * the whole text each time.) */
START_TEST(bombs)
{
    json_object *large = crm_json("{}");
    crm_subject_t bomb = {.contact = large, .plan = subject.plan};
    clock_t begin = clock();    /* processor time, whatever else runs */
    long had = most_memory();
    const char *out;

    json_object_object_add(large, "notes", json_object_new_string(
                               repeat("long ", 13000)));
    ck_assert(crm_merge(&out, repeat("{{notes}}", 7000), &bomb, 0, 65536,
                        crm_check_pool()));
    ck_assert_msg(most_memory() - had < 65536, "it took %ld KiB",
                  most_memory() - had);
    ck_assert(crm_merge(&out, repeat("{{", 32769), &bomb, 0, 65536,
                        crm_check_pool()));
    ck_assert(!crm_merge(&out, repeat("{{{{", 16384), &bomb, 0, 65536,
                         crm_check_pool()));
    ck_assert(crm_merge(&out, apr_pstrcat(crm_check_pool(), "{{custom.",
                                          repeat("x", 100000), "}}", NULL),
                        &bomb, 0, 65536, crm_check_pool()));
    ck_assert(!crm_merge(&out, repeat("{{city|}}x", 6553), &bomb, 0, 65536,
                         crm_check_pool()));
    ck_assert_msg(clock() - begin < 3 * CLOCKS_PER_SEC, "it took %d ms",
                  (int)((clock() - begin) * 1000 / CLOCKS_PER_SEC));
    json_object_put(large);
}
END_TEST

/* What is said of a field never is longer, or more lines, than a log likes. */
START_TEST(names_shown)
{
    const char *out, *wrong;

    wrong = crm_merge(&out, apr_pstrcat(crm_check_pool(), "{{",
                                        repeat("x", 101), "}}", NULL),
                      &subject, 0, 1000, crm_check_pool());
    ck_assert_str_eq(wrong, "{{...}} is not a known field");
    ck_assert_str_eq(crm_name_shown("a\x1b[2J"), "...");
    ck_assert_str_eq(crm_name_shown("a\x7f"), "...");
    ck_assert_str_eq(crm_name_shown(""), "");
    ck_assert_str_eq(crm_name_shown(repeat("x", 101)), "...");
    ck_assert_str_eq(crm_name_shown(repeat("x", 100)), repeat("x", 100));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("merge");
    TCase *tcase = tcase_create("merge");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, filled_in, 0, COUNT(good));
    tcase_add_loop_test(tcase, refused, 0, COUNT(bad));
    tcase_add_test(tcase, missing_objects);
    tcase_add_test(tcase, one_line);
    tcase_add_test(tcase, limits);
    tcase_add_test(tcase, bombs);
    tcase_add_test(tcase, names_shown);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
