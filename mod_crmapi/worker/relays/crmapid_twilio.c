/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_twilio.c: the relay "twilio": text messages and calls by Twilio's
 * REST API (2010-04-01) */
#include <string.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_array.h"
#include "crm_buf.h"
#include "crm_html.h"
#include "crm_twilio_error.h"

#include "crmapid_relay.h"

#define ANSWER_MAX 65536

/* Twilio's errors that speak of the account or the sender's queue, with whatever
 * status: each message gets them, until somebody has changed something. */
static const char *const account_errors[] = {
    "10001",                    /* the account is not active */
    "20003",                    /* wrong credentials, or the account is suspended */
    "20005",                    /* the account is not active */
    "20008",                    /* credentials for tests */
    "20404",                    /* there is no such account */
    "21611",                    /* the sender has too many messages in its queue */
};

/* Add NAME=TEXT to BUF (application/x-www-form-urlencoded). */
static void add_field(crm_buf_t *buf, const char *name, const char *text)
{
    crm_buf_printf(buf, "%s%s=", buf->len ? "&" : "", name);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (apr_isalnum(c) || strchr("-._~", c)) {
            crm_buf_putc(buf, *text);
        }
        else {
            crm_buf_printf(buf, "%%%02X", c);
        }
    }
}

/* Return whether Twilio's <Say> has VOICE, which may be NULL or another service's. */
static int has_voice(const char *voice)
{
    static const char *const basic[] = {"man", "woman", "alice"};
    const char *name = !voice ? NULL : !strncmp(voice, "Polly.", 6) ? voice + 6
                       : !strncmp(voice, "Google.", 7) ? voice + 7 : NULL;

    if (!name) {
        return voice && CRM_IS_ONE_OF(voice, basic);
    }
    return *name && strspn(name, "abcdefghijklmnopqrstuvwxyz"
                           "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")
                    == strlen(name);
}

/* Return TwiML that says SCRIPT in VOICE, in POOL. Characters that XML 1.0 does not
 * allow become spaces. */
static const char *twiml_of(const char *script, const char *voice,
                            apr_pool_t *pool)
{
    char *text = apr_pstrdup(pool, script);
    crm_buf_t buf;

    for (char *c = text; *c; c++) {
        if (apr_iscntrl(*c) && *c != '\n' && *c != '\t') {
            *c = ' ';
        }
    }
    crm_buf_init(&buf, 1024, pool);
    crm_buf_puts(&buf, "<Response><Say");
    if (has_voice(voice)) {     /* otherwise it is Twilio's own, in English */
        crm_buf_printf(&buf, " voice=\"%s\"", voice);
    }
    crm_html_put(&buf, ">", text, "</Say></Response>", NULL);
    crm_buf_putc(&buf, '\0');
    return buf.data;
}

/* Return whether SENDER is the SID of a Messaging Service, which chooses one of its
 * numbers. */
static int is_service(const char *sender)
{
    return !strncmp(sender, "MG", 2) && strlen(sender) == 34
           && strspn(sender + 2, "0123456789abcdefABCDEF") == 32;
}

/* Add who sends, SENDER, by WAY, "whatsapp:" or "". */
static void add_sender(crm_buf_t *buf, const char *way, const char *sender,
                       apr_pool_t *pool)
{
    if (is_service(sender)) {
        add_field(buf, "MessagingServiceSid", sender);
    }
    else {
        add_field(buf, "From", apr_pstrcat(pool, way, sender, NULL));
    }
}

/* Add where Twilio reports what became of MESSAGE. The parameters name it, since
 * a report may come before the answer to this request is stored, and the sender may be
 * no agent's number (sms_from). They stand before a fragment, which tells Twilio how to
 * connect ("#rc=3"). */
static void add_callback(crm_buf_t *buf, const crmd_message_t *message,
                         const crmd_config_t *config, apr_pool_t *pool)
{
    const char *url = config->twilio_status_url, *fragment;

    if (url && *url) {
        fragment = url + strcspn(url, "#");
        url = apr_pstrmemdup(pool, url, (apr_size_t)(fragment - url));
        add_field(buf, "StatusCallback", apr_pstrcat(
                      pool, url, strchr(url, '?') ? "&" : "?", "message=",
                      message->id, "&workspace=", message->workspace_id,
                      fragment, NULL));
    }
}

/* Add the request body for MESSAGE from SENDER to BUF. */
static void add_form(crm_buf_t *buf, const crmd_message_t *message,
                     const char *sender, const crmd_config_t *config,
                     apr_pool_t *pool)
{
    const char *text = message->text ? message->text : "";
    const char *way = message->via && !strcmp(message->via, "whatsapp")
                      ? "whatsapp:" : "";

    add_sender(buf, way, sender, pool);
    add_field(buf, "To", apr_pstrcat(pool, way, message->to, NULL));
    if (crm_channel_is(message->channel, CRM_CHANNEL_PHONE)) {
        add_field(buf, "Twiml", twiml_of(text, message->voice, pool));
    }
    else {
        add_field(buf, "Body", text);
        add_callback(buf, message, config, pool);
    }
}

/* Return the verdict for an answer of STATUS about the message, which is not a
 * success, with the error CODE (NULL: none). Twilio has no idempotency key, so the
 * verdict is CRMD_UNKNOWN unless the answer is a clear refusal. */
static crmd_verdict_t verdict_of(int status, const char *code)
{
    if (status < 500 && code && CRM_IS_ONE_OF(code, account_errors)) {
        return CRMD_NOT_NOW;
    }
    if (status < 400 || status == 503) {    /* redirects are not followed */
        return CRMD_NOT_NOW;
    }
    return status < 500 ? CRMD_REFUSED : CRMD_UNKNOWN;
}

/* Fill RECEIPT from ANSWER. */
static void judge(crmd_receipt_t *receipt, const crmd_http_answer_t *answer,
                  apr_pool_t *pool)
{
    const char *code;

    if (crmd_answer_fill(receipt, "Twilio", "sid", answer, pool)) {
        return;
    }
    code = crmd_answer_id(answer, "code", pool);
    crmd_receipt_fill(receipt, crmd_answer_is_aside(answer, pool)
                          ? CRMD_NOT_NOW : verdict_of(answer->status, code),
                      crmd_answer_reason("Twilio", answer, pool));
    if (receipt->verdict == CRMD_REFUSED) {
        receipt->suppress = crm_twilio_error_suppresses(code);
    }
}

static void send_message(crmd_receipt_t *receipt,
                         const crmd_message_t *message,
                         const crmd_config_t *config, apr_pool_t *pool)
{
    const char *sender = crmd_sender_of(message, config);
    crmd_http_request_t request = {.max_answer = ANSWER_MAX};
    crmd_http_answer_t answer;
    crm_buf_t body;

    if (!sender) {
        crmd_receipt_fill(receipt, CRMD_NOT_NOW, apr_pstrcat(
                              pool, "no sender: ", message->channel->way,
                              "_from is not set", NULL));
        return;
    }
    crm_buf_init(&body, 1024, pool);
    add_form(&body, message, sender, config, pool);
    request.url = apr_pstrcat(pool, config->twilio_url,
                              "/2010-04-01/Accounts/", config->twilio_account,
                              crm_channel_is(message->channel,
                                             CRM_CHANNEL_PHONE)
                              ? "/Calls.json" : "/Messages.json", NULL);
    request.body = body.data;
    request.body_len = body.len;
    request.user = config->twilio_account;
    request.password = config->twilio_token;
    request.timeout = config->provider_timeout;
    request.ca_file = config->provider_ca_file;
    crmd_http_send(&answer, &request, pool);
    judge(receipt, &answer, pool);
}

static crm_error_t *check(const crmd_config_t *config,
                          const crm_channel_t *channel, apr_pool_t *pool)
{
    const char *c = config->twilio_account;

    if (crm_channel_is(channel, CRM_CHANNEL_EMAIL)) {
        return crm_error_create(CRM_E_BAD_REQUEST, "the relay twilio is for sms"
                                " and voice only, not for email", pool);
    }
    while (apr_isalnum(*c)) {
        c++;
    }
    if (!*config->twilio_account || *c) {
        return crm_error_createf(CRM_E_BAD_REQUEST, pool, "twilio_account must"
                                 " be the account's SID: the relay of %s is"
                                 " twilio", channel->way);
    }
    if (!*config->twilio_token) {
        return crm_error_create(CRM_E_BAD_REQUEST, "twilio_token_file is not"
                                " set: the relay twilio needs it", pool);
    }
    return NULL;
}

static int repeatable(const crmd_config_t *config)
{
    (void)config;
    return 0;
}

const crmd_relay_t crmd_relay_twilio = {
    "twilio", check, repeatable, send_message
};
