/* SPDX-License-Identifier: Apache-2.0 */
/* crm_channel.h: the channels of conversations, steps and messages */
#ifndef CRM_CHANNEL_H
#define CRM_CHANNEL_H

/* The index of a channel in crm_channels. */
enum {
    CRM_CHANNEL_CHAT,
    CRM_CHANNEL_PHONE,
    CRM_CHANNEL_TEXT,
    CRM_CHANNEL_EMAIL,
    CRM_CHANNEL_FORM,
    CRM_CHANNELS
};

/* The channels' codes, for binds and SQL. */
#define CRM_CODE_CHAT "1"
#define CRM_CODE_PHONE "2"
#define CRM_CODE_TEXT "3"
#define CRM_CODE_EMAIL "4"
#define CRM_CODE_FORM "5"

/* What sends on a channel: its name in sequences, suppressions, relays and
 * settings. */
#define CRM_WAY_EMAIL "email"
#define CRM_WAY_SMS "sms"
#define CRM_WAY_VOICE "voice"

/* What a channel calls its participants by. */
typedef enum crm_channel_by_t {
    CRM_CHANNEL_BY_ANY,         /* or both, as forms do */
    CRM_CHANNEL_BY_EMAIL,       /* the field "email" */
    CRM_CHANNEL_BY_PHONE        /* the field "phone_number" */
} crm_channel_by_t;

/* How a conversation is answered (contract 19). The functions answer_channel()
 * and answer_refusal() of the database know the same. */
typedef enum crm_answer_t {
    CRM_ANSWER_NEVER,
    CRM_ANSWER_PAGE,            /* its page asks for it */
    CRM_ANSWER_SMS,
    CRM_ANSWER_EMAIL
} crm_answer_t;

/* A channel. */
typedef struct crm_channel_t {
    const char *code;           /* conversation.type, CRM_CODE_... */
    const char *names[4];       /* what a request may call it (contract 7.6), the
                                   name of intake first; ended by NULL */
    const char *way;            /* CRM_WAY_...; NULL: nothing is sent */
    const char *label;          /* of a message, for people; NULL: as WAY */
    crm_channel_by_t by;
    crm_answer_t answer;
} crm_channel_t;

/* All channels, in the order of their codes. */
extern const crm_channel_t crm_channels[CRM_CHANNELS];

/* The rule that a channel of a conversation breaks, if it is none of these. */
extern const char crm_channel_rule[];

/* The same of the channel of a step: all that have a way. */
extern const char crm_channel_way_rule[];

/* Return the channel with the name or code NAME, NULL if there is none. */
const crm_channel_t *crm_channel_find(const char *name);

/* Return the channel with the way WAY, NULL if there is none. */
const crm_channel_t *crm_channel_way(const char *way);

/* Return whether CHANNEL (NULL: none) is crm_channels[INDEX]. */
int crm_channel_is(const crm_channel_t *channel, int index);

#endif /* CRM_CHANNEL_H */
