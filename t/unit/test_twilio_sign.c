/* SPDX-License-Identifier: Apache-2.0 */
/* test_twilio_sign.c: Twilio's signatures, and what is read from its webhooks
 * (Twilio: "Validating Signatures from Twilio") */
#include "crm_check.h"

#include <string.h>

#include "crm_query.h"
#include "intake_keyword.h"
#include "intake_twilio_sign.h"
#include "intake_twilio_voice.h"

/* Of Twilio's own documentation and libraries. */
#define TOKEN "12345"
#define URL "https://mycompany.com/myapp.php?foo=1&bar=2"
#define FORM "To=%2B18005551212&CallSid=CA1234567890ABCDE" \
    "&Caller=%2B12349013030&Digits=1234&From=%2B12349013030"
#define SIGNATURE "0/KCTR6DLpKmkAf8muzZqo1nDgQ="

static apr_array_header_t *params(const char *form)
{
    apr_array_header_t *array;

    crm_query_parse(&array, form, crm_check_pool());
    return array;
}

static int is_signed(const char *signature, const char *token,
                     const char *url, const char *form)
{
    return crm_twilio_signed(signature, token, url, params(form),
                             crm_check_pool());
}

static const char *sign(const char *url, const char *form)
{
    char *out = apr_palloc(crm_check_pool(), CRM_TWILIO_SIGNATURE_SIZE);

    crm_twilio_sign(out, TOKEN, url, params(form), crm_check_pool());
    return out;
}

START_TEST(the_example_of_the_documentation)
{
    ck_assert_str_eq(sign(URL, FORM), SIGNATURE);
    ck_assert(is_signed(SIGNATURE, TOKEN, URL, FORM));
}
END_TEST

START_TEST(anything_else_is_not_signed)
{
    ck_assert(!is_signed(NULL, TOKEN, URL, FORM));
    ck_assert(!is_signed("", TOKEN, URL, FORM));
    ck_assert(!is_signed(SIGNATURE "=", TOKEN, URL, FORM));
    ck_assert(!is_signed("0/KCTR6DLpKmkAf8muzZqo1nDgq=", TOKEN, URL, FORM));
    ck_assert(!is_signed(SIGNATURE, "12346", URL, FORM));
    ck_assert(!is_signed(SIGNATURE, "", URL, FORM));
    ck_assert(!is_signed(SIGNATURE, TOKEN, URL "&", FORM));
    ck_assert(!is_signed(SIGNATURE, TOKEN, URL, FORM "&Extra=1"));
    ck_assert(!is_signed(SIGNATURE, TOKEN, URL, "Digits=1234"));
    ck_assert(!is_signed(SIGNATURE, TOKEN,
                         "http://mycompany.com/myapp.php?foo=1&bar=2", FORM));
    ck_assert(!is_signed(SIGNATURE, TOKEN,
                         "https://mycompany.com.x/myapp.php?foo=1&bar=2",
                         FORM));
}
END_TEST

START_TEST(a_port_is_there_or_not)
{
    static const char with[] = "https://mycompany.com:443/a?b";
    static const char without[] = "https://mycompany.com/a?b";
    const char *signature = sign(with, FORM);

    ck_assert(is_signed(signature, TOKEN, with, FORM));
    ck_assert(is_signed(signature, TOKEN, without, FORM));
    signature = sign(without, FORM);
    ck_assert(is_signed(signature, TOKEN, with, FORM));
    ck_assert(is_signed(signature, TOKEN, without, FORM));
    /* Twilio leaves another port out at times */
    ck_assert(is_signed(signature, TOKEN, "https://mycompany.com:8443/a?b",
                        FORM));
}
END_TEST

static void other_is(const char *url, const char *wanted)
{
    const char *other = crm_twilio_other_url(url, crm_check_pool());

    if (wanted) {
        ck_assert_str_eq(other, wanted);
    }
    else {
        ck_assert_ptr_null(other);
    }
}

START_TEST(the_other_spelling)
{
    other_is("https://x.example/p:1", "https://x.example:443/p:1");
    other_is("http://x.example", "http://x.example:80");
    other_is("http://x.example?q=a:b", "http://x.example:80?q=a:b");
    other_is("https://x.example:443", "https://x.example");
    other_is("HTTP://x.example:8080/p", "HTTP://x.example/p");
    other_is("https://[::1]/p", "https://[::1]:443/p");
    other_is("https://[::1]:443/p", "https://[::1]/p");
    other_is("https://[::1/p", "https://[::1:443/p");
    other_is("ftp://x.example/", NULL);
    other_is("https://", NULL);
    other_is("https:///p", NULL);
    other_is("", NULL);
}
END_TEST

START_TEST(parameters_several_times_empty_or_beyond_ascii)
{
    /* sorted by name, then by value; the same pair counts once */
    ck_assert_str_eq(sign(URL, "b=2&a=9&b=1&b=2"), sign(URL, "a=9&b=1&b=2"));
    ck_assert_str_ne(sign(URL, "b=2&b=1"), sign(URL, "b=2"));
    ck_assert_str_eq(sign(URL, "x=&Body=gr%C3%BC%C3%9Fe+dich"),
                     sign(URL, "Body=gr%C3%BC%C3%9Fe%20dich&x="));
    /* capitals come before small letters */
    ck_assert_str_eq(sign("u", "B=1&a=2"), sign("uB1a2", ""));
    ck_assert_str_eq(sign(URL, ""), sign(URL, "&"));
}
END_TEST

/* What a text says (contract 17.4). */
static const struct {
    int effect;
    const char *texts[40];
} said[] = {
    {-1, {"STOP", "stop", " Stop\r\n", "StopAll", "STOP ALL", "Stop all.",
          "UNSUBSCRIBE", "cancel", "END", "end.", "Quit", "revoke", "OPTOUT",
          "opt out", "Opt-Out!", "STOP!", "Stop.", "\"STOP\"", "'stop'",
          "(STOP)", "*STOP*", "`stop`", "S T O P", "STOP...\n\n",
          "\xe2\x80\x9cStop\xe2\x80\x9d", "\xc2\xabSTOP\xc2\xbb",
          "\xc2\xa0STOP\xc2\xa0", "\xef\xbb\xbfSTOP",
          "STOP\xe2\x80\x8b", "ST\xc2\xadOP", "\xe2\x80\xaaSTOP\xe2\x80\xac",
          "\xe3\x80\x80stop", "\xef\xbc\xb3\xef\xbc\xb4\xef\xbc\xaf\xef\xbc"
          "\xb0\xef\xbc\x81", "\xc2\xbfstop?", "STOP\xef\xb8\x8f"}},
    {-1, {"stop thanks", "STOP, thank you!", "Stop. Thx", "stop - thanks :)",
          "STOP\nThank you very much.", "stop \xf0\x9f\x99\x8f",
          "Stop, danke"}},
    {1, {"Start", "\tUNSTOP ", "\"START\"."}},
    {2, {"HELP", "help!", "Info", "info?"}},
    {0, {"", "stop it", "YES", "don't stop", "please stop calling me",
         "ST\xc3\x96P", "stopthanks", "stop by at 5", "the end", "stopover",
         "cancel my order", "Stop. I want more.", "thanks", "!?",
         "stop, thanks for the offer", "non-stop", "unsubscribed", "endless",
         "help me", "\xd1\x81top"}},
};

START_TEST(keywords)
{
    for (size_t i = 0; said[_i].texts[i]; i++) {
        ck_assert_msg(crm_intake_keyword(said[_i].texts[i], crm_check_pool())
                      == said[_i].effect, "\"%s\"", said[_i].texts[i]);
    }
}
END_TEST

START_TEST(a_value_may_have_u0000)
{
    ck_assert_str_ne(sign(URL, "Body=a%00b"), sign(URL, "Body=ab"));
    ck_assert_str_ne(sign(URL, "Body=a%00"), sign(URL, "Body=a"));
    ck_assert_str_eq(sign(URL, "a=1%00&a=1"), sign(URL, "a=1&a=1%00"));
}
END_TEST

static void minutes_are(const char *seconds, const char *wanted)
{
    char out[32];
    int good = crm_twilio_minutes(out, sizeof(out), seconds);

    ck_assert_msg(good == (wanted != NULL), "\"%s\"", seconds);
    if (wanted) {
        ck_assert_str_eq(out, wanted);
    }
}

START_TEST(minutes_of_seconds)
{
    minutes_are("0", "0.0000");
    minutes_are("60", "1.0000");
    minutes_are("90", "1.5000");
    minutes_are("100", "1.6667");
    minutes_are("99999999", "1666666.6500");
    minutes_are("999999999", NULL);
    minutes_are("", NULL);
    minutes_are("-5", NULL);
    minutes_are("1e3", NULL);
}
END_TEST

static void phone_is(const char *address, const char *wanted)
{
    const char *phone = crm_twilio_phone(address, crm_check_pool());

    if (wanted) {
        ck_assert_str_eq(phone, wanted);
    }
    else {
        ck_assert_msg(!phone, "%s is %s", address, phone);
    }
}

START_TEST(numbers_of_addresses)
{
    phone_is("+4930901820", "+4930901820");
    phone_is("whatsapp:+4930901820", "+4930901820");
    phone_is("12345", "12345");
    phone_is("WhatsApp:+4930901820", "+4930901820");
    phone_is("+266696687", NULL);   /* ANONYMOUS */
    phone_is("+2562533", NULL);     /* BLOCKED */
    phone_is("+86282452253", NULL); /* UNAVAILABLE */
    phone_is("+7378742833", NULL);  /* RESTRICTED */
    phone_is("+8656696", NULL);     /* UNKNOWN */
    phone_is("Shop24", NULL);
    phone_is("client:ada", NULL);
    phone_is("sip:7@x.example", NULL);
    phone_is("", NULL);
    phone_is(NULL, NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("twilio_sign");
    TCase *tcase = tcase_create("twilio");

    tcase_add_test(tcase, the_example_of_the_documentation);
    tcase_add_test(tcase, anything_else_is_not_signed);
    tcase_add_test(tcase, a_port_is_there_or_not);
    tcase_add_test(tcase, the_other_spelling);
    tcase_add_test(tcase, parameters_several_times_empty_or_beyond_ascii);
    tcase_add_loop_test(tcase, keywords, 0, CRM_NELTS(said));
    tcase_add_test(tcase, a_value_may_have_u0000);
    tcase_add_test(tcase, minutes_of_seconds);
    tcase_add_test(tcase, numbers_of_addresses);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
