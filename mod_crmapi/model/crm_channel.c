/* SPDX-License-Identifier: Apache-2.0 */
/* crm_channel.c: the channels of conversations, steps and messages */
#include "crm_channel.h"

#include <string.h>

const crm_channel_t crm_channels[CRM_CHANNELS] = {
    [CRM_CHANNEL_CHAT] = {
        .code = CRM_CODE_CHAT, .names = {"chat"}, .answer = CRM_ANSWER_PAGE,
    },
    [CRM_CHANNEL_PHONE] = {
        .code = CRM_CODE_PHONE, .names = {"phone", "voice", "call"},
        .way = CRM_WAY_VOICE, .label = "Phone call", .by = CRM_CHANNEL_BY_PHONE,
    },
    [CRM_CHANNEL_TEXT] = {
        .code = CRM_CODE_TEXT, .names = {"text", "sms"}, .way = CRM_WAY_SMS,
        .label = "Text message", .by = CRM_CHANNEL_BY_PHONE,
        .answer = CRM_ANSWER_SMS,
    },
    [CRM_CHANNEL_EMAIL] = {
        .code = CRM_CODE_EMAIL, .names = {"email"}, .way = CRM_WAY_EMAIL,
        .label = "E-mail", .by = CRM_CHANNEL_BY_EMAIL, .answer = CRM_ANSWER_EMAIL,
    },
    [CRM_CHANNEL_FORM] = {
        .code = CRM_CODE_FORM, .names = {"form"}, .answer = CRM_ANSWER_EMAIL,
    },
};

const char crm_channel_rule[] =
    "must be chat, phone, voice, call, text, sms, email, form or 1 to 5";

const char crm_channel_way_rule[] = "must be email, sms or voice";

static int is_named(const crm_channel_t *channel, const char *name)
{
    for (const char *const *known = channel->names; *known; known++) {
        if (!strcmp(*known, name)) {
            return 1;
        }
    }
    return !strcmp(channel->code, name);
}

const crm_channel_t *crm_channel_find(const char *name)
{
    for (int i = 0; i < CRM_CHANNELS; i++) {
        if (is_named(&crm_channels[i], name)) {
            return &crm_channels[i];
        }
    }
    return NULL;
}

const crm_channel_t *crm_channel_way(const char *way)
{
    for (int i = 0; i < CRM_CHANNELS; i++) {
        if (crm_channels[i].way && !strcmp(crm_channels[i].way, way)) {
            return &crm_channels[i];
        }
    }
    return NULL;
}

int crm_channel_is(const crm_channel_t *channel, int index)
{
    return channel == &crm_channels[index];
}
