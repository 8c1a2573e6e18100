/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid.h: what the files of the worker share */
#ifndef CRMAPID_H
#define CRMAPID_H

#include <json-c/json.h>

#include "apr_pools.h"
#include "apr_tables.h"
#include "apr_time.h"

#include "crm_db.h"
#include "crm_error.h"
#include "crm_log.h"
#include "crm_resource.h"

#include "crmapid_config.h"

/* ---- jobs ---------------------------------------------------------------- */

/* A job as it was claimed (schema/README, Jobs). Strings live as long as the
 * work's pool. */
typedef struct crmd_job_t {
    const char *workspace_id;
    const char *id;
    const char *kind;           /* "sequence.step": what comes before the dot
                                   is its lane */
    json_object *payload;       /* an object; put back by who claimed it */
    int attempts;               /* this is the nth, from 1 */
    const char *owner;          /* whose lease it is */
    const char *now;            /* what time it is for this job: a timestamptz
                                   as text. All scheduling goes by it. */
} crmd_job_t;

/* What is to become of a job. */
typedef enum crmd_end_t {
    CRMD_DONE,                  /* it is done */
    CRMD_ENDED,                 /* a transaction of the handler has ended it */
    CRMD_RETRY,                 /* again, DELAY from now */
    CRMD_DEAD                   /* never again, but kept for the operator */
} crmd_end_t;

/* A job being worked on, by one thread with a connection of its own. */
typedef struct crmd_work_t {
    const crmd_config_t *config;
    const crmd_job_t *job;
    crm_conn_t *conn;           /* no transaction is open at the beginning, and
                                   none may be at the end */
    const char *moment;         /* the time to go by, as text; NULL: the
                                   database's clock */
    crm_log_t log;
    apr_pool_t *pool;           /* cleared after the job */
    /* Filled by the handler, which returns NULL then: */
    crmd_end_t end;             /* CRMD_DONE unless changed */
    apr_interval_time_t delay;  /* of CRMD_RETRY */
    const char *reason;         /* of CRMD_RETRY and CRMD_DEAD, for the job's
                                   last_error and the log; no secrets */
} crmd_work_t;

/* Do the job of WORK. An error means: it could not be found out what to do
 * (the database was away): the job comes again later, with backoff. */
typedef crm_error_t *(*crmd_handler_fn)(crmd_work_t *work);

/* A kind of job. */
typedef struct crmd_kind_t {
    const char *name;
    crmd_handler_fn run;
    /* The job has failed too often to be tried again, because of WORK's
     * reason: end what it was about. NULL: nothing but the job itself ends. */
    crmd_handler_fn give_up;
} crmd_kind_t;

/* The kinds there are, up to one without a name (crmapid_kinds.c). */
extern const crmd_kind_t crmd_kinds[];

/* crmapid_sequence.c, crmapid_step.c, crmapid_review.c, crmapid_webhook.c */
crm_error_t *crmd_sequence_generate(crmd_work_t *work);
crm_error_t *crmd_sequence_give_up(crmd_work_t *work);
crm_error_t *crmd_step_send(crmd_work_t *work);
crm_error_t *crmd_review_mail(crmd_work_t *work);
crm_error_t *crmd_webhook_deliver(crmd_work_t *work);

/* Set how WORK's job ends, because of REASON (kept). */
void crmd_work_retry(crmd_work_t *work, apr_interval_time_t delay,
                     const char *reason);
void crmd_work_dead(crmd_work_t *work, const char *reason);

/* Return the string NAME of WORK's payload, NULL if there is none. */
const char *crmd_payload(const crmd_work_t *work, const char *name);

/* Run SQL with its COUNT VALUES on WORK's connection; *RESULT_P lives as long
 * as WORK's pool. */
crm_error_t *crmd_query(PGresult **result_p, crmd_work_t *work,
                        const char *sql, int count,
                        const char *const *values);

/* Set VALUES[0..3] to what names WORK's lease: workspace, job, owner, attempt,
 * as crmapi.job_hold() and those that call it want them. */
void crmd_lease_values(const char **values, const crmd_work_t *work);

/* Set *OBJECT_P to the row ID of RESOURCE in WORK's workspace as the API shows
 * it, NULL if there is none; freed with WORK's pool. */
crm_error_t *crmd_object(json_object **object_p, crmd_work_t *work,
                         const crm_resource_t *resource, const char *id);

/* Return the wait before attempt N + 1: FIRST doubled N - 1 times, at most
 * LAST, of which a random tenth is taken or added. */
apr_interval_time_t crmd_backoff(int n, apr_interval_time_t first,
                                 apr_interval_time_t last);

/* ---- what is sent, and by whom ------------------------------------------- */

/* One message. Texts are UTF-8; those that may be NULL say so. */
typedef struct crmd_message_t {
    const char *channel;        /* "email", "sms" or "voice" */
    const char *id;             /* a UUID: the same message has the same one.
                                   Its Message-ID and idempotency key. */
    const char *workspace_id;
    const char *from;           /* address or E.164 number; NULL: as the
                                   configuration says */
    const char *from_name;      /* or NULL */
    const char *to;
    const char *to_name;        /* or NULL */
    const char *subject;        /* email */
    const char *text;           /* email, sms; of voice: the script */
    const char *html;           /* email; NULL: made from TEXT */
    const char *objective;      /* voice, or NULL */
    const char *unsubscribe;    /* email: https URL of RFC 8058, or NULL */
    int automatic;              /* email: a notice of ours, not of a person */
} crmd_message_t;

/* What became of a message that was handed over. */
typedef enum crmd_verdict_t {
    CRMD_SENT,                  /* taken */
    CRMD_NOT_NOW,               /* certainly not taken; may be tried again */
    CRMD_REFUSED,               /* certainly not taken, and never will be */
    CRMD_UNKNOWN                /* nobody knows (contract 11.11) */
} crmd_verdict_t;

typedef struct crmd_receipt_t {
    crmd_verdict_t verdict;
    const char *reason;         /* one line, unless CRMD_SENT; no secrets */
    const char *provider_id;    /* what the provider calls it, or NULL */
    apr_interval_time_t retry_after; /* wish of the provider; 0: none */
} crmd_receipt_t;

/* A way of sending, chosen for each channel in the configuration. */
typedef struct crmd_relay_t {
    const char *name;           /* "maildir", "smtp", "http", "twilio" */
    /* Return NULL or what CONFIG lacks for CHANNEL, in POOL. */
    const char *(*check)(const crmd_config_t *config, const char *channel,
                         apr_pool_t *pool);
    /* Return whether handing over a message twice makes one of it, so that
     * one whose fate is unknown may be handed over again. */
    int (*repeatable)(const crmd_config_t *config);
    /* Hand over MESSAGE and fill RECEIPT, in POOL. Waits at most as long as
     * CONFIG says. Called by several threads at once. */
    void (*send)(crmd_receipt_t *receipt, const crmd_message_t *message,
                 const crmd_config_t *config, apr_pool_t *pool);
} crmd_relay_t;

extern const crmd_relay_t crmd_relay_maildir;   /* crmapid_maildir.c */
extern const crmd_relay_t crmd_relay_smtp;      /* crmapid_smtp.c */
extern const crmd_relay_t crmd_relay_http;      /* crmapid_provider.c */
extern const crmd_relay_t crmd_relay_twilio;    /* crmapid_twilio.c */

/* Return the relay that CONFIG has for CHANNEL (crmapid_relay.c). */
const crmd_relay_t *crmd_relay_of(const crmd_config_t *config,
                                  const char *channel);

/* Take one of RELAY's places, of which this process has CONFIG's
 * relay_concurrency; wait until there is one. Whether a message is to be sent
 * at all is looked at behind this (contract 11.10; crmapid_relay.c). */
void crmd_relay_enter(const crmd_relay_t *relay, const crmd_config_t *config);
void crmd_relay_leave(const crmd_relay_t *relay);

/* Hand MESSAGE to RELAY, one of whose places the caller has
 * (crmapid_relay.c). */
void crmd_relay_send(crmd_receipt_t *receipt, const crmd_relay_t *relay,
                     const crmd_message_t *message,
                     const crmd_config_t *config, apr_pool_t *pool);

/* ---- what a sequence says ------------------------------------------------ */

/* What a generator knows. Objects are as the API shows them, NULL where there
 * is none. */
typedef struct crmd_subject_t {
    json_object *contact;
    json_object *company;       /* the contact's, or NULL */
    json_object *agent;
    json_object *plan;          /* the template: name, allowed_channels,
                                   goal_prompt, pacing, steps */
    const char *time_zone;      /* the workspace's */
    const char *const *channels; /* usable ones, NULL at the end; at least
                                    one */
} crmd_subject_t;

/* A step as it was generated. Texts that its channel has not are NULL. */
typedef struct crmd_step_t {
    const char *channel;        /* one of the subject's */
    apr_int64_t delay;          /* seconds after the step before; of the first
                                   step 0 */
    const char *email_subject;
    const char *email_body;
    const char *sms_body;
    const char *voice_objective;
    const char *voice_script;
} crmd_step_t;

/* What a generator made, in its RESULT_POOL. */
typedef struct crmd_outline_t {
    apr_array_header_t *steps;  /* of crmd_step_t, at least one */
    const char *failure;        /* NULL, or why there are none and never will
                                   be: the enrollment's generation_error */
    const char *setback;        /* NULL, or why not now: tried again */
    apr_interval_time_t retry_after; /* wish for that; 0: none */
} crmd_outline_t;

/* A way of making steps, chosen in the configuration. */
typedef struct crmd_generator_t {
    const char *name;           /* "template", "openai" */
    /* Return NULL or what CONFIG lacks, in POOL. */
    const char *(*check)(const crmd_config_t *config, apr_pool_t *pool);
    void (*generate)(crmd_outline_t *outline, const crmd_subject_t *subject,
                     const crmd_config_t *config, const crm_log_t *log,
                     apr_pool_t *result_pool);
} crmd_generator_t;

extern const crmd_generator_t crmd_generator_template;
extern const crmd_generator_t crmd_generator_openai;

/* Set *PACING_P to PACING, a template's, as crmapi.pacing_fit() wants it (in
 * POOL, JSON text), and *BETWEEN_P to the seconds between steps that say no
 * delay of their own; TIME_ZONE is what holds where PACING names none. Return
 * NULL or what is wrong, naming the member (crmapid_pacing.c). */
const char *crmd_pacing_parse(const char **pacing_p, apr_int64_t *between_p,
                              json_object *pacing, const char *time_zone,
                              apr_pool_t *pool);

/* Set *SECONDS_P to what DELAY, a step's ("45m", "36h", "2d", "1d12h" or a
 * number of days), says. Return NULL or what is wrong (crmapid_pacing.c). */
const char *crmd_delay_parse(apr_int64_t *seconds_p, json_object *delay,
                             apr_pool_t *pool);

#endif /* CRMAPID_H */
