/* SPDX-License-Identifier: Apache-2.0 */
/* crm_intake.h: what channels bring: the one way by which conversations,
 * messages and submissions come to be */
#ifndef CRM_INTAKE_H
#define CRM_INTAKE_H

#include <json-c/json.h>

#include "crm_db.h"
#include "crm_type.h"

/* The most events of one transaction. */
#define CRM_INTAKE_MAX 500

/* What an event may say. The table in crm_intake.c has, in this order, each
 * one's place in the JSON of an event, type and limit; those without a place
 * are for sources that we know ourselves: nobody sends them. */
typedef enum crm_intake_field_t {
    CRM_INTAKE_EVENT_ID,        /* 1 to 255 characters; the only one required */
    CRM_INTAKE_CHANNEL,         /* "1" to "5" */
    CRM_INTAKE_BOT_ID,          /* NULL: by the conversation or message that
                                   is named */
    CRM_INTAKE_OCCURRED_AT,     /* NULL, or in the future: now */
    CRM_INTAKE_DIRECTION,       /* "inbound" (NULL: this) or "outbound" */
    CRM_INTAKE_FROM_EMAIL,
    CRM_INTAKE_FROM_PHONE,
    CRM_INTAKE_FROM_NAME,
    CRM_INTAKE_FROM_VISITOR,
    CRM_INTAKE_FROM_USER,       /* of an outbound one: who wrote it */
    CRM_INTAKE_TO_EMAIL,
    CRM_INTAKE_TO_PHONE,
    CRM_INTAKE_TO_NAME,
    CRM_INTAKE_TO_VISITOR,
    CRM_INTAKE_TO_USER,
    CRM_INTAKE_CONVERSATION,    /* conversation.id: ours */
    CRM_INTAKE_THREAD,          /* conversation.external_id: the same
                                   conversation for the same one */
    CRM_INTAKE_SUBJECT,
    CRM_INTAKE_MESSAGE_KEY,     /* message.external_id: what replies and
                                   status updates name it by: a Message-ID
                                   with its brackets, Twilio's SID */
    CRM_INTAKE_ROLE,            /* NULL: user (inbound), assistant */
    CRM_INTAKE_CONTENT,
    CRM_INTAKE_CONTENT_TYPE,
    CRM_INTAKE_STATUS,          /* alone with MESSAGE_KEY: an update */
    CRM_INTAKE_TOOL_USED,
    CRM_INTAKE_TOOL_ARGUMENTS,  /* JSON */
    CRM_INTAKE_METADATA,        /* JSON object kept with the message */
    CRM_INTAKE_MINUTES,
    CRM_INTAKE_AUDIO_URL,
    CRM_INTAKE_ENDED,           /* "t": the conversation is over */
    CRM_INTAKE_POSITIVE,
    CRM_INTAKE_SCORE,
    CRM_INTAKE_SUMMARY,
    CRM_INTAKE_TAKEOVER,
    CRM_INTAKE_VERIFIED,        /* "t": the participant is who it says. NULL,
                                   "f": a claim, which makes a contact, but
                                   changes none and stops nothing. Of what
                                   crm_intake_parse() reads "t" is default */
    /* ours alone */
    CRM_INTAKE_REFERENCES,      /* JSON array of MESSAGE_KEYs, latest last: the
                                   conversation of the last known one. One
                                   that we have sent verifies its contact */
    CRM_INTAKE_STEP_ID,         /* of an enrollment: whom that was sent to is
                                   who this is from, for certain */
    CRM_INTAKE_AUTOMATIC,       /* "t": no reply, whoever sent it */
    CRM_INTAKE_SUPPRESS,        /* "email" or "phone": the sender's address is
                                   not to be written to again ... */
    CRM_INTAKE_BOUNCED,         /* ... or this e-mail address, which bounced:
                                   with a STEP_ID only */
    CRM_INTAKE_REASON,          /* of that: "unsubscribed", "bounced" */
    CRM_INTAKE_LIFT,            /* "phone": the sender's may be again */
    CRM_INTAKE_FORM_ID,         /* makes a submission */
    CRM_INTAKE_RESPONSES,       /* JSON object of a submission */
    CRM_INTAKE_INTERNAL,        /* "t": the submission is a test */
    CRM_INTAKE_CONTACT,         /* JSON object of more of the contact's texts
                                   (first_name, last_name, company, job_title,
                                   address_line1 ... country, linkedin_url,
                                   lead_source): a new one gets them, and
                                   another one what it lacks */
    CRM_INTAKE_ATTACHMENTS,     /* JSON array of {name, type, size, body:
                                   base64 or null}, listed in METADATA too */
    CRM_INTAKE_FIELDS
} crm_intake_field_t;

/* An event: texts in PostgreSQL's input format, NULL for what is not said.
 * The participant, whose contact and conversation it is, is the one that an
 * inbound event is from and an outbound one is to. */
typedef struct crm_intake_event_t {
    const char *binds[CRM_INTAKE_FIELDS];
} crm_intake_event_t;

/* What became of an event. Ids are NULL where there is no such thing. */
typedef struct crm_intake_result_t {
    const char *conversation_id;
    const char *message_id;
    const char *contact_id;
    const char *submission_id;
    int again;                  /* its event_id was known: the ids are those of
                                   the first time */
    int opened;                 /* it made its conversation */
    const char *field;          /* it is refused: what is wrong (contract 5.6), */
    const char *message;        /* and the rule; NULL: it was taken */
} crm_intake_result_t;

/* Set *EVENT from VALUE, a JSON value, by the names of docs/intake.md. What is
 * wrong in it goes to INPUT. */
void crm_intake_parse(crm_intake_event_t *event, crm_input_t *input,
                      json_object *value);

/* Check what sources that we know ourselves have set in EVENT against the
 * table's types and limits: texts that are too long are cut, addresses that
 * are none become NULL. POOL owns what is made. */
void crm_intake_tidy(crm_intake_event_t *event, apr_pool_t *pool);

/* Take COUNT (1 to CRM_INTAKE_MAX) EVENTS of WORKSPACE_ID in one transaction
 * and one round trip, in their order, and set RESULTS[0..COUNT-1]: contacts
 * found (contract 10.1) or made, conversations found or made, messages
 * appended, totals kept, sequences stopped by replies and opt-outs, webhook
 * events written; each event_id once. KEY_HASH: that of the intake token it
 * comes with, as a bytea ("\\x..."), which must be alive at this moment, or
 * NULL where the source is known otherwise. *KNOWN_P = 0 if it is dead:
 * nothing is done then. May be called again after any error: what was
 * committed is not done twice. Errors: CRM_E_UNAVAILABLE and others of
 * crm_db_query(); nothing is committed. Results live in RESULT_POOL. */
crm_error_t *crm_intake(crm_intake_result_t *results, int *known_p,
                        crm_conn_t *conn, const char *workspace_id,
                        const char *key_hash,
                        const crm_intake_event_t *events, int count,
                        apr_pool_t *result_pool);

/* The agent that an address leads to. */
typedef struct crm_intake_agent_t {
    const char *workspace_id;   /* NULL: none, or several have that address */
    const char *bot_id;
    const char *greeting;       /* text_greeting, may be NULL */
} crm_intake_agent_t;

/* Find the agent whose agent_email (case ignored, what follows a '+' in the
 * local part ignored) is EMAIL, or whose agent_phone is PHONE; the other is
 * NULL. WORKSPACE (id or slug; NULL: all) bounds the search. Disabled agents
 * are found too: what comes is not lost. */
crm_error_t *crm_intake_agent(crm_intake_agent_t *agent, crm_conn_t *conn,
                              const char *email, const char *phone,
                              const char *workspace, apr_pool_t *result_pool);

#endif /* CRM_INTAKE_H */
