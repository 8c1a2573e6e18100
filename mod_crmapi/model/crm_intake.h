/* SPDX-License-Identifier: Apache-2.0 */
/* crm_intake.h: intake of events: everything that creates conversations,
 * messages and submissions */
#ifndef CRM_INTAKE_H
#define CRM_INTAKE_H

#include <json-c/json.h>

#include "crm_db_conn.h"
#include "crm_type.h"

/* The maximum number of events in one transaction. */
#define CRM_INTAKE_MAX 500

/* The fields of an event. The table in crm_intake.c is in this order and gives
 * the place in the JSON of an event, the type and the limit of each. Fields
 * without a place are set by internal sources only. */
typedef enum crm_intake_field_t {
    CRM_INTAKE_EVENT_ID,        /* 1 to 255 characters; the only required
                                   field */
    CRM_INTAKE_CHANNEL,         /* "1" to "5" */
    CRM_INTAKE_BOT_ID,          /* NULL: the agent of the conversation or
                                   message that the event names */
    CRM_INTAKE_OCCURRED_AT,     /* NULL or in the future: the current time */
    CRM_INTAKE_DIRECTION,       /* "inbound" (the default) or "outbound" */
    CRM_INTAKE_FROM_EMAIL,
    CRM_INTAKE_FROM_PHONE,
    CRM_INTAKE_FROM_NAME,
    CRM_INTAKE_FROM_VISITOR,
    CRM_INTAKE_FROM_USER,       /* for an outbound event: its author */
    CRM_INTAKE_TO_EMAIL,
    CRM_INTAKE_TO_PHONE,
    CRM_INTAKE_TO_NAME,
    CRM_INTAKE_TO_VISITOR,
    CRM_INTAKE_TO_USER,
    CRM_INTAKE_CONVERSATION,    /* conversation.id */
    CRM_INTAKE_THREAD,          /* conversation.external_id: events with the
                                   same one share a conversation */
    CRM_INTAKE_SUBJECT,
    CRM_INTAKE_MESSAGE_KEY,     /* message.external_id, by which replies and
                                   status updates refer to the message: a
                                   Message-ID with its brackets, Twilio's SID */
    CRM_INTAKE_ROLE,            /* NULL: "user" if inbound, else "assistant" */
    CRM_INTAKE_CONTENT,
    CRM_INTAKE_CONTENT_TYPE,
    CRM_INTAKE_STATUS,          /* with MESSAGE_KEY alone: a status update */
    CRM_INTAKE_TOOL_USED,
    CRM_INTAKE_TOOL_ARGUMENTS,  /* JSON */
    CRM_INTAKE_METADATA,        /* JSON object stored with the message */
    CRM_INTAKE_MINUTES,
    CRM_INTAKE_AUDIO_URL,
    CRM_INTAKE_ENDED,           /* "t": the conversation has ended */
    CRM_INTAKE_POSITIVE,
    CRM_INTAKE_SCORE,
    CRM_INTAKE_SUMMARY,
    CRM_INTAKE_TAKEOVER,
    CRM_INTAKE_VERIFIED,        /* "t": the participant's identity is verified.
                                   NULL or "f": it is only claimed; it may
                                   create a contact, but changes none and stops
                                   no sequence. crm_intake_parse() defaults to
                                   "t" */
    /* internal sources only */
    CRM_INTAKE_REFERENCES,      /* JSON array of MESSAGE_KEYs, latest last. The
                                   event belongs to the conversation of the last
                                   one that is known; messages that were sent
                                   from here go first, and prove a reply */
    CRM_INTAKE_STEP_ID,         /* a step of an enrollment, whose mail the event
                                   proves to answer or to return. It is verified
                                   if its sender has an address of the step's
                                   contact */
    CRM_INTAKE_ANSWER_ID,       /* the same of an answer in a conversation */
    CRM_INTAKE_AUTOMATIC,       /* "t": an automatic message, not a reply */
    CRM_INTAKE_SUPPRESS,        /* "email" or "phone": suppress the sender's
                                   address ... */
    CRM_INTAKE_BOUNCED,         /* ... or this e-mail address, of which that is
                                   said by who returns STEP_ID's mail; of
                                   ANSWER_ID's several, with blanks between
                                   them */
    CRM_INTAKE_FAILED,          /* why the mail of STEP_ID or ANSWER_ID was
                                   returned: that has failed. Without BOUNCED, its
                                   enrollment has failed as well */
    CRM_INTAKE_REASON,          /* of the suppression: "unsubscribed",
                                   "bounced", "complaint" */
    CRM_INTAKE_LIFT,            /* "phone": lift the suppression of the sender's
                                   number */
    CRM_INTAKE_FORM_ID,         /* creates a submission */
    CRM_INTAKE_RESPONSES,       /* JSON object: the submission's responses */
    CRM_INTAKE_INTERNAL,        /* "t": the submission is a test */
    CRM_INTAKE_CONTACT,         /* JSON object of further texts of the contact
                                   (first_name, last_name, company, job_title,
                                   address_line1 ... country, linkedin_url,
                                   lead_source). A new contact gets all of them,
                                   an existing one those that it lacks */
    CRM_INTAKE_FIELDS
} crm_intake_field_t;

/* An event: strings in PostgreSQL's input format, NULL for unset fields. Its
 * participant is the sender of an inbound event and the recipient of an
 * outbound one. Contact and conversation are the participant's. */
typedef struct crm_intake_event_t {
    const char *binds[CRM_INTAKE_FIELDS];
} crm_intake_event_t;

/* The result of an event. An id is NULL if the event has no such object. */
typedef struct crm_intake_result_t {
    const char *conversation_id;
    const char *message_id;
    const char *contact_id;
    const char *submission_id;
    int again;                  /* its event_id was stored before; the ids are
                                   those of that event */
    int opened;                 /* it created its conversation */
    const char *field;          /* of an error (contract 5.6); of several a line
                                   for each */
    const char *message;        /* the rules that they break; NULL: the event was
                                   stored */
} crm_intake_result_t;

/* Set *EVENT from VALUE, the JSON of an event (docs/intake.md). Errors are
 * added to INPUT. */
void crm_intake_parse(crm_intake_event_t *event, crm_input_t *input,
                      json_object *value);

/* Add the errors of RESULT, if its event was refused, to *ERROR_P. */
void crm_intake_refused(crm_error_t **error_p,
                        const crm_intake_result_t *result, apr_pool_t *pool);

/* Make EVENT, which comes from an internal source, conform to the table's types
 * and limits: truncate texts that are too long, and set invalid addresses to
 * NULL. New strings are in POOL. */
void crm_intake_tidy(crm_intake_event_t *event, apr_pool_t *pool);

/* Events of a workspace that are stored together. */
typedef struct crm_intake_batch_t {
    const char *workspace_id;
    const char *key_hash;       /* of the intake token that they came with, as a
                                   bytea ("\x..."); NULL: another source */
    const crm_intake_event_t *events;
    crm_intake_result_t *results; /* of each event */
    int count;                  /* of events: 1 to CRM_INTAKE_MAX */
    int known;                  /* set to 0 if the token is dead; nothing is stored
                                   then */
} crm_intake_batch_t;

/* Store the events of BATCH in order, in one transaction and one round trip, and set
 * its results. This finds (contract 10.1) or creates contacts and conversations,
 * appends messages, updates totals, stops sequences after replies and opt-outs, and
 * writes webhook events. Each event_id is stored once, so that a call may be repeated
 * after any error. Errors: those of crm_db_query(); CRM_E_UNAVAILABLE also if a
 * referenced row was deleted meanwhile, or if the workspace is held (contract 14.2).
 * After an error nothing is committed. The results are in RESULT_POOL. */
crm_error_t *crm_intake(crm_intake_batch_t *batch, crm_conn_t *conn,
                        apr_pool_t *result_pool);

/* The same in a transaction of CONN that is left open: the source adds to it, and
 * commits it or calls crm_db_rollback(). After an error it is rolled back. */
crm_error_t *crm_intake_begin(crm_intake_batch_t *batch, crm_conn_t *conn,
                              apr_pool_t *result_pool);

/* The agent with an address (contract 14.2). */
typedef struct crm_intake_agent_t {
    const char *workspace_id;   /* NULL: no agent receives at the address */
    const char *not_now;        /* why none does for now: its workspace is held,
                                   or several have it; else NULL */
    const char *bot_id;
    const char *greeting;       /* text_greeting, may be NULL */
} crm_intake_agent_t;

/* Set *AGENT to the agent whose agent_email, else email_outbound_email, is EMAIL
 * or whose agent_phone is PHONE; the other is NULL. Workspaces that are held are
 * left out. For e-mail, case is ignored, and what follows a '+' in the local part
 * unless an agent has it, too. WORKSPACE (id or slug; NULL: all) limits the search.
 * Disabled agents are included, so that nothing sent to them is lost. Strings
 * are in RESULT_POOL. */
crm_error_t *crm_intake_agent(crm_intake_agent_t *agent, crm_conn_t *conn,
                              const char *email, const char *phone,
                              const char *workspace, apr_pool_t *result_pool);

#endif /* CRM_INTAKE_H */
