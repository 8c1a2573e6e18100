/* SPDX-License-Identifier: Apache-2.0 */
/* test_provider.c: messages to a provider and to Twilio, and what became of
 * them (contract 11.11) */
#include <json-c/json.h>

#include "apr_strings.h"

#include "crm_buf.h"
#include "crm_http_script.h"
#include "crmapid_ending.h"
#include "crmapid_relay.h"

#define MAIL_CHANNEL (&crm_channels[CRM_CHANNEL_EMAIL])
#define SMS_CHANNEL (&crm_channels[CRM_CHANNEL_TEXT])
#define VOICE_CHANNEL (&crm_channels[CRM_CHANNEL_PHONE])

static const char *status_url;      /* of Twilio's reports, or NULL */

static crmd_config_t *config_of(void)
{
    crmd_config_t *config = apr_pcalloc(crm_check_pool(), sizeof(*config));

    config->mail_from = "sales@example.com";
    config->mail_from_name = "";
    config->sms_from = "+4930111";
    config->voice_from = "+4930222";
    config->provider_token = "geheim";
    config->provider_ca_file = "";
    config->provider_timeout = SERVER_LONG;
    config->twilio_account = "AC0123";
    config->twilio_token = "geheim";
    config->twilio_status_url = status_url;
    config->relay_concurrency = 3;
    return config;
}

static const crmd_message_t sms = {
    .channel = SMS_CHANNEL, .id = "0197c0de-0000-7000-8000-000000000001",
    .workspace_id = "0197c0de-0000-7000-8000-00000000000a",
    .to = "+491701234567", .text = "Gr\xc3\xbc\xc3\x9f & \"x\" + y=1%\n"
};

static void set_url(crmd_config_t *config, int port)
{
    config->provider_url = apr_psprintf(crm_check_pool(),
                                        "http://127.0.0.1:%d/messages", port);
    config->twilio_url = apr_psprintf(crm_check_pool(), "http://127.0.0.1:%d",
                                      port);
}

/* Hand MESSAGE to RELAY, where a server says ANSWER and does THEN. */
static crmd_receipt_t hand_over(const crmd_relay_t *relay,
                                const crmd_message_t *message,
                                const char *answer, then_t then)
{
    crmd_config_t *config = config_of();
    crmd_receipt_t receipt;
    server_t server;

    memset(&script, 0, sizeof(script));
    script.answer = answer;
    script.then = then;
    server_start(&server, serve, &script);
    set_url(config, server.port);
    if (then == HANG) {
        config->provider_timeout = SERVER_SHORT;
    }
    crmd_relay_send(&receipt, relay, message, config, crm_check_pool());
    server_stop_soon(&server, 1);
    ck_assert(!receipt.reason || !strstr(receipt.reason, "geheim"));
    ck_assert((receipt.verdict == CRMD_SENT) == !receipt.reason);
    return receipt;
}

static const struct {
    const char *answer;
    then_t then;
    crmd_verdict_t http;
    crmd_verdict_t twilio;
    const char *reason;         /* a part of both */
    int retry_after;            /* seconds */
} cases[] = {
    {SAYS("200", "{\"id\":\"A1\",\"sid\":\"A1\"}"), FINISH, CRMD_SENT,
     CRMD_SENT, NULL, 0},
    {SAYS("201", "{\"id\":\"A1\",\"sid\":\"A1\"}"), FINISH, CRMD_SENT,
     CRMD_SENT, NULL, 0},
    {SAYS("202", ""), FINISH, CRMD_SENT, CRMD_SENT, NULL, 0},
    {SAYS("201", "\xff{garbage"), FINISH, CRMD_SENT, CRMD_SENT, NULL, 0},
    {SAYS("201", "[]"), FINISH, CRMD_SENT, CRMD_SENT, NULL, 0},
    {SAYS("201", "{\"id\":{},\"sid\":null}"), FINISH, CRMD_SENT, CRMD_SENT,
     NULL, 0},
    {SAYS("201", "{"), FLOOD, CRMD_SENT, CRMD_SENT, NULL, 0},
    {SAYS("201", "{"), HANG, CRMD_SENT, CRMD_SENT, NULL, 0},
    {"HTTP/1.1 201 x\r\nContent-Length: 9\r\n\r\n{", FINISH, CRMD_SENT,
     CRMD_SENT, NULL, 0},
    {SAYS("302", ""), FINISH, CRMD_NOT_NOW, CRMD_NOT_NOW, "302", 0},
    {SAYS("400", "{\"code\":21211,\"message\":\"bad 'To' +491701234567\"}"),
     FINISH, CRMD_REFUSED, CRMD_REFUSED, "400, error 21211", 0},
    {SAYS("400", "{\"code\":999999}"), FINISH, CRMD_REFUSED, CRMD_REFUSED,
     "400, error 999999", 0},
    {SAYS("400", "{\"code\":1000000}"), FINISH, CRMD_REFUSED, CRMD_REFUSED,
     "400", 0},
    {SAYS("400", "{\"code\":491701234567}"), FINISH, CRMD_REFUSED,
     CRMD_REFUSED, "400", 0},
    {SAYS("400", "{\"code\":\"+491701234567\"}"), FINISH, CRMD_REFUSED,
     CRMD_REFUSED, "400", 0},
    {SAYS("400", "\x1b[2J\xff\n"), FINISH, CRMD_REFUSED, CRMD_REFUSED, "400",
     0},
    {SAYS("401", ""), FINISH, CRMD_NOT_NOW, CRMD_NOT_NOW, "401", 0},
    {SAYS("402", "{\"code\":17}"), FINISH, CRMD_NOT_NOW, CRMD_NOT_NOW,
     "402, error 17", 0},
    {SAYS("404", ""), FINISH, CRMD_REFUSED, CRMD_REFUSED, "404", 0},
    {SAYS("404", "{}"), FINISH, CRMD_REFUSED, CRMD_REFUSED, "404", 0},
    {SAYS("405", " {\"code\":17}"), FINISH, CRMD_REFUSED, CRMD_REFUSED,
     "405, error 17", 0},
    {SAYS("422", "x"), FLOOD, CRMD_REFUSED, CRMD_REFUSED, "422", 0},
    /* a proxy's, or of another program: at a wrong URL, or during a restart */
    {SAYS("404", "404 page not found\n"), FINISH, CRMD_NOT_NOW, CRMD_NOT_NOW,
     "404", 0},
    {SAYS("404", "<html>default backend</html>"), FINISH, CRMD_NOT_NOW,
     CRMD_NOT_NOW, "404", 0},
    {SAYS("403", "<!doctype html>"), FLOOD, CRMD_NOT_NOW, CRMD_NOT_NOW, "403",
     0},
    {SAYS("405", "[]"), FINISH, CRMD_NOT_NOW, CRMD_NOT_NOW, "405", 0},
    {SAYS("408", ""), FINISH, CRMD_NOT_NOW, CRMD_NOT_NOW, "408", 0},
    {SAYS("409", ""), FINISH, CRMD_UNKNOWN, CRMD_REFUSED, "409", 0},
    {SAYS("425", ""), FINISH, CRMD_NOT_NOW, CRMD_NOT_NOW, "425", 0},
    {"HTTP/1.1 429 x\r\nRetry-After: 17\r\nContent-Length: 0\r\n\r\n", FINISH,
     CRMD_NOT_NOW, CRMD_NOT_NOW, "429", 17},
    {"HTTP/1.1 503 x\r\nRetry-After: 99999999999999999999\r\n"
     "Content-Length: 0\r\n\r\n", FINISH, CRMD_NOT_NOW, CRMD_NOT_NOW, "503",
     -1},
    {"HTTP/1.1 503 x\r\nRetry-After: 86401\r\nContent-Length: 0\r\n\r\n",
     FINISH, CRMD_NOT_NOW, CRMD_NOT_NOW, "503", 86400},
    {"HTTP/1.1 503 x\r\nRetry-After: -5\r\nContent-Length: 0\r\n\r\n", FINISH,
     CRMD_NOT_NOW, CRMD_NOT_NOW, "503", 0},
    {"HTTP/1.1 503 x\r\nRetry-After: Thu, 01 Jan 1970 00:00:10 GMT\r\n"
     "Content-Length: 0\r\n\r\n", FINISH, CRMD_NOT_NOW, CRMD_NOT_NOW, "503",
     0},
    {SAYS("500", ""), FINISH, CRMD_NOT_NOW, CRMD_UNKNOWN, "500", 0},
    {SAYS("502", ""), FINISH, CRMD_UNKNOWN, CRMD_UNKNOWN, "502", 0},
    {SAYS("504", ""), FINISH, CRMD_UNKNOWN, CRMD_UNKNOWN, "504", 0},
    {"", FINISH, CRMD_UNKNOWN, CRMD_UNKNOWN, "", 0},
    {"", UNREAD, CRMD_UNKNOWN, CRMD_UNKNOWN, "", 0},
    {"", HANG, CRMD_UNKNOWN, CRMD_UNKNOWN, "timed out", 0},
    {"", FLOOD, CRMD_UNKNOWN, CRMD_UNKNOWN, "", 0},
    {"SSH-2.0-x\r\n", HANG, CRMD_UNKNOWN, CRMD_UNKNOWN, "", 0},
    {"HTTP/1.1 100 x\r\n\r\n", HANG, CRMD_UNKNOWN, CRMD_UNKNOWN, "", 0},
    {"HTTP/1.1 100 x\r\n\r\n" SAYS("201", ""), FINISH, CRMD_SENT, CRMD_SENT,
     NULL, 0},
};

static void check_case(int i, const crmd_relay_t *relay,
                       crmd_verdict_t verdict)
{
    crmd_receipt_t receipt = hand_over(relay, &sms, cases[i].answer,
                                       cases[i].then);
    int seconds = (int)apr_time_sec(receipt.retry_after);

    ck_assert_msg(receipt.verdict == verdict, "%s: verdict %d instead of %d"
                  " after \"%s\" (%s)", relay->name, receipt.verdict, verdict,
                  cases[i].answer, receipt.reason);
    ck_assert_msg(verdict == CRMD_SENT
                  || strstr(receipt.reason, cases[i].reason), "%s: %s",
                  relay->name, receipt.reason);
    ck_assert_msg(!receipt.reason || !strstr(receipt.reason, ", error")
                  || strstr(cases[i].reason, ", error"), "%s: %s", relay->name,
                  receipt.reason);
    ck_assert(!receipt.reason || !strpbrk(receipt.reason, "\r\n\x1b\xff"));
    /* It goes to the log. */
    ck_assert_msg(!receipt.reason || !strstr(receipt.reason, "1701234567"),
                  "%s: %s", relay->name, receipt.reason);
    ck_assert_pstr_eq(receipt.provider_id,
                      strstr(cases[i].answer, "A1") ? "A1" : NULL);
    ck_assert_msg(cases[i].retry_after < 0 ? seconds <= 86400
                  : seconds == cases[i].retry_after, "%d", seconds);
}

START_TEST(each_behaviour_has_its_verdict)
{
    check_case(_i, &crmd_relay_http, cases[_i].http);
    check_case(_i, &crmd_relay_twilio, cases[_i].twilio);
}
END_TEST

/* Errors of Twilio, what becomes of the message, and what the number is suppressed
 * for (contract 17.5). */
static const struct {
    const char *answer;
    crmd_verdict_t verdict;
    const char *suppress;
} refusals[] = {
    {SAYS("400", "{\"code\":21211}"), CRMD_REFUSED, "bounced"},
    {SAYS("400", "{\"code\":21610}"), CRMD_REFUSED, "unsubscribed"},
    {SAYS("400", "{\"code\":21614}"), CRMD_REFUSED, NULL},
    {SAYS("400", "{\"code\":2161}"), CRMD_REFUSED, NULL},
    {SAYS("400", "{\"status\":21610}"), CRMD_REFUSED, NULL},
    {SAYS("400", "21610"), CRMD_REFUSED, NULL},
    {SAYS("429", "{\"code\":21610}"), CRMD_NOT_NOW, NULL},
    {SAYS("201", "{\"code\":21610}"), CRMD_SENT, NULL},
    {SAYS("401", "{\"code\":20003}"), CRMD_NOT_NOW, NULL},
    {SAYS("403", "{\"code\":20003}"), CRMD_NOT_NOW, NULL},
    {SAYS("403", "{\"code\":20005}"), CRMD_NOT_NOW, NULL},
    {SAYS("403", "{\"code\":20008}"), CRMD_NOT_NOW, NULL},
    {SAYS("404", "{\"code\":20404}"), CRMD_NOT_NOW, NULL},
    {SAYS("400", "{\"code\":10001}"), CRMD_NOT_NOW, NULL},
    {SAYS("400", "{\"code\":21611}"), CRMD_NOT_NOW, NULL},
    {SAYS("500", "{\"code\":20003}"), CRMD_UNKNOWN, NULL},
    {SAYS("400", "{\"code\":63007}"), CRMD_REFUSED, NULL},
    {SAYS("429", "{\"code\":63018}"), CRMD_NOT_NOW, NULL},
};

START_TEST(a_refusal_may_speak_of_the_number_or_the_account)
{
    crmd_receipt_t receipt = hand_over(&crmd_relay_twilio, &sms,
                                       refusals[_i].answer, FINISH);

    ck_assert_msg(receipt.verdict == refusals[_i].verdict, "verdict %d after"
                  " %s", receipt.verdict, refusals[_i].answer);
    ck_assert_pstr_eq(receipt.suppress, refusals[_i].suppress);
}
END_TEST

START_TEST(retry_after_may_be_a_date)
{
    char date[APR_RFC822_DATE_LEN];
    crmd_receipt_t receipt;
    int seconds;

    apr_rfc822_date(date, apr_time_now() + apr_time_from_sec(100));
    receipt = hand_over(&crmd_relay_http, &sms, apr_pstrcat(
        crm_check_pool(), "HTTP/1.1 429 x\r\nRetry-After: ", date,
        "\r\nContent-Length: 0\r\n\r\n", NULL), FINISH);
    seconds = (int)apr_time_sec(receipt.retry_after);
    ck_assert_msg(seconds > 90 && seconds <= 100, "%d", seconds);
}
END_TEST

/* A refused connection, and a TLS handshake that is no such thing. */
START_TEST(what_never_got_through_is_not_now)
{
    const crmd_relay_t *relays[] = {&crmd_relay_http, &crmd_relay_twilio};
    int port, fd = server_open(&port, 0);
    crmd_config_t *config = config_of();
    crmd_receipt_t receipt;

    for (int i = 0; i < 4; i++) {
        set_url(config, port);
        if (i & 1) {
            server_t server;

            script.answer = "no TLS here, but a line that is long enough\r\n";
            script.then = FINISH;
            server_start(&server, serve, &script);
            config->provider_url = config->twilio_url = apr_psprintf(
                crm_check_pool(), "https://127.0.0.1:%d", server.port);
            crmd_relay_send(&receipt, relays[i / 2], &sms, config,
                            crm_check_pool());
            server_stop(&server);
            ck_assert_msg(strstr(receipt.reason, "TLS failed: ")
                          && !strstr(receipt.reason, "error:"), "%s",
                          receipt.reason);
        }
        else {
            crmd_relay_send(&receipt, relays[i / 2], &sms, config,
                            crm_check_pool());
            ck_assert_msg(strstr(receipt.reason, ": Connection refused"),
                          "%s", receipt.reason);
        }
        ck_assert_msg(receipt.verdict == CRMD_NOT_NOW, "%d: %s",
                      receipt.verdict, receipt.reason);
    }
    close(fd);
}
END_TEST

/* The daemon ends while a server takes the connection and says nothing: what was not
 * sent is given up, and what was is waited for. */
START_TEST(a_daemon_that_ends_waits_for_what_was_sent)
{
    int port, fd = server_open(&port, 1);
    crmd_config_t *config = config_of();
    crmd_receipt_t receipt;

    config->provider_url = apr_psprintf(crm_check_pool(), "%s://127.0.0.1:%d",
                                        _i ? "https" : "http", port);
    config->provider_timeout = _i ? SERVER_LONG : apr_time_from_sec(4);
    crmd_ending(1);
    crmd_relay_send(&receipt, &crmd_relay_http, &sms, config,
                    crm_check_pool());
    crmd_ending(0);
    close(fd);
    ck_assert_msg(receipt.verdict == (_i ? CRMD_NOT_NOW : CRMD_UNKNOWN),
                  "%d: %s", receipt.verdict, receipt.reason);
    ck_assert_msg((strstr(receipt.reason, "crmapid ends") != NULL) == _i, "%s",
                  receipt.reason);
}
END_TEST

/* Fail unless the member NAME of OBJECT is TEXT. */
static void has(json_object *object, const char *name, const char *text)
{
    json_object *value;

    ck_assert_msg(json_object_object_get_ex(object, name, &value), "no %s",
                  name);
    ck_assert_str_eq(json_object_get_string(value), text);
}

static json_object *sent_object(void)
{
    const char *body = strstr(script.request, "\r\n\r\n");
    json_object *object;

    ck_assert_ptr_nonnull(body);
    object = json_tokener_parse(body + 4);
    ck_assert_msg(object != NULL, "%s", body);
    return object;
}

START_TEST(what_the_provider_gets)
{
    static const char *const subjects[][2] = {
        {"re: Hello", "re: Hello"}, {"RE:Hello", "RE:Hello"},
        {"Report", "Re: Report"}, {"", "Re: "},
    };
    static const char *const copies[] = {"eve@example.org", "bob@example.org",
                                         NULL};
    static const crmd_file_t files[] = {{"a.pdf", "application/pdf", "ab", 3},
                                        {"b", "text/plain", "", 0}};
    crmd_message_t message = sms;
    json_object *object;

    hand_over(&crmd_relay_http, &sms, SAYS("200", ""), FINISH);
    ck_assert(!strncmp(script.request, "POST /messages HTTP/1.1\r\n", 25));
    ck_assert_ptr_nonnull(strstr(script.request, "\r\nIdempotency-Key: "
                                 "0197c0de-0000-7000-8000-000000000001\r\n"));
    ck_assert_ptr_nonnull(strstr(script.request,
                                 "\r\nAuthorization: Bearer geheim\r\n"));
    ck_assert_ptr_nonnull(strstr(script.request,
                                 "\r\nContent-Type: application/json\r\n"));
    ck_assert_ptr_nonnull(strstr(script.request, "\r\nUser-Agent: crmapid/"));
    object = sent_object();
    has(object, "id", sms.id);
    has(object, "channel", "sms");
    has(object, "workspace_id", sms.workspace_id);
    has(object, "from", "+4930111");
    has(object, "to", sms.to);
    has(object, "text", sms.text);
    ck_assert_int_eq(json_object_object_length(object), 6);
    json_object_put(object);
    message.via = "whatsapp";
    hand_over(&crmd_relay_http, &message, SAYS("200", ""), FINISH);
    object = sent_object();
    has(object, "via", "whatsapp");
    json_object_put(object);
    message.channel = VOICE_CHANNEL;
    message.objective = "a date";
    message.voice = "alloy";
    message.from_name = "Eve";
    hand_over(&crmd_relay_http, &message, SAYS("200", ""), FINISH);
    object = sent_object();
    /* the number is the site's, not hers */
    ck_assert(!json_object_object_get_ex(object, "from_name", NULL));
    has(object, "from", "+4930222");
    has(object, "objective", "a date");
    has(object, "voice_id", "alloy");
    has(object, "script", sms.text);
    json_object_put(object);
    message.channel = MAIL_CHANNEL;
    message.copies = copies;
    message.files = files;
    message.file_count = 2;
    message.html = "<p>x</p>";
    message.subject = "Hello";
    message.message_id = "<a@crm.example>";
    message.references = "<b@crm.example> <c@crm.example>";
    message.reply_to = "sales@crm.example";
    message.return_to = "sales+1@crm.example";
    message.token = "0123";
    message.unsubscribe = "https://x.org/u";
    hand_over(&crmd_relay_http, &message, SAYS("200", ""), FINISH);
    object = sent_object();
    has(object, "from", "sales@example.com");
    has(object, "subject", "Re: Hello");
    has(object, "message_id", message.message_id);
    has(object, "references", message.references);
    has(object, "reply_to", message.reply_to);
    has(object, "return_to", message.return_to);
    has(object, "return_token", message.token);
    has(object, "text", sms.text);
    has(object, "unsubscribe", "https://x.org/u");
    has(object, "html", message.html);
    has(object, "cc", "[ \"eve@example.org\", \"bob@example.org\" ]");
    has(object, "attachments", "[ { \"filename\": \"a.pdf\","
        " \"content_type\": \"application\\/pdf\", \"data\": \"YWIA\" },"
        " { \"filename\": \"b\", \"content_type\": \"text\\/plain\","
        " \"data\": \"\" } ]");
    ck_assert(!json_object_object_get_ex(object, "objective", NULL));
    ck_assert(!json_object_object_get_ex(object, "voice_id", NULL));
    json_object_put(object);
    for (size_t i = 0; i < CRM_NELTS(subjects); i++) {
        message.subject = subjects[i][0];
        hand_over(&crmd_relay_http, &message, SAYS("200", ""), FINISH);
        object = sent_object();
        has(object, "subject", subjects[i][1]);
        json_object_put(object);
    }
    message.from = "eve@example.com";
    hand_over(&crmd_relay_http, &message, SAYS("200", ""), FINISH);
    object = sent_object();
    has(object, "from", "eve@example.com");
    has(object, "from_name", "Eve");
    json_object_put(object);
}
END_TEST

/* The server need not say 100 to a large request first, which takes a second. */
START_TEST(a_large_request_waits_for_nothing)
{
    crmd_message_t message = sms;
    char *text = apr_pcalloc(crm_check_pool(), 2000001);

    memset(text, 'x', 2000000);
    message.text = text;
    hand_over(&crmd_relay_http, &message, SAYS("200", ""), FINISH);
    ck_assert(!strncmp(script.request, "POST /messages HTTP/1.1\r\n", 25));
    ck_assert_ptr_null(strcasestr(script.request, "\r\nExpect:"));
}
END_TEST

START_TEST(what_twilio_gets)
{
    crmd_message_t message = sms;

    hand_over(&crmd_relay_twilio, &sms, SAYS("201", ""), FINISH);
    ck_assert(!strncmp(script.request, "POST /2010-04-01/Accounts/AC0123/"
                       "Messages.json HTTP/1.1\r\n", 56));
    /* printf AC0123:geheim | base64 */
    ck_assert_ptr_nonnull(strstr(script.request, "\r\nAuthorization: Basic "
                                 "QUMwMTIzOmdlaGVpbQ==\r\n"));
    ck_assert_ptr_nonnull(strstr(script.request, "\r\nContent-Type: "
                                 "application/x-www-form-urlencoded\r\n"));
    ck_assert_str_eq(strstr(script.request, "\r\n\r\n"), "\r\n\r\nFrom=%2B4930"
                     "111&To=%2B491701234567&Body=Gr%C3%BC%C3%9F%20%26%20%22x"
                     "%22%20%2B%20y%3D1%25%0A");
    message.channel = VOICE_CHANNEL;
    message.text = "<Dial>\x01\t\n\x1f\x7f\xc3\xbc";
    hand_over(&crmd_relay_twilio, &message, SAYS("201", ""), FINISH);
    ck_assert(!strncmp(script.request, "POST /2010-04-01/Accounts/AC0123/"
                       "Calls.json HTTP/1.1\r\n", 53));
    ck_assert_str_eq(strstr(script.request, "\r\n\r\n"), "\r\n\r\nFrom=%2B4930"
                     "222&To=%2B491701234567&Twiml=%3CResponse%3E%3CSay%3E%26"
                     "lt%3BDial%26gt%3B%20%09%0A%20%20%C3%BC%3C%2FSay%3E"
                     "%3C%2FResponse%3E");
}
END_TEST

/* A message by WhatsApp is answered there. */
START_TEST(twilio_has_other_ways)
{
    crmd_message_t message = sms;

    message.via = "whatsapp";
    hand_over(&crmd_relay_twilio, &message, SAYS("201", ""), FINISH);
    ck_assert_ptr_nonnull(strstr(script.request, "\r\n\r\nFrom=whatsapp%3A%2B4930"
                                 "111&To=whatsapp%3A%2B491701234567&Body="));
    message.via = "pigeon";
    hand_over(&crmd_relay_twilio, &message, SAYS("201", ""), FINISH);
    ck_assert_ptr_nonnull(strstr(script.request, "\r\n\r\nFrom=%2B4930111&To=%2B"
                                 "491701234567&Body="));
}
END_TEST

/* A sender may be a Messaging Service, which chooses a number. */
START_TEST(twilio_has_services_that_send)
{
    static const char service[] = "MG0123456789abcdef0123456789ABCDEF";
    static const char *const others[] = {
        "MGM Grand", "MG0123456789abcdef0123456789abcdeg",
        "MG0123456789abcdef0123456789abcdef0", "MG0123456789abcdef",
        "mg0123456789abcdef0123456789abcdef"
    };
    crmd_message_t message = sms;

    message.from = service;
    hand_over(&crmd_relay_twilio, &message, SAYS("201", ""), FINISH);
    ck_assert_ptr_nonnull(strstr(script.request, apr_pstrcat(
        crm_check_pool(), "\r\n\r\nMessagingServiceSid=", service,
        "&To=%2B491701234567&Body=", NULL)));
    message.via = "whatsapp";
    hand_over(&crmd_relay_twilio, &message, SAYS("201", ""), FINISH);
    ck_assert_ptr_nonnull(strstr(script.request, apr_pstrcat(
        crm_check_pool(), "\r\n\r\nMessagingServiceSid=", service,
        "&To=whatsapp%3A%2B491701234567&Body=", NULL)));
    message.via = NULL;
    for (size_t i = 0; i < COUNT(others); i++) {
        message.from = others[i];
        hand_over(&crmd_relay_twilio, &message, SAYS("201", ""), FINISH);
        ck_assert_ptr_nonnull(strstr(script.request, "\r\n\r\nFrom="));
    }
}
END_TEST

/* Twilio reads a text in the voice's language. It knows these names. */
START_TEST(whose_voice_twilio_has)
{
    static const char *const voices[][2] = {
        {"Polly.Vicki-Neural", "Polly.Vicki-Neural"},
        {"Google.de-DE-Neural2-A", "Google.de-DE-Neural2-A"}, {"woman", "woman"},
        {"alloy", NULL}, {"21m00Tcm4TlvDq8ikWAM", NULL}, {"Polly.\"x", NULL},
        {"Polly.", NULL}, {"polly.Vicki", NULL}, {"women", NULL},
    };
    crmd_message_t message = sms;

    message.channel = VOICE_CHANNEL;
    for (size_t i = 0; i < CRM_NELTS(voices); i++) {
        message.voice = voices[i][0];
        hand_over(&crmd_relay_twilio, &message, SAYS("201", ""), FINISH);
        ck_assert_msg(strstr(script.request, voices[i][1]
            ? apr_pstrcat(crm_check_pool(), "%3CSay%20voice%3D%22", voices[i][1],
                          "%22%3E", NULL) : "%3CSay%3E") != NULL, "%s",
                      voices[i][0]);
    }
}
END_TEST

/* The report names message and workspace: the sender may be no agent's. */
START_TEST(twilio_is_told_where_to_report)
{
    static const char message[] = "message%3D0197c0de-0000-7000-8000-"
        "000000000001%26workspace%3D0197c0de-0000-7000-8000-00000000000a";
    /* the setting; what stands before the parameters and behind them */
    static const char *const urls[][3] = {
        {"https://crm.example/status", "https%3A%2F%2Fcrm.example%2Fstatus%3F",
         ""},
        {"https://crm.example/s?a=1",
         "https%3A%2F%2Fcrm.example%2Fs%3Fa%3D1%26", ""},
        {"https://crm.example/s#rc=3&rp=all",
         "https%3A%2F%2Fcrm.example%2Fs%3F", "%23rc%3D3%26rp%3Dall"},
        {"https://crm.example/s?a=1#rc=3?",
         "https%3A%2F%2Fcrm.example%2Fs%3Fa%3D1%26", "%23rc%3D3%3F"},
    };

    for (size_t i = 0; i < CRM_NELTS(urls); i++) {
        status_url = urls[i][0];
        hand_over(&crmd_relay_twilio, &sms, SAYS("201", ""), FINISH);
        status_url = NULL;
        ck_assert_ptr_nonnull(strstr(script.request, apr_pstrcat(
            crm_check_pool(), "&StatusCallback=", urls[i][1], message, urls[i][2],
            NULL)));
    }
}
END_TEST

/* An agent without a number may send when the site has one. */
START_TEST(without_a_sender_it_is_not_now)
{
    crmd_config_t *config = config_of();
    crmd_receipt_t receipt;
    int port, fd = server_open(&port, 0);

    set_url(config, port);
    config->sms_from = "";
    crmd_relay_send(&receipt, &crmd_relay_twilio, &sms, config,
                    crm_check_pool());
    ck_assert_int_eq(receipt.verdict, CRMD_NOT_NOW);
    ck_assert_str_eq(receipt.reason, "no sender: sms_from is not set");
    close(fd);
}
END_TEST

START_TEST(what_the_configuration_lacks_is_told)
{
    apr_pool_t *pool = crm_check_pool();
    crmd_config_t *config = config_of();
    const crmd_relay_t *http = &crmd_relay_http, *twilio = &crmd_relay_twilio;

    set_url(config, 80);
    ck_assert_ptr_null(http->check(config, MAIL_CHANNEL, pool));
    ck_assert_ptr_null(twilio->check(config, SMS_CHANNEL, pool));
    ck_assert_ptr_null(twilio->check(config, VOICE_CHANNEL, pool));
    ck_assert_ptr_nonnull(twilio->check(config, MAIL_CHANNEL, pool));
    ck_assert_int_eq(http->repeatable(config), 1);
    ck_assert_int_eq(twilio->repeatable(config), 0);
    config->provider_url = "";
    ck_assert_ptr_nonnull(http->check(config, SMS_CHANNEL, pool));
    config->twilio_account = "../x";
    ck_assert_ptr_nonnull(twilio->check(config, SMS_CHANNEL, pool));
    config->twilio_account = "AC1";
    config->twilio_token = "";
    ck_assert_ptr_nonnull(twilio->check(config, SMS_CHANNEL, pool));
}
END_TEST

static void *hand_over_one(void *argument)
{
    crmd_receipt_t receipt;
    apr_pool_t *pool;

    apr_pool_create(&pool, NULL);
    crmd_relay_enter(&crmd_relay_http, argument);
    crmd_relay_send(&receipt, &crmd_relay_http, &sms, argument, pool);
    crmd_relay_leave(&crmd_relay_http);
    apr_pool_destroy(pool);
    return receipt.verdict == CRMD_SENT ? argument : NULL;
}

/* Of six that want to send three are let through at once: a fourth does not
 * come while they wait for their answers. */
START_TEST(so_many_at_once_and_no_more)
{
    enum { THREADS = 6, LIMIT = 3 };
    crmd_config_t *config = config_of();
    struct pollfd listening = {.events = POLLIN};
    pthread_t threads[THREADS];
    int port, fds[LIMIT];
    void *result;

    listening.fd = server_open(&port, 1);
    set_url(config, port);
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, hand_over_one, config);
    }
    for (int round = 0; round < THREADS / LIMIT; round++) {
        for (int i = 0; i < LIMIT; i++) {
            ck_assert_int_eq(poll(&listening, 1, 5000), 1);
            fds[i] = accept(listening.fd, NULL, NULL);
            server_read_http(fds[i], script.request,
                             sizeof(script.request));
        }
        ck_assert_int_eq(poll(&listening, 1, 100), 0);
        for (int i = 0; i < LIMIT; i++) {
            server_puts(fds[i], SAYS("200", ""));
            close(fds[i]);
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &result);
        ck_assert_ptr_nonnull(result);
    }
    close(listening.fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("provider");
    TCase *verdicts = tcase_create("verdicts"), *rest = tcase_create("rest");

    tcase_add_loop_test(verdicts, each_behaviour_has_its_verdict, 0,
                        COUNT(cases));
    tcase_add_loop_test(verdicts,
                        a_refusal_may_speak_of_the_number_or_the_account, 0,
                        COUNT(refusals));
    tcase_add_test(rest, retry_after_may_be_a_date);
    tcase_add_test(rest, what_never_got_through_is_not_now);
    tcase_add_loop_test(rest, a_daemon_that_ends_waits_for_what_was_sent, 0, 2);
    tcase_add_test(rest, what_the_provider_gets);
    tcase_add_test(rest, a_large_request_waits_for_nothing);
    tcase_add_test(rest, what_twilio_gets);
    tcase_add_test(rest, whose_voice_twilio_has);
    tcase_add_test(rest, twilio_has_other_ways);
    tcase_add_test(rest, twilio_has_services_that_send);
    tcase_add_test(rest, twilio_is_told_where_to_report);
    tcase_add_test(rest, without_a_sender_it_is_not_now);
    tcase_add_test(rest, what_the_configuration_lacks_is_told);
    tcase_add_test(rest, so_many_at_once_and_no_more);
    suite_add_tcase(suite, verdicts);
    suite_add_tcase(suite, rest);
    return crm_check_main(suite);
}
