/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_provider.c: the relay "http": messages to a provider in the format of
 * docs/provider.md */

#include "apr_base64.h"
#include "apr_strings.h"

#include "crm_buf.h"

#include "crmapid_relay.h"

#define ANSWER_MAX 65536

/* Add the member NAME with TEXT (NULL: no member) to BUF. */
static void add_member(crm_buf_t *buf, const char *name, const char *text)
{
    if (text) {
        crm_buf_putc(buf, buf->len ? ',' : '{');
        crm_buf_json_text(buf, name);
        crm_buf_putc(buf, ':');
        crm_buf_json_text(buf, text);
    }
}

/* Add the array "cc" with MESSAGE's copies, if there are any, to BUF. */
static void add_copies(crm_buf_t *buf, const crmd_message_t *message)
{
    for (const char *const *copy = message->copies; copy && *copy; copy++) {
        crm_buf_puts(buf, copy == message->copies ? ",\"cc\":[" : ",");
        crm_buf_json_text(buf, *copy);
    }
    crm_buf_puts(buf, message->copies && *message->copies ? "]" : "");
}

/* Add the array "attachments" with MESSAGE's files, if there are any, to BUF. */
static void add_files(crm_buf_t *buf, const crmd_message_t *message)
{
    for (int i = 0; i < message->file_count; i++) {
        const crmd_file_t *file = &message->files[i];
        char *data = apr_palloc(buf->pool, (apr_size_t)apr_base64_encode_len(
                                    (int)file->len));

        apr_base64_encode_binary(data, (const unsigned char *)file->data,
                                 (int)file->len);
        crm_buf_puts(buf, i ? ",{\"filename\":"
                     : ",\"attachments\":[{\"filename\":");
        crm_buf_json_text(buf, file->name);
        crm_buf_puts(buf, ",\"content_type\":");
        crm_buf_json_text(buf, file->type);
        crm_buf_puts(buf, ",\"data\":\"");
        crm_buf_puts(buf, data);
        crm_buf_puts(buf, "\"}");
    }
    crm_buf_puts(buf, message->file_count ? "]" : "");
}

static void add_message(crm_buf_t *buf, const crmd_message_t *message,
                        const crmd_config_t *config)
{
    int voice = crm_channel_is(message->channel, CRM_CHANNEL_PHONE);

    add_member(buf, "id", message->id);
    add_member(buf, "channel", message->channel->way);
    add_member(buf, "workspace_id", message->workspace_id);
    add_member(buf, "from", crmd_sender_of(message, config));
    add_member(buf, "from_name", message->from && *message->from
               ? message->from_name : NULL);
    add_member(buf, "to", message->to);
    add_member(buf, "to_name", message->to_name);
    add_member(buf, "objective", voice ? message->objective : NULL);
    add_member(buf, "voice_id", voice ? message->voice : NULL);
    add_member(buf, "via", message->via);
    add_member(buf, voice ? "script" : "text", message->text);
    if (crm_channel_is(message->channel, CRM_CHANNEL_EMAIL)) {
        add_member(buf, "subject", message->subject
                   ? crmd_subject_of(message, buf->pool) : NULL);
        add_copies(buf, message);
        add_files(buf, message);
        add_member(buf, "html", message->html);
        add_member(buf, "unsubscribe", message->unsubscribe);
        add_member(buf, "message_id", message->message_id);
        add_member(buf, "reply_to", message->reply_to);
        add_member(buf, "return_to", message->return_to);
        add_member(buf, "references", message->references);
        add_member(buf, "thread_index", message->thread_index);
        add_member(buf, "return_token", message->token);
    }
    crm_buf_putc(buf, '}');
}

/* Return the verdict for an answer of STATUS about the message. After a gateway
 * error (502, 504), or while a request with the same key is in progress (409), the
 * provider may have accepted the message. */
static crmd_verdict_t verdict_of(int status)
{
    if (status < 300) {
        return CRMD_SENT;
    }
    if (status == 409 || status == 502 || status == 504) {
        return CRMD_UNKNOWN;
    }
    return status >= 400 && status < 500 ? CRMD_REFUSED : CRMD_NOT_NOW;
}

/* Fill RECEIPT from ANSWER. */
static void judge(crmd_receipt_t *receipt, const crmd_http_answer_t *answer,
                  apr_pool_t *pool)
{
    if (!crmd_answer_fill(receipt, "the provider", "id", answer, pool)) {
        crmd_receipt_fill(receipt, crmd_answer_is_aside(answer, pool)
                          ? CRMD_NOT_NOW : verdict_of(answer->status),
                          crmd_answer_reason("the provider", answer, pool));
    }
}

static void send_message(crmd_receipt_t *receipt,
                         const crmd_message_t *message,
                         const crmd_config_t *config, apr_pool_t *pool)
{
    const char *headers[4] = {"Content-Type: application/json"};
    crmd_http_request_t request = {.url = config->provider_url};
    crmd_http_answer_t answer;
    crm_buf_t body;

    headers[1] = apr_pstrcat(pool, "Idempotency-Key: ", message->id, NULL);
    if (*config->provider_token) {
        headers[2] = apr_pstrcat(pool, "Authorization: Bearer ",
                                 config->provider_token, NULL);
    }
    crm_buf_init(&body, 1024, pool);
    add_message(&body, message, config);
    request.headers = headers;
    request.body = body.data;
    request.body_len = body.len;
    request.timeout = config->provider_timeout;
    request.ca_file = config->provider_ca_file;
    request.max_answer = ANSWER_MAX;
    crmd_http_send(&answer, &request, pool);
    judge(receipt, &answer, pool);
}

static crm_error_t *check(const crmd_config_t *config,
                          const crm_channel_t *channel, apr_pool_t *pool)
{
    if (!*config->provider_url) {
        return crm_error_createf(CRM_E_BAD_REQUEST, pool, "provider_url is not"
                                 " set: the relay of %s is http", channel->way);
    }
    return NULL;
}

static int repeatable(const crmd_config_t *config)
{
    (void)config;
    return 1;                   /* requests have an Idempotency-Key */
}

const crmd_relay_t crmd_relay_http = {
    "http", check, repeatable, send_message
};
