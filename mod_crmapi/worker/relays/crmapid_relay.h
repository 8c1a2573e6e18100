/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_relay.h: messages, and the relays that send them */
#ifndef CRMAPID_RELAY_H
#define CRMAPID_RELAY_H

#include "apr_pools.h"
#include "apr_time.h"

#include "crm_channel.h"
#include "crm_error.h"

#include "crmapid_config.h"
#include "crmapid_curl.h"

/* A file of a message. */
typedef struct crmd_file_t {
    const char *name;
    const char *type;           /* a media type */
    const char *data;
    apr_size_t len;
} crmd_file_t;

/* One message. Texts are UTF-8. */
typedef struct crmd_message_t {
    const crm_channel_t *channel; /* one with a way */
    const char *id;             /* a UUID, the same for each attempt: the
                                   idempotency key */
    const char *message_id;     /* of an email: its Message-ID with brackets;
                                   NULL: made from ID */
    const char *workspace_id;
    const char *from;           /* address or E.164 number; NULL: the
                                   configuration's */
    const char *from_name;      /* or NULL */
    const char *to;             /* by crmd_relay_wire() */
    const char *to_name;        /* or NULL */
    const char *const *copies;  /* of an email: further recipients by
                                   crmd_relay_wire(), ended by NULL; or NULL */
    const crmd_file_t *files;   /* of an email: FILE_COUNT attachments */
    int file_count;
    const char *subject;        /* of an email */
    int subject_whole;          /* it is sent as it is */
    const char *text;           /* of an email or sms; of a call: the script */
    const char *via;            /* of an sms: by what else the participant wrote,
                                   such as "whatsapp"; or NULL */
    const char *html;           /* of an email; NULL: made from TEXT */
    const char *objective;      /* of a call, or NULL */
    const char *voice;          /* of a call: the agent's phone_voice_id, or NULL */
    const char *unsubscribe;    /* of an email: https URL of RFC 8058, or
                                   NULL */
    const char *reply_to;       /* of an email: where replies go, or NULL */
    const char *return_to;      /* of an email: where bounces go; NULL: FROM */
    const char *token;          /* of an email: what a report that returns it
                                   proves that it is ours by, or NULL */
    const char *references;     /* of an email: Message-IDs of earlier ones, the
                                   latest last, or NULL */
    const char *thread_index;   /* of an email: Outlook's place in the thread, base64,
                                   or NULL */
    int automatic;              /* email: a notice by the daemon, not written
                                   by a person */
} crmd_message_t;

/* The result of handing a message to a relay. */
typedef enum crmd_verdict_t {
    CRMD_SENT,                  /* accepted */
    CRMD_NOT_NOW,               /* certainly not accepted; may be retried */
    CRMD_REFUSED,               /* certainly not accepted; never retried */
    CRMD_UNKNOWN                /* may have been accepted (contract 11.11) */
} crmd_verdict_t;

typedef struct crmd_receipt_t {
    crmd_verdict_t verdict;
    const char *reason;         /* one line, NULL for CRMD_SENT; no secrets */
    const char *provider_id;    /* the provider's id of the message, or NULL; of
                                   a mail with brackets if it is a whole
                                   Message-ID */
    const char *suppress;       /* CRMD_REFUSED: the reason for which nothing is
                                   sent to the address again: "bounced", it does
                                   not exist (contract 17.5), or "unsubscribed";
                                   NULL: the refusal does not speak of it */
    apr_interval_time_t retry_after; /* requested by the provider; 0: none */
    int away;                   /* the server cannot be used now, whatever the
                                   message is */
} crmd_receipt_t;

/* A way of sending. The configuration selects one for each channel. */
typedef struct crmd_relay_t {
    const char *name;           /* "maildir", "smtp", "http", "twilio" */
    /* Check that CONFIG has all settings that CHANNEL needs. The error is made
     * in POOL. */
    crm_error_t *(*check)(const crmd_config_t *config,
                          const crm_channel_t *channel, apr_pool_t *pool);
    /* Return whether the receiver drops a second copy of a message, so that
     * one whose verdict is CRMD_UNKNOWN may be sent again. */
    int (*repeatable)(const crmd_config_t *config);
    /* Send MESSAGE and fill RECEIPT, in POOL. CONFIG has the timeout. Called
     * by several threads at once. */
    void (*send)(crmd_receipt_t *receipt, const crmd_message_t *message,
                 const crmd_config_t *config, apr_pool_t *pool);
} crmd_relay_t;

/* The relays: crmapid_maildir.c, _smtp.c, _provider.c, _twilio.c. */
extern const crmd_relay_t crmd_relay_maildir;
extern const crmd_relay_t crmd_relay_smtp;
extern const crmd_relay_t crmd_relay_http;
extern const crmd_relay_t crmd_relay_twilio;

/* All relays, up to NULL. */
extern const crmd_relay_t *const crmd_relays[];

/* ---- for callers --------------------------------------------------------- */

/* Return the relay that CONFIG selects for CHANNEL, the maildir for NULL. */
const crmd_relay_t *crmd_relay_of(const crmd_config_t *config,
                                  const crm_channel_t *channel);

/* Return the index of RELAY in crmd_relays, -1 if it is not there, as in tests. */
int crmd_relay_number(const crmd_relay_t *relay);

/* Take one of RELAY's slots, of which this process has CONFIG's
 * relay_concurrency; wait until one is free, or RELAY is away. Callers decide
 * whether to send only after this (contract 11.10). */
void crmd_relay_enter(const crmd_relay_t *relay, const crmd_config_t *config);

/* Return RELAY's slot. */
void crmd_relay_leave(const crmd_relay_t *relay);

/* Return what goes over the wire of CHANNEL for ADDRESS (each may be NULL): its
 * canonical form, the E.164 form of a number; in RESULT_POOL. NULL if it has no
 * such form: nothing is sent to it (contract 17.1, 17.2). */
const char *crmd_relay_wire(const crm_channel_t *channel, const char *address,
                            apr_pool_t *result_pool);

/* Send MESSAGE by RELAY and fill RECEIPT, in POOL. MESSAGE's address is that of
 * crmd_relay_wire(); if there is none, it is refused. The caller holds a slot. A relay
 * that keeps threads waiting in vain is tried by one of them; the messages of the
 * others are CRMD_NOT_NOW at once, so that those of other relays need not wait. */
void crmd_relay_send(crmd_receipt_t *receipt, const crmd_relay_t *relay,
                     const crmd_message_t *message,
                     const crmd_config_t *config, apr_pool_t *pool);

/* ---- for relays ---------------------------------------------------------- */

/* Fill RECEIPT with VERDICT and, unless it is CRMD_SENT, its REASON (kept). */
void crmd_receipt_fill(crmd_receipt_t *receipt, crmd_verdict_t verdict,
                       const char *reason);

/* Return the sender of MESSAGE, by default CONFIG's for its channel; NULL if
 * neither is set. */
const char *crmd_sender_of(const crmd_message_t *message,
                           const crmd_config_t *config);

/* Return the subject of MESSAGE, an email, in POOL. That of a further one begins
 * with "Re:", so that mail programs show it in the thread of the first. */
const char *crmd_subject_of(const crmd_message_t *message, apr_pool_t *pool);

/* Return whether ANSWER is a refusal (4xx) that says nothing about the message: one of
 * the login or the account, one that asks for patience, or one that the provider did
 * not write, since it has a text that is no JSON object: a proxy's while the provider
 * restarts, or that of another program at a wrong URL. */
int crmd_answer_is_aside(const crmd_http_answer_t *answer, apr_pool_t *pool);

/* Return the string or number NAME of ANSWER's JSON, as one line in POOL; NULL
 * if it has none. */
const char *crmd_answer_id(const crmd_http_answer_t *answer, const char *name,
                           apr_pool_t *pool);

/* Return "WHO answered STATUS", in POOL, with the number in "code" of ANSWER's
 * JSON. The answer's text is left out: it may quote the recipient, and the
 * reason is logged. */
const char *crmd_answer_reason(const char *who,
                               const crmd_http_answer_t *answer,
                               apr_pool_t *pool);

/* Fill RECEIPT, in POOL, from ANSWER, that of WHO, unless it is a refusal: return 0
 * then. Of a success, ID names the member of its JSON with the message's id. */
int crmd_answer_fill(crmd_receipt_t *receipt, const char *who, const char *id,
                     const crmd_http_answer_t *answer, apr_pool_t *pool);

#endif /* CRMAPID_RELAY_H */
