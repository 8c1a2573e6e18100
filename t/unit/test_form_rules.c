/* SPDX-License-Identifier: Apache-2.0 */
/* test_form_rules.c: web forms: configuration, bodies, rules (docs/forms.md) */
#include "crm_check.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_query.h"
#include "intake_form_body.h"
#include "intake_form_check.h"
#include "intake_form_rules.h"

#define MULTIPART "multipart/form-data; boundary=\"x-y\""
#define OTHER_TYPE "The form must be sent as " \
    "application/x-www-form-urlencoded, multipart/form-data or " \
    "application/json"
#define URLENCODED "application/x-www-form-urlencoded"

/* ---- helpers ------------------------------------------------------------- */

static json_object *json(const char *text)
{
    json_object *value = json_tokener_parse(text);

    ck_assert_msg(value || !strcmp(text, "null"), "%s", text);
    return value;
}

/* Set *FORM from its three parts. */
static void configure(crm_webform_t *form, const char *standard,
                      const char *custom, const char *survey)
{
    json_object *parts[3];

    parts[0] = json(standard);
    parts[1] = json(custom);
    parts[2] = json(survey);
    memset(form, 0, sizeof(*form));
    crm_webform_configure(form, parts[0], parts[1], parts[2],
                          crm_check_pool());
    for (int i = 0; i < 3; i++) {
        json_object_put(parts[i]);
    }
}

/* Return the wrong fields of ERROR: "name rule; ...", or its message. */
static const char *faults(const crm_error_t *error)
{
    const char *text = "";

    if (!error) {
        return "";
    }
    ck_assert_int_eq(error->code, CRM_E_VALIDATION);
    if (!error->details) {
        return error->message;
    }
    for (int i = 0; i < error->details->nelts; i++) {
        crm_detail_t *one = &APR_ARRAY_IDX(error->details, i, crm_detail_t);

        text = apr_pstrcat(crm_check_pool(), text, *text ? "; " : "",
                           one->field, " ", one->message, NULL);
    }
    return text;
}

/* Check the urlencoded answers BODY to FORM; return what is wrong. */
static const char *check(crm_webform_taken_t *taken,
                         const crm_webform_t *form, const char *body,
                         int strict)
{
    apr_array_header_t *answers;

    crm_query_parse(&answers, body, crm_check_pool());
    return faults(crm_webform_check(taken, form, answers, strict,
                                    crm_check_pool()));
}

/* Fail unless the field f with CONFIG makes of BODY the responses WANTED. */
static void takes(const char *config, const char *body, const char *wanted)
{
    crm_webform_t form;
    crm_webform_taken_t taken;

    configure(&form, "{}", apr_psprintf(crm_check_pool(), "{\"f\":%s}",
                                        config), "{}");
    ck_assert_str_eq(check(&taken, &form, body, 0), "");
    ck_assert_str_eq(taken.responses, wanted);
}

/* Fail unless the field f with CONFIG refuses BODY with RULE. */
static void refuses(const char *config, const char *body, const char *rule)
{
    crm_webform_t form;
    crm_webform_taken_t taken;

    configure(&form, "{}", apr_psprintf(crm_check_pool(), "{\"f\":%s}",
                                        config), "{}");
    ck_assert_str_eq(check(&taken, &form, body, 0),
                     apr_pstrcat(crm_check_pool(), "f ", rule, NULL));
}

/* ---- configuration ------------------------------------------------------- */

START_TEST(fields_and_their_order)
{
    crm_webform_t form;
    const crm_webform_field_t *field;

    configure(&form, "{\"company\":true,\"email\":{\"required\":true,"
              "\"label\":\"Mail\"},\"city\":\"Town\",\"country\":false,"
              "\"state\":{\"enabled\":false},\"nonsense\":true}",
              "{\"budget\":{\"type\":\"number\",\"min\":1},\"email\":true}",
              "{\"q1\":{\"label\":\"How?\",\"type\":\"select\","
              "\"options\":[\"a\",{\"value\":\"b\",\"label\":\"B!\"},7,null,"
              "{}]}}");
    ck_assert_int_eq(form.fields->nelts, 5);
    field = crm_webform_field(&form, "email");
    ck_assert(field->standard && field->required);
    ck_assert_str_eq(field->label, "Mail");
    ck_assert_int_eq(field->type, CRM_WEBFORM_EMAIL);
    ck_assert_str_eq(crm_webform_field(&form, "city")->label, "Town");
    ck_assert_str_eq(crm_webform_field(&form, "company")->label, "Company");
    field = crm_webform_field(&form, "budget");
    ck_assert(!field->standard && !field->required);
    ck_assert_str_eq(field->min, "1");
    field = crm_webform_field(&form, "q1");
    ck_assert_int_eq(field->options->nelts, 3);
    ck_assert_str_eq(crm_webform_option(field, "b")->label, "B!");
    ck_assert_str_eq(crm_webform_option(field, "7")->label, "7");
    ck_assert_ptr_null(crm_webform_option(field, "B!"));
    ck_assert_ptr_null(crm_webform_field(&form, "country"));
}
END_TEST

START_TEST(a_configuration_that_says_nothing_or_nonsense)
{
    static const char *const bad[] = {"{}", "null", "[]", "7",
        "{\"_form\":[],\"x\":{\"type\":7}}", "{\"x\":null,\"_form\":null}"};
    crm_webform_t form;

    for (size_t i = 0; i < CRM_NELTS(bad); i++) {
        configure(&form, bad[i], "{}", "null");
        ck_assert_int_eq(form.fields->nelts, 6);
        ck_assert_str_eq(form.honeypot, "website_hp");
        ck_assert_ptr_null(form.redirect_url);
        ck_assert_ptr_null(form.origins);
    }
    configure(&form, "{}", "{\"a\":{\"type\":\"magic\",\"max_length\":-1,"
              "\"min_length\":\"x\",\"options\":{},\"required\":\"yes\","
              "\"label\":[]}}", "{\"\":true}");
    ck_assert_int_eq(crm_webform_field(&form, "a")->type, CRM_WEBFORM_TEXT);
    ck_assert_uint_eq(crm_webform_field(&form, "a")->max_length, 1000);
    ck_assert_uint_eq(crm_webform_field(&form, "a")->min_length, 0);
    ck_assert_str_eq(crm_webform_field(&form, "a")->label, "a");
}
END_TEST

static const char *redirect_of(const char *url)
{
    crm_webform_t form;

    configure(&form, apr_psprintf(crm_check_pool(),
              "{\"_form\":{\"redirect_url\":%s}}", url), "{}", "{}");
    return form.redirect_url;
}

START_TEST(settings)
{
    crm_webform_t form;

    configure(&form, "{\"_form\":{\"redirect_url\":\"https://x.example/a?b\","
              "\"thank_you\":\"Danke\",\"honeypot\":\"h\","
              "\"lead_source\":\"web\",\"allowed_origins\":"
              "[\"https://x.example\",5]}}", "{}", "{}");
    ck_assert_str_eq(form.redirect_url, "https://x.example/a?b");
    ck_assert_str_eq(form.thank_you, "Danke");
    ck_assert_str_eq(form.honeypot, "h");
    ck_assert_str_eq(form.lead_source, "web");
    ck_assert_int_eq(form.origins->nelts, 2);
    ck_assert_str_eq(redirect_of("\"http://x\""), "http://x");
    ck_assert_ptr_null(redirect_of("\"javascript:alert(1)\""));
    ck_assert_ptr_null(redirect_of("\"//x.example/\""));
    ck_assert_ptr_null(redirect_of("\"/relative\""));
    ck_assert_ptr_null(redirect_of("\"https://\""));
    ck_assert_ptr_null(redirect_of("\"https://x\\r\\nSet-Cookie: a\""));
    ck_assert_ptr_null(redirect_of("\"https://x.example/\xc3\xbc\""));
    ck_assert_ptr_null(redirect_of("7"));
}
END_TEST

/* ---- rules --------------------------------------------------------------- */

START_TEST(texts)
{
    takes("true", "f=+a+b%20", "{\"f\":\"a b\"}");
    takes("{\"max_length\":3}", "f=%C3%A4%C3%B6%C3%BC",
          "{\"f\":\"\xc3\xa4\xc3\xb6\xc3\xbc\"}");
    refuses("{\"max_length\":3}", "f=abcd",
            "must have at most 3 characters");
    refuses("{\"min_length\":3}", "f=ab", "must have at least 3 characters");
    refuses("{\"required\":true}", "f=+%09&g=1", "is required");
    refuses("{\"required\":true}", "", "is required");
    refuses("true", "f=a%0D%0Ab",
            "must be one line without control characters");
    takes("{\"type\":\"textarea\"}", "f=a%0D%0Ab%0Dc%09",
          "{\"f\":\"a\\nb\\nc\"}");
    /* what is pasted from a table or from Word */
    takes("true", "f=Ada%09King%09", "{\"f\":\"Ada King\"}");
    takes("{\"type\":\"textarea\"}", "f=a%0Bb%0Cc%09d",
          "{\"f\":\"a\\nb\\nc\\td\"}");
    refuses("true", "f=a%0Bb",
            "must be one line without control characters");
    refuses("{\"type\":\"textarea\"}", "f=a%1Bb",
            "must not contain control characters");
    refuses("true", "f=a&f=b", "must be one answer");
    takes("true", "f=a&f=&f=+a", "{\"f\":\"a\"}");
    refuses("true", apr_pstrcat(crm_check_pool(), "f=",
            (char *)memset(apr_pcalloc(crm_check_pool(), 1002), 'x', 1001),
            NULL), "must have at most 1000 characters");
}
END_TEST

START_TEST(numbers)
{
    static const char number[] =
        "{\"type\":\"number\",\"min\":-1.5,\"max\":100}";
    static const char *const bad[] = {"f=abc", "f=1,5", "f=0x10", "f=NaN",
        "f=1.23456", "f=1e99", "f=--1", "f=-", "f=.", "f=1.", "f=1e",
        "f=1e%2B", "f=e1", "f=1%202"};

    takes(number, "f=12.50", "{\"f\":12.5}");
    takes(number, "f=-1.5", "{\"f\":-1.5}");
    takes(number, "f=1e2", "{\"f\":100}");
    refuses(number, "f=-1.6", "must be at least -1.5");
    refuses(number, "f=100.1", "must be at most 100");
    takes(number, "f=-.5", "{\"f\":-0.5}");
    takes(number, "f=007.50", "{\"f\":7.5}");
    takes(number, "f=00", "{\"f\":0}");
    takes(number, "f=-0.0", "{\"f\":0}");
    takes("{\"type\":\"integer\"}", "f=7.0", "{\"f\":7}");
    refuses("{\"type\":\"integer\"}", "f=7.5", "must be a whole number");
    for (size_t i = 0; i < CRM_NELTS(bad); i++) {
        crm_webform_t form;
        crm_webform_taken_t taken;

        configure(&form, "{}", "{\"f\":{\"type\":\"number\"}}", "{}");
        ck_assert_msg(*check(&taken, &form, bad[i], 0), "%s", bad[i]);
    }
}
END_TEST

START_TEST(booleans)
{
    takes("{\"type\":\"boolean\"}", "f=on", "{\"f\":true}");
    takes("{\"type\":\"checkbox\"}", "f=YES", "{\"f\":true}");
    takes("{\"type\":\"boolean\"}", "f=0", "{\"f\":false}");
    takes("{\"type\":\"boolean\"}", "f=0&f=1", "{\"f\":true}");
    refuses("{\"type\":\"boolean\"}", "f=perhaps", "must be true or false");
    refuses("{\"type\":\"boolean\",\"required\":true}", "f=false",
            "must be ticked");
    takes("{\"type\":\"boolean\",\"required\":true}", "f=0&f=1",
          "{\"f\":true}");
    refuses("{\"type\":\"boolean\",\"required\":true}", "f=1&f=0",
            "must be ticked");
    refuses("{\"type\":\"boolean\",\"required\":true}", "g=1",
            "must be ticked");
}
END_TEST

START_TEST(dates)
{
    static const char date[] =
        "{\"type\":\"date\",\"min\":\"2026-01-01\",\"max\":\"2026-12-31\"}";

    takes(date, "f=2026-01-01", "{\"f\":\"2026-01-01\"}");
    refuses(date, "f=2025-12-31", "must not be before 2026-01-01");
    refuses(date, "f=2027-01-01", "must not be after 2026-12-31");
    refuses(date, "f=2026-02-29", "must be a date, for example 2026-12-31");
    refuses(date, "f=1.2.2026", "must be a date, for example 2026-12-31");
}
END_TEST

START_TEST(urls_mails_phones)
{
    static const char url[] = "{\"type\":\"url\"}";
    static const char rule[] =
        "must be an address that begins with https:// or http://";

    takes(url, "f=HTTPS://x.example/?a=b",
          "{\"f\":\"HTTPS://x.example/?a=b\"}");
    refuses(url, "f=javascript:alert(1)", rule);
    refuses(url, "f=https://", rule);
    refuses(url, "f=https://x.example/%22onload", rule);
    takes("{\"type\":\"email\"}", "f=a@x.example",
          "{\"f\":\"a@x.example\"}");
    takes("{\"type\":\"tel\"}", "f=%2B49+30", "{\"f\":\"+49 30\"}");
    refuses("{\"type\":\"phone\"}", "f=none", "must be a phone number");
}
END_TEST

/* Blanks of all scripts, as phones and input methods add them. */
START_TEST(blanks_around_an_answer)
{
    takes("{\"type\":\"email\"}", "f=%C2%A0a@x.example%E3%80%80",
          "{\"f\":\"a@x.example\"}");
    takes("{\"type\":\"url\"}", "f=https://x.example%E2%80%89",
          "{\"f\":\"https://x.example\"}");
    takes("{\"type\":\"number\"}", "f=12%C2%A0", "{\"f\":12}");
    takes("{\"type\":\"text\"}", "f=%E3%80%80a%C2%A0b%0A",
          "{\"f\":\"a\302\240b\"}");
    takes("{\"type\":\"select\",\"options\":[\"\302\240a\"]}",
          "f=a%E3%80%80", "{\"f\":\"a\"}");
}
END_TEST

START_TEST(selects)
{
    static const char one[] =
        "{\"type\":\"select\",\"options\":[\"a\",\"b\"]}";
    static const char many[] =
        "{\"type\":\"multiselect\",\"options\":[\"a\",\"b\",{\"value\":\"c\","
        "\"label\":\"Cee\"}]}";
    static const char commas[] =
        "{\"type\":\"multiselect\",\"options\":[\"a\",\"c\",\"a,b\"]}";
    static const char blanks[] =
        "{\"type\":\"select\",\"options\":[\" a \",{\"value\":\"b\\t\"}]}";

    takes(one, "f=b", "{\"f\":\"b\"}");
    refuses(one, "f=A", "must be one of the options");
    refuses(one, "f=a&f=b", "must be one answer");
    refuses("{\"type\":\"select\"}", "f=a", "must be one of the options");
    takes(blanks, "f=+a+", "{\"f\":\"a\"}");
    takes(blanks, "f=a", "{\"f\":\"a\"}");
    takes(blanks, "f=b", "{\"f\":\"b\"}");
    takes(many, "f=c", "{\"f\":[\"c\"]}");
    takes(many, "f=c&f=a&f=c&f=", "{\"f\":[\"c\",\"a\"]}");
    refuses(many, "f=c&f=x", "must be one of the options");
    /* as scripts join them */
    takes(many, "f=c,+a", "{\"f\":[\"c\",\"a\"]}");
    takes(many, "f=a%2Cb,&f=c", "{\"f\":[\"a\",\"b\",\"c\"]}");
    takes(commas, "f=a,b", "{\"f\":[\"a,b\"]}");
    takes(commas, "f=a,c", "{\"f\":[\"a\",\"c\"]}");
    refuses(many, "f=a,x", "must be one of the options");
    refuses(many, "f=a,a,a,a", "must be one of the options");
    refuses(many, "f=,", "must be one of the options");
    refuses(one, "f=a,b", "must be one of the options");
}
END_TEST

START_TEST(what_is_made_of_all_answers)
{
    crm_webform_t form;
    crm_webform_taken_t taken;

    configure(&form, "{\"email\":true,\"first_name\":true,"
              "\"last_name\":true,\"company\":true,"
              "\"_form\":{\"lead_source\":\"we\\\"b\"}}",
              "{\"x\":{\"label\":\"The X\"}}",
              "{\"q\":{\"type\":\"multiselect\",\"options\":[{\"value\":\"1\","
              "\"label\":\"One\"},\"2\"]}}");
    ck_assert_str_eq(check(&taken, &form, "q=1&x=a%22b&last_name=King&q=2"
                           "&first_name=Ada&email=a@x.example&submit=Go"
                           "&company=", 0), "");
    ck_assert_str_eq(taken.email, "a@x.example");
    ck_assert_ptr_null(taken.phone);
    ck_assert_str_eq(taken.name, "Ada King");
    ck_assert_str_eq(taken.contact, "{\"last_name\":\"King\",\"first_name\":"
                     "\"Ada\",\"lead_source\":\"we\\\"b\"}");
    ck_assert_str_eq(taken.responses, "{\"q\":[\"1\",\"2\"],"
                     "\"x\":\"a\\\"b\"}");
    ck_assert_str_eq(taken.content, "q: One, 2\nThe X: a\"b\n"
                     "Last name: King\nFirst name: Ada\n"
                     "E-mail: a@x.example");
    ck_assert_str_eq(check(&taken, &form, "submit=Go", 0),
                     "The form is empty");
    ck_assert_str_eq(check(&taken, &form, "x=1&more=2&website_hp=", 1),
                     "more is not a known field");
    ck_assert_str_eq(check(&taken, &form, "email=x&first_name=a%0Ab&q=3", 0),
                     "email must be an e-mail address; first_name must be "
                     "one line without control characters; q must be one of "
                     "the options");
}
END_TEST

START_TEST(answers_that_are_long_in_all)
{
    crm_webform_t form;
    crm_webform_taken_t taken;
    crm_buf_t config, body;

    crm_buf_init(&config, 1024, crm_check_pool());
    crm_buf_init(&body, 1024, crm_check_pool());
    crm_buf_putc(&config, '{');
    for (int i = 0; i < 80; i++) {
        crm_buf_printf(&config, "%s\"f%d\":true", i ? "," : "", i);
        crm_buf_printf(&body, "&f%d=%0999d", i, 7);
    }
    crm_buf_add(&config, "}", 2);
    crm_buf_putc(&body, '\0');
    configure(&form, "{}", config.data, "{}");
    ck_assert_str_eq(check(&taken, &form, body.data, 0),
                     "The answers are longer than 64 KiB in all");
}
END_TEST

/* ---- bodies -------------------------------------------------------------- */

/* Return BODY (LEN bytes) of TYPE as "name=value|...", or what is wrong. */
static const char *read_bytes(const char *type, const char *body,
                              apr_size_t len)
{
    apr_array_header_t *answers;
    const char *text = "";
    crm_error_t *error = crm_webform_read(&answers, body, len, type,
                                          crm_check_pool());

    if (error) {
        return error->code == CRM_E_VALIDATION ? faults(error)
                                               : error->message;
    }
    for (int i = 0; i < answers->nelts; i++) {
        crm_query_param_t *one = &APR_ARRAY_IDX(answers, i,
                                                crm_query_param_t);

        ck_assert_uint_eq(one->value_len, strlen(one->value));
        text = apr_pstrcat(crm_check_pool(), text, i ? "|" : "", one->name,
                           "=", one->value, NULL);
    }
    return text;
}

static void reads(const char *type, const char *body, const char *wanted)
{
    ck_assert_str_eq(read_bytes(type, body, strlen(body)), wanted);
}

#define PART(name_, value_) \
    "--x-y\r\nContent-Disposition: form-data; name=\"" name_ "\"\r\n\r\n" \
    value_ "\r\n"

START_TEST(urlencoded_bodies)
{
    reads(URLENCODED, "a=1&b=x+y&a=%C3%BC", "a=1|b=x y|a=\xc3\xbc");
    reads(URLENCODED "; charset=UTF-8", "", "");
    reads(URLENCODED, "a=%zz", "The form is malformed");
    reads(URLENCODED, "a=%00", "The form is malformed");
    reads(URLENCODED, "a=%FF", "The form is malformed");
    ck_assert_str_eq(read_bytes(URLENCODED, "a=\0b", 4),
                     "The form is malformed");
    reads("text/plain", "a=1", OTHER_TYPE);
    reads(NULL, "a=1", OTHER_TYPE);
}
END_TEST

START_TEST(multipart_bodies)
{
    reads(MULTIPART, PART("a", "1") PART("a", "\xc3\xbc\r\n") PART("b c", "")
          "--x-y--\r\n", "a=1|a=\xc3\xbc\r\n|b c=");
    reads("Multipart/Form-Data;boundary=x-y", PART("a", "1") "--x-y--",
          "a=1");
    reads(MULTIPART, "--x-y--", "");
    reads(MULTIPART, "x\r\n--x-y--", "");
    reads(MULTIPART, "x\r\n" PART("a", "1") "--x-y--", "a=1");
    reads(MULTIPART, "--x-y\r\nContent-Type: text/plain\r\n"
          "content-disposition:form-data; foo=\"; name=\\\"; name=\"a\"\r\n"
          "\r\n1\r\n--x-y--", "a=1");
    /* '"' as browsers write it within a name */
    reads(MULTIPART, PART("say %22hi%22 %2 %", "%22") "--x-y--",
          "say \"hi\" %2 %=%22");
    /* folded */
    reads(MULTIPART, "--x-y\r\nA: b\r\n\tc\r\nContent-Disposition: form-data;\r\n"
          " name=\"a\"\r\n\r\n1\r\n  2\r\n--x-y--", "a=1\r\n  2");
    reads(MULTIPART, "--x-y\r\nContent-Disposition:\r\n\tform-data; name=\"f\";"
          "\r\n filename=\"x\"\r\n\r\nabc\r\n--x-y--", "f must not be a file");
    reads(MULTIPART, "--x-y\r\nContent-Disposition: form-data; name=\"f\"; "
          "filename=\"\"\r\nContent-Type: application/octet-stream\r\n\r\n"
          "\r\n" PART("a", "1") "--x-y--", "a=1");
    reads(MULTIPART, "--x-y\r\nContent-Disposition: form-data; name=\"f\"; "
          "filename=\"a.txt\"\r\n\r\nabc\r\n" PART("a", "1") "--x-y--",
          "f must not be a file");
}
END_TEST

START_TEST(multipart_that_is_hostile)
{
    static const char nul[] = PART("a", "1\0" "2") "--x-y--";
    static const char binary[] = "--x-y\r\nContent-Disposition: form-data; "
        "name=\"f\"; filename=\"a\"\r\n\r\n\0\xff\r\n--x-y--";
    static const char *const bad[] = {
        "", "--x-y", "--x-y\r\n", "--x-z--", "x--x-y--", "x\r\n--x-z--",
        PART("a", "1"), PART("a", "1") "--x-y", PART("a", "1") "--x-yz",
        "--x-y\r\n\r\n\r\n--x-y--", "--x-y\r\nA: b\r\n\r\n1\r\n--x-y--",
        "--x-y\r\nContent-Disposition: form-data; name=\"a\r\n\r\n1\r\n"
            "--x-y--",
        "--x-y\r\nContent-Disposition: attachment; name=\"a\"\r\n\r\n1\r\n"
            "--x-y--",
        "--x-y\r\nContent-Disposition: form-data\r\n\r\n1\r\n--x-y--",
        PART("a", "\xff") "--x-y--", PART("\xff", "a") "--x-y--",
    };

    for (size_t i = 0; i < CRM_NELTS(bad); i++) {
        char *copy = malloc(strlen(bad[i]) + 1);    /* for the sanitizers */

        ck_assert_ptr_nonnull(copy);
        memcpy(copy, bad[i], strlen(bad[i]));
        ck_assert_msg(!strcmp(read_bytes(MULTIPART, copy, strlen(bad[i])),
                              "The form is malformed"), "%s", bad[i]);
        free(copy);
    }
    ck_assert_str_eq(read_bytes(MULTIPART, nul, sizeof(nul) - 1),
                     "The form is malformed");
    ck_assert_str_eq(read_bytes(MULTIPART, binary, sizeof(binary) - 1),
                     "f must not be a file");
    reads("multipart/form-data", PART("a", "1") "--x-y--",
          "The form is malformed");
    reads("multipart/form-data; boundary=", PART("a", "1") "--x-y--",
          "The form is malformed");
}
END_TEST

START_TEST(json_bodies)
{
    static const char json_type[] = "application/json; charset=utf-8";

    reads(json_type, "{\"a\":\"1\",\"b\":2.5,\"c\":true,\"d\":null,"
          "\"e\":[\"x\",3]}", "a=1|b=2.5|c=true|e=x|e=3");
    reads(json_type, "{}", "");
    reads(json_type, "[]", "The body must be an object");
    reads(json_type, "\"a\"", "The body must be an object");
    reads(json_type, "{\"a\":{},\"b\":[[]],\"c\":\"\\u0000\"}",
          "a must be a string, a number, true or false, or an array of these; "
          "b must be a string, a number, true or false, or an array of these; "
          "c must not contain U+0000");
    ck_assert_msg(strstr(read_bytes(json_type, "{\"a\":", 5),
                         "is not valid JSON"), "truncated");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("form_rules");
    TCase *config = tcase_create("config"), *rules = tcase_create("rules");
    TCase *bodies = tcase_create("bodies");

    tcase_add_test(config, fields_and_their_order);
    tcase_add_test(config, a_configuration_that_says_nothing_or_nonsense);
    tcase_add_test(config, settings);
    tcase_add_test(rules, texts);
    tcase_add_test(rules, numbers);
    tcase_add_test(rules, booleans);
    tcase_add_test(rules, dates);
    tcase_add_test(rules, urls_mails_phones);
    tcase_add_test(rules, selects);
    tcase_add_test(rules, blanks_around_an_answer);
    tcase_add_test(rules, what_is_made_of_all_answers);
    tcase_add_test(rules, answers_that_are_long_in_all);
    tcase_add_test(bodies, urlencoded_bodies);
    tcase_add_test(bodies, multipart_bodies);
    tcase_add_test(bodies, multipart_that_is_hostile);
    tcase_add_test(bodies, json_bodies);
    suite_add_tcase(suite, config);
    suite_add_tcase(suite, rules);
    suite_add_tcase(suite, bodies);
    return crm_check_main(suite);
}
