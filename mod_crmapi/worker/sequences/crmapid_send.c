/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_send.c: the way out of steps and answers: check again, send, record
 * (contract 11.10, 11.11, 19.2) */
#include "crmapid_send.h"

#include <string.h>
#include <strings.h>

#include "apr_strings.h"

#include "crm_db.h"
#include "crm_email.h"
#include "crm_time.h"
#include "crmapid_link.h"
#include "crmapid_log.h"
#include "crmapid_mark.h"
#include "crmapid_notice.h"
#include "crmapid_outgoing.h"
#include "crmapid_relay.h"
#include "crmapid_stats.h"

#define FIRST_WAIT apr_time_from_sec(10)
#define LAST_WAIT apr_time_from_sec(3600)

/* How long crmapid tries to record the result of sending. If that fails, it is
 * unknown whether the message was sent. */
#define RECORD_TIME apr_time_from_sec(60)

/* Wait before the retry if it is unknown whether the take was committed. */
#define RETAKE_WAIT apr_time_from_sec(1)

/* The columns of a source's "take". */
enum { VERDICT, UNTIL, NUMBER, MAC, MESSAGE_ID, TOKEN, REFERENCES, THREAD_INDEX };

/* Return ADDRESS (may be NULL) with TOKEN after a '+', in POOL: what comes there
 * proves to answer or to return that mail. Return ADDRESS itself if it has a
 * '+', or if its local part would be too long (RFC 5321, 4.5.3.1.1). */
static const char *with_token(const char *address, const char *token,
                              apr_pool_t *pool)
{
    const char *at = address ? strrchr(address, '@') : NULL;

    if (!at || memchr(address, '+', (size_t)(at - address))
        || (size_t)(at - address) + 1 + strlen(token) > 64) {
        return address;
    }
    return apr_pstrcat(pool, apr_pstrmemdup(pool, address,
                                            (apr_size_t)(at - address)), "+",
                       token, at, NULL);
}

/* Set what replies to SENDING's mail, and reports about it, are known by
 * (contract 18.4), from RESULT of the take. */
static void set_thread(crmd_outgoing_t *sending, const PGresult *result)
{
    crmd_message_t *message = &sending->message;
    apr_pool_t *pool = sending->work->pool;
    const char *own = sending->own;

    message->message_id = crm_db_value(result, 0, MESSAGE_ID);
    message->token = crm_db_value(result, 0, TOKEN);
    message->references = crm_db_value(result, 0, REFERENCES);
    message->thread_index = crm_db_value(result, 0, THREAD_INDEX);
    if (!own || !message->token) {
        return;
    }
    message->reply_to = sending->agent_email;
    if (sending->work->config->mail_reply_token) {
        message->reply_to = with_token(message->reply_to ? message->reply_to
                                       : own, message->token, pool);
        message->return_to = with_token(own, message->token, pool);
    }
    else if (message->reply_to && !strcasecmp(message->reply_to, own)) {
        message->reply_to = NULL;       /* From says it */
    }
}

/* Return all addresses of MESSAGE that go over the wire, separated by spaces, in
 * POOL; NULL if it has none. */
static const char *wires_of(const crmd_message_t *message, apr_pool_t *pool)
{
    const char *wires = message->to;

    for (const char *const *copy = message->copies; wires && copy && *copy;
         copy++) {
        wires = apr_pstrcat(pool, wires, " ", *copy, NULL);
    }
    return wires;
}

/* Take the message of SENDING; set *VERDICT_P and *UNTIL_P to the result. */
static crm_error_t *take(const char **verdict_p, const char **until_p,
                         crmd_outgoing_t *sending)
{
    crmd_work_t *work = sending->work;
    const char *values[12];
    PGresult *result;

    crmd_lease_values(values, work);
    values[4] = sending->group;
    values[5] = sending->id;
    values[6] = work->moment;
    values[7] = apr_itoa(work->pool, work->config->agent_daily_limit);
    values[8] = crmd_mark_known(work->pool);
    values[9] = sending->link;
    values[10] = work->config->mail_domain;
    values[11] = wires_of(&sending->message, work->pool);
    sending->asked = crm_time_monotonic();
    CRM_ERR(crmd_query(&result, work, sending->source->take, 12, values));
    *verdict_p = PQgetvalue(result, 0, VERDICT);
    *until_p = crm_db_value(result, 0, UNTIL);
    sending->number = apr_atoi64(PQgetvalue(result, 0, NUMBER));
    sending->message.unsubscribe = crmd_link_unsubscribe(
        work->config, sending->link, crm_db_value(result, 0, MAC),
        work->pool);
    set_thread(sending, result);
    return NULL;
}

/* Set *IS_P to whether the workspace may send from the address of SENDING's mail
 * (contract 14.8). */
static crm_error_t *may_send(int *is_p, const crmd_outgoing_t *sending)
{
    crmd_work_t *work = sending->work;
    const crmd_message_t *message = &sending->message;
    const char *from = message->from && crmd_outgoing_is_mail(message)
                       ? crm_email_canonical(message->from, work->pool) : NULL;
    const char *values[3] = {
        work->job->workspace_id, from ? strrchr(from, '@') + 1 : "",
        work->config->mail_require_domains ? "f" : "t"
    };
    PGresult *result;

    *is_p = 1;
    if (!crmd_outgoing_is_mail(message)) {
        return NULL;
    }
    CRM_ERR(crmd_query(&result, work, "SELECT CASE WHEN w.sender_domains IS"
                       " NULL THEN $3::boolean ELSE $2::text = ANY"
                       " (w.sender_domains) END FROM crmapi.workspace w"
                       " WHERE w.id = $1::uuid", 3, values));
    *is_p = PQntuples(result) && *PQgetvalue(result, 0, 0) == 't';
    return NULL;
}

/* Write to the journal that ENTRY, the message of SENDING, was not handed over. If
 * an earlier attempt may have sent it, that is not known. */
static void free_entry(const crmd_sending_t *entry,
                       const crmd_outgoing_t *sending)
{
    if (!sending->doubtful) {
        crmd_mark_end(entry, "free", NULL, sending->work);
    }
}

/* Write to the journal that the message of SENDING is about to be handed over,
 * hand it to its relay, and write how that ended. Errors: those of
 * crmd_work_still(); then it was not handed over. */
static crm_error_t *send_message(crmd_outgoing_t *sending)
{
    crmd_work_t *work = sending->work;
    const crmd_sending_t entry = {
        sending->number, sending->source->group_member, sending->group,
        sending->source->part_member,
        *sending->part ? sending->part : sending->id
    };
    crmd_receipt_t *receipt = &sending->receipt;
    crm_error_t *error = crmd_mark_begin(&entry, work);

    if (error) {
        memset(receipt, 0, sizeof(*receipt));
        crmd_receipt_fill(receipt, CRMD_NOT_NOW, error->message);
        return NULL;
    }
    error = crmd_work_still(work, sending->asked);
    if (error) {
        free_entry(&entry, sending);
        return error;
    }
    crmd_relay_send(receipt, sending->relay, &sending->message, work->config,
                    work->pool);
    if (receipt->verdict == CRMD_SENT) {
        crmd_mark_end(&entry, "sent", receipt->provider_id, work);
    }
    else if (receipt->verdict != CRMD_UNKNOWN) {
        free_entry(&entry, sending);
    }
    return NULL;
}

/* Run SQL, which records the result of SENDING and ends its job. Its COUNT
 * parameters are the lease, the group, the id, MORE and LAST. Retry while the
 * database is unavailable, up to RECORD_TIME. */
static crm_error_t *record(const crmd_outgoing_t *sending, const char *sql,
                           int count, const char *more, const char *last)
{
    crmd_work_t *work = sending->work;
    apr_time_t until = crm_time_monotonic() + RECORD_TIME;
    const char *values[8];
    crm_error_t *error;
    PGresult *result;

    crmd_lease_values(values, work);
    values[4] = sending->group;
    values[5] = sending->id;
    values[6] = more;
    values[7] = last;
    work->end = CRMD_ENDED;
    for (;;) {
        error = crmd_query(&result, work, sql, count, values);
        if (!error || error->code != CRM_E_UNAVAILABLE
            || crm_time_monotonic() > until) {
            return error;
        }
        crm_db_rollback(work->conn);
        apr_sleep(apr_time_from_msec(500));
    }
}

/* Count that SENDING ended with RESULT, CRMD_STEP_*, and was recorded without
 * ERROR. Return ERROR. */
static crm_error_t *counted(crm_error_t *error, const crmd_outgoing_t *sending,
                            int result)
{
    int number = crmd_relay_number(sending->relay);

    if (!error && number >= 0) {
        crm_metrics_add(&crmd_stats.steps[number][result], 1);
    }
    return error;
}

static crm_error_t *record_sent(const crmd_outgoing_t *sending)
{
    crmd_logf(CRM_LOG_INFO, "CRM3121: %s %s was sent by %s",
              sending->source->word, sending->id, sending->relay->name);
    return counted(
        record(sending, sending->source->sent, 8, sending->work->moment,
               sending->receipt.provider_id), sending, CRMD_STEP_SENT);
}

/* The reason of a message that may have been sent. */
static const char unknown[] = "delivery_unknown";

/* Log that SENDING was not sent because of REASON, and is retried or not. A relay that
 * is away fails all messages: that is a warning a minute. What may have been sent is
 * one each. */
static void log_failed(const crmd_outgoing_t *sending, const char *reason,
                       int retried)
{
    static crmd_repeated_t repeated[CRMD_STATS_RELAYS][2];
    int number = crmd_relay_number(sending->relay);
    const char *others = "";
    crm_level_t level = CRM_LOG_WARNING;

    if (reason != unknown && number >= 0) {
        level = crmd_notice_repeated(&others, &repeated[number][retried],
                                     sending->work->pool);
    }
    crmd_logf(level, "CRM3122: %s %s was not sent (%s), attempt %d: %s%s",
              sending->source->word, sending->id,
              retried ? "will be retried" : "for good",
              sending->work->job->attempts, reason, others);
}

/* Record that SENDING was not sent because of REASON. It is retried after WAIT;
 * 0: never. */
static crm_error_t *record_failed(const crmd_outgoing_t *sending,
                                  const char *reason, apr_interval_time_t wait)
{
    crmd_work_t *work = sending->work;
    int result = wait ? CRMD_STEP_RETRY
                 : reason == unknown ? CRMD_STEP_UNKNOWN : CRMD_STEP_FAILED;

    log_failed(sending, reason, wait != 0);
    if (!wait && reason != unknown && sending->receipt.suppress) {
        return counted(
            record(sending, sending->source->refused, 8, reason,
                   sending->receipt.suppress), sending, result);
    }
    return counted(
        record(sending, sending->source->failed, 8, reason,
               wait ? apr_psprintf(work->pool, "%" APR_TIME_T_FMT " us", wait)
                    : NULL), sending, result);
}

static crm_error_t *record_wait(const crmd_outgoing_t *sending,
                                const char *until)
{
    return record(sending, sending->source->wait, 7, until, NULL);
}

static apr_interval_time_t wait_of(const crmd_outgoing_t *sending)
{
    apr_interval_time_t wait = crmd_backoff(sending->work->job->attempts,
                                            FIRST_WAIT, LAST_WAIT);

    return wait < sending->receipt.retry_after ? sending->receipt.retry_after
                                               : wait;
}

/* Record the result of sending SENDING. */
static crm_error_t *record_result(crmd_outgoing_t *sending)
{
    crmd_work_t *work = sending->work;
    crmd_receipt_t *receipt = &sending->receipt;
    int retry = work->job->attempts < work->config->send_attempts;

    switch (sending->doubtful && receipt->verdict != CRMD_SENT
            ? CRMD_UNKNOWN : receipt->verdict) {
    case CRMD_SENT:
        return record_sent(sending);
    case CRMD_NOT_NOW:
        return record_failed(sending, receipt->reason,
                             retry ? wait_of(sending) : 0);
    case CRMD_REFUSED:
        return record_failed(sending, receipt->reason, 0);
    case CRMD_UNKNOWN:
        break;
    }
    crmd_logf(CRM_LOG_WARNING, "CRM3123: %s %s: it is unknown whether it was"
              " sent: %s", sending->source->word, sending->id,
              receipt->reason);
    if (retry && sending->relay->repeatable(work->config)) {
        /* It stays taken: its message cannot change before the retry. */
        crmd_work_retry(work, wait_of(sending), receipt->reason);
        return counted(NULL, sending, CRMD_STEP_RETRY);
    }
    return record_failed(sending, unknown, 0);
}

/* The answer to the take of SENDING was lost, and nothing was given to the
 * relay. If it was taken, make it due again. If it was taken before, it stays so:
 * an earlier attempt may have sent it (contract 11.11). */
static crm_error_t *record_no_answer(const crmd_outgoing_t *sending)
{
    static const char reason[] = "the database did not answer";

    crm_db_rollback(sending->work->conn);
    if (!sending->was_sending) {
        return record_failed(sending, reason, RETAKE_WAIT);
    }
    crmd_logf(CRM_LOG_WARNING, "CRM3123: %s %s: it is unknown whether it was"
              " sent: %s", sending->source->word, sending->id, reason);
    crmd_work_retry(sending->work, RETAKE_WAIT, reason);
    return counted(NULL, sending, CRMD_STEP_RETRY);
}

/* Take the message of SENDING and send it if *VERDICT_P allows that; *TRIED_P =
 * whether it was given to the relay. It waits for the relay's slot before it takes
 * the message, so that a stop during the wait is honoured (contract 11.10). */
static crm_error_t *take_and_send(int *tried_p, const char **verdict_p,
                                  const char **until_p,
                                  crmd_outgoing_t *sending)
{
    const crmd_config_t *config = sending->work->config;
    const crmd_relay_t *relay = sending->relay;
    crm_error_t *error;
    int allowed;

    *tried_p = 0;
    CRM_ERR(may_send(&allowed, sending));
    crmd_relay_enter(relay, config);
    error = take(verdict_p, until_p, sending);
    if (!error) {
        sending->doubtful = !strcmp(*verdict_p, "again");
        *tried_p = !strcmp(*verdict_p, "send")
            || (sending->doubtful && relay->repeatable(config));
    }
    if (*tried_p && allowed) {
        error = send_message(sending);
    }
    else if (*tried_p) {
        crmd_receipt_fill(&sending->receipt, CRMD_REFUSED,
                          "sender_not_allowed");
    }
    crmd_relay_leave(relay);
    return error;
}

/* Log why SENDING, which was taken with VERDICT, was not given to the relay. */
static crm_error_t *leave(crmd_outgoing_t *sending, const char *verdict)
{
    crmd_work_t *work = sending->work;
    const char *word = sending->source->word;

    if (!strcmp(verdict, "past")) {
        work->end = CRMD_ENDED;
        crmd_logf(CRM_LOG_NOTICE, "CRM3125: %s %s was handed over before the"
                  " database was restored; it is not sent again", word,
                  sending->id);
    }
    else if (!strcmp(verdict, "skipped")) {
        crmd_logf(CRM_LOG_INFO, "CRM3126: %s %s was skipped: it was due"
                  " before the time that the release was given", word,
                  sending->id);
    }
    else if (!strcmp(verdict, "held")) {
        work->end = CRMD_ENDED;
        crmd_log_held(work);
    }
    else {
        crmd_logf(CRM_LOG_INFO, "CRM3124: %s %s was not sent: %s", word,
                  sending->id, sending->source->gone);
    }
    return NULL;
}

crm_error_t *crmd_send(crmd_work_t *work, const crmd_source_t *source)
{
    const char *verdict, *until;
    crm_error_t *error;
    crmd_outgoing_t sending;
    int exists, tried;

    CRM_ERR(crmd_outgoing_read(&exists, &sending, work, source));
    if (!exists) {
        return NULL;
    }
    error = take_and_send(&tried, &verdict, &until, &sending);
    if (error && error->code == CRM_E_UNAVAILABLE) {
        return record_no_answer(&sending);
    }
    CRM_ERR(error);
    if (tried) {
        return record_result(&sending);
    }
    if (sending.doubtful || !strcmp(verdict, "lost")) {
        return record_failed(&sending, unknown, 0);
    }
    return strcmp(verdict, "wait") ? leave(&sending, verdict)
           : record_wait(&sending, until);
}
