/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_relay.c: the relays, their slots, and functions that they share */
#include "crmapid_relay.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_channel.h"
#include "crm_email.h"
#include "crm_json.h"
#include "crm_phone.h"
#include "crm_slots.h"
#include "crm_text.h"
#include "crm_time.h"
#include "crmapid_stats.h"

enum { RELAYS = CRMD_STATS_RELAYS };

/* A server that is away is waited for, if that takes so long. */
#define AWAY_TIME apr_time_from_sec(1)

const crmd_relay_t *const crmd_relays[RELAYS + 1] = {
    &crmd_relay_maildir, &crmd_relay_smtp, &crmd_relay_http,
    &crmd_relay_twilio, NULL
};

/* The settings of a channel: its relay, and the sender of messages that have
 * none. */
static const struct {
    size_t relay;               /* in crmd_config_t */
    size_t from;
} settings[CRM_CHANNELS] = {
    [CRM_CHANNEL_EMAIL] = {offsetof(crmd_config_t, email_relay),
                           offsetof(crmd_config_t, mail_from)},
    [CRM_CHANNEL_TEXT] = {offsetof(crmd_config_t, sms_relay),
                          offsetof(crmd_config_t, sms_from)},
    [CRM_CHANNEL_PHONE] = {offsetof(crmd_config_t, voice_relay),
                           offsetof(crmd_config_t, voice_from)},
};

/* The slots of each relay. */
static crm_slots_t slots[RELAYS] = {
    CRM_SLOTS_INITIALIZER, CRM_SLOTS_INITIALIZER, CRM_SLOTS_INITIALIZER,
    CRM_SLOTS_INITIALIZER
};

void crmd_receipt_fill(crmd_receipt_t *receipt, crmd_verdict_t verdict,
                       const char *reason)
{
    receipt->verdict = verdict;
    receipt->reason = verdict == CRMD_SENT ? NULL : reason;
}

/* Return the member NAME of ANSWER's JSON, NULL if it has none. It is freed
 * with POOL. */
static json_object *member(const crmd_http_answer_t *answer, const char *name,
                           apr_pool_t *pool)
{
    json_object *object, *value;
    apr_size_t offset;

    if (crm_json_parse(&object, &offset, answer->body, answer->len, pool)
        || !json_object_object_get_ex(object, name, &value)) {
        return NULL;
    }
    return value;
}

/* Return whether ANSWER has a text that is no JSON object. */
static int is_foreign(const crmd_http_answer_t *answer, apr_pool_t *pool)
{
    json_object *object;
    apr_size_t offset;

    return answer->len
           && (crm_json_parse(&object, &offset, answer->body, answer->len, pool)
               || !json_object_is_type(object, json_type_object));
}

int crmd_answer_is_aside(const crmd_http_answer_t *answer, apr_pool_t *pool)
{
    switch (answer->status) {
    case 401:                   /* the login is refused */
    case 402:                   /* the account has no money */
    case 408:
    case 425:
    case 429:
        return 1;
    case 403:
    case 404:
    case 405:
        return is_foreign(answer, pool);
    default:
        return 0;
    }
}

const char *crmd_answer_id(const crmd_http_answer_t *answer, const char *name,
                           apr_pool_t *pool)
{
    json_object *id = member(answer, name, pool);
    const char *text;

    if (!json_object_is_type(id, json_type_string)
        && !json_object_is_type(id, json_type_int)) {
        return NULL;
    }
    text = json_object_get_string(id);
    return crm_text_one_line(text, strlen(text), CRMD_LINE_MAX, pool);
}

const char *crmd_answer_reason(const char *who,
                               const crmd_http_answer_t *answer,
                               apr_pool_t *pool)
{
    json_object *code = member(answer, "code", pool);
    apr_int64_t number = json_object_is_type(code, json_type_int)
                         ? json_object_get_int64(code) : 0;

    if (number > 0 && number <= CRMD_CODE_MAX) {
        return apr_psprintf(pool, "%s answered %d, error %d", who,
                            answer->status, (int)number);
    }
    return apr_psprintf(pool, "%s answered %d", who, answer->status);
}

int crmd_answer_fill(crmd_receipt_t *receipt, const char *who, const char *id,
                     const crmd_http_answer_t *answer, apr_pool_t *pool)
{
    receipt->retry_after = answer->retry_after;
    if (!answer->status) {
        receipt->away = 1;
        crmd_receipt_fill(receipt, answer->sent ? CRMD_UNKNOWN : CRMD_NOT_NOW,
                          apr_pstrcat(pool, who, ": ", answer->error, NULL));
    }
    else if (answer->status < 300) {
        crmd_receipt_fill(receipt, CRMD_SENT, NULL);
        receipt->provider_id = crmd_answer_id(answer, id, pool);
    }
    return answer->status < 300;
}

const char *crmd_subject_of(const crmd_message_t *message, apr_pool_t *pool)
{
    const char *text = message->subject ? message->subject : "";

    return message->references && !message->subject_whole
           && strncasecmp(text, "re:", 3)
           ? apr_pstrcat(pool, "Re: ", text, NULL) : text;
}

/* Return the text at OFFSET of CONFIG. */
static const char *setting(const crmd_config_t *config, size_t offset)
{
    return *(const char *const *)(const void *)((const char *)config + offset);
}

const char *crmd_sender_of(const crmd_message_t *message,
                           const crmd_config_t *config)
{
    const char *sender = message->from;

    if (!sender || !*sender) {
        sender = setting(config, settings[message->channel
                                          - crm_channels].from);
    }
    return *sender ? sender : NULL;
}

const crmd_relay_t *crmd_relay_of(const crmd_config_t *config,
                                  const crm_channel_t *channel)
{
    for (const crmd_relay_t *const *relay = crmd_relays; channel && *relay;
         relay++) {
        if (!strcmp((*relay)->name, setting(
                        config, settings[channel - crm_channels].relay))) {
            return *relay;
        }
    }
    return &crmd_relay_maildir;
}

int crmd_relay_number(const crmd_relay_t *relay)
{
    for (int i = 0; i < RELAYS; i++) {
        if (crmd_relays[i] == relay) {
            return i;
        }
    }
    return -1;
}

/* Return the slots of RELAY. NULL: it has no limit. */
static crm_slots_t *slots_of(const crmd_relay_t *relay)
{
    int number = crmd_relay_number(relay);

    return number < 0 ? NULL : &slots[number];
}

void crmd_relay_enter(const crmd_relay_t *relay, const crmd_config_t *config)
{
    crm_slots_t *taken = slots_of(relay);

    if (taken) {
        crm_slots_wait(taken, config->relay_concurrency);
    }
}

void crmd_relay_leave(const crmd_relay_t *relay)
{
    crm_slots_t *taken = slots_of(relay);

    if (taken) {
        crm_slots_leave(taken);
    }
}

const char *crmd_relay_wire(const crm_channel_t *channel, const char *address,
                            apr_pool_t *result_pool)
{
    if (!address || !channel) {
        return NULL;
    }
    return channel->by == CRM_CHANNEL_BY_EMAIL
           ? crm_email_canonical(address, result_pool)
           : crm_phone_e164(address, result_pool);
}

void crmd_relay_send(crmd_receipt_t *receipt, const crmd_relay_t *relay,
                     const crmd_message_t *message,
                     const crmd_config_t *config, apr_pool_t *pool)
{
    crm_slots_t *taken = slots_of(relay);
    apr_interval_time_t took;
    apr_time_t begun;

    memset(receipt, 0, sizeof(*receipt));
    if (!message->to) {
        crmd_receipt_fill(receipt, CRMD_REFUSED, "the recipient's address is"
                          " not usable");
        return;
    }
    if (taken && !crm_slots_try(taken, config->relay_concurrency)) {
        crmd_receipt_fill(receipt, CRMD_NOT_NOW, "the server is away, and"
                          " another message waits for it");
        return;
    }
    begun = crm_time_monotonic();
    relay->send(receipt, message, config, pool);
    took = crm_time_monotonic() - begun;
    if (taken) {
        crm_slots_tried(taken, receipt->away && took >= AWAY_TIME);
        crm_metrics_observe(&crmd_stats.relays[taken - slots], took);
    }
}
