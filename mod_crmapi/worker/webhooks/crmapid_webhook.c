/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_webhook.c: delivering webhook events (contract 12) */
#include "crmapid_webhook.h"

#include <stdlib.h>
#include <string.h>

#include "apr_strings.h"

#include "crm_address_kind.h"
#include "crm_buf.h"
#include "crm_db.h"
#include "crm_time.h"
#include "crm_trace.h"
#include "crmapid_curl.h"
#include "crmapid_log.h"
#include "crmapid_mark.h"
#include "crmapid_notice.h"
#include "crmapid_stats.h"
#include "crmapid_webhook_retry.h"
#include "crmapid_webhook_slot.h"
#include "event.h"

/* A delivery with its event and its endpoint. */
typedef struct delivery_t {
    crmd_work_t *work;
    const char *id;
    const char *event;
    const char *type;
    const char *created_at;
    const char *body;           /* NULL: not made yet */
    const char *fields;         /* the row at the time of the event */
    const char *endpoint;
    const char *url;
    const char *trace;          /* of the request that caused it, or NULL */
    int attempts;               /* attempts so far in this schedule */
} delivery_t;

/* One row, unless the endpoint or the delivery was deleted. */
static const char delivery_sql[] =
    "SELECT d.status, d.job_id = $2::bigint, d.attempts - d.base, v.id,"
    " v.type, v.created_at, v.body, v.fields, e.id, e.url,"
    " e.disabled_at IS NOT NULL, v.trace"
    " FROM crmapi.webhook_delivery d"
    " JOIN crmapi.event v ON v.workspace_id = d.workspace_id"
    " AND v.id = d.event_id"
    " JOIN crmapi.webhook_endpoint e ON e.workspace_id = d.workspace_id"
    " AND e.id = d.endpoint_id"
    " WHERE d.workspace_id = $1::uuid AND d.id = $3::uuid";

enum {
    STATUS, MINE, ATTEMPTS, EVENT, TYPE, CREATED_AT, BODY, FIELDS, ENDPOINT,
    URL, DISABLED, TRACE
};

/* The result of an attempt. */
typedef struct outcome_t {
    const char *name;           /* as in crmapi.webhook_attempted() */
    apr_interval_time_t after;  /* wait before the next attempt */
    const char *error;          /* or NULL */
} outcome_t;

/* Read the delivery of WORK into DELIVERY; *DISABLED_P = whether its endpoint
 * is disabled. DELIVERY's id stays NULL if it is not pending any more. */
static crm_error_t *load(delivery_t *delivery, int *disabled_p,
                         crmd_work_t *work)
{
    const char *values[3] = {
        work->job->workspace_id, work->job->id,
        crmd_payload(work, "delivery_id")
    };
    PGresult *row;

    memset(delivery, 0, sizeof(*delivery));
    *disabled_p = 0;
    CRM_ERR(crmd_query(&row, work, delivery_sql, 3, values));
    if (!PQntuples(row) || strcmp(PQgetvalue(row, 0, STATUS), "pending")
        || *PQgetvalue(row, 0, MINE) != 't') {
        return NULL;
    }
    delivery->work = work;
    delivery->id = values[2];
    delivery->event = PQgetvalue(row, 0, EVENT);
    delivery->type = PQgetvalue(row, 0, TYPE);
    delivery->created_at = PQgetvalue(row, 0, CREATED_AT);
    delivery->body = crm_db_value(row, 0, BODY);
    delivery->fields = crm_db_value(row, 0, FIELDS);
    delivery->endpoint = PQgetvalue(row, 0, ENDPOINT);
    delivery->url = PQgetvalue(row, 0, URL);
    delivery->trace = crm_trace_read(crm_db_value(row, 0, TRACE), work->pool);
    delivery->attempts = atoi(PQgetvalue(row, 0, ATTEMPTS));
    *disabled_p = *PQgetvalue(row, 0, DISABLED) == 't';
    return NULL;
}

/* ---- the body ------------------------------------------------------------ */

/* Make and store the body of DELIVERY's event, unless it is stored already. All
 * attempts, to all endpoints, send the same body. */
static crm_error_t *make_body(delivery_t *delivery)
{
    const char *values[3];
    PGresult *result;
    crm_buf_t buf;

    if (delivery->body) {
        return NULL;
    }
    crm_buf_init(&buf, 4096, delivery->work->pool);
    if (!crm_event_body(&buf, delivery->type, delivery->created_at,
                        delivery->fields)) {
        return crm_error_logf(CRM_E_INTERNAL, delivery->work->pool,
                              "this version does not know the event type %s",
                              delivery->type);
    }
    crm_buf_putc(&buf, '\0');
    values[0] = delivery->work->job->workspace_id;
    values[1] = delivery->event;
    values[2] = buf.data;
    CRM_ERR(crmd_query(&result, delivery->work, "SELECT crmapi.webhook_body("
                       "$1::uuid, $2::uuid, $3::text)", 3, values));
    delivery->body = crm_db_value(result, 0, 0);
    if (!delivery->body) {
        return crm_error_logf(CRM_E_UNAVAILABLE, delivery->work->pool,
                              "the event %s was deleted", delivery->event);
    }
    return NULL;
}

/* ---- the request --------------------------------------------------------- */

/* Set *ID_P to the id of DELIVERY's event for the endpoint, the same in all
 * attempts, and *SIGNATURES_P to the signatures of its body as sent at
 * TIMESTAMP: one for each key, separated by spaces. The database makes them;
 * the keys stay there. This is the last statement before the request, so it
 * also sets *HELD_P: whether the workspace is held. */
static crm_error_t *sign(const char **id_p, const char **signatures_p,
                         int *held_p, const delivery_t *delivery,
                         const char *timestamp)
{
    crmd_work_t *work = delivery->work;
    const char *values[5] = {
        work->job->workspace_id, delivery->id, timestamp, work->moment,
        crmd_mark_known(work->pool)
    };
    PGresult *result;

    CRM_ERR(crmd_query(&result, work, "SELECT s.id, s.signatures,"
                       " crmapi.sends_held($1::uuid),"
                       " crmapi.mark_refuses($5::bigint[])"
                       " FROM crmapi.webhook_sign($1::uuid, $2::uuid,"
                       " $3::text, $4::timestamptz) s", 5, values));
    if (!PQntuples(result)) {
        return crm_error_logf(CRM_E_UNAVAILABLE, work->pool,
                              "the delivery %s was deleted", delivery->id);
    }
    *id_p = PQgetvalue(result, 0, 0);
    *signatures_p = PQgetvalue(result, 0, 1);
    *held_p = *PQgetvalue(result, 0, 2) == 't';
    if (*PQgetvalue(result, 0, 3) == 't') {
        *held_p = 1;
        return crmd_mark_check(work->config, work->conn, work->pool);
    }
    return NULL;
}

/* Return whether libcurl may connect to ADDRESS. It is the address of this very
 * connection, so that a later change of the name does not matter (contract
 * 12.4). */
static int is_public(const struct sockaddr *address, socklen_t len,
                     void *baton)
{
    (void)baton;
    return crm_address_kind(address, len) == CRM_ADDRESS_PUBLIC;
}

/* Send DELIVERY, wait for the answer, and fill ANSWER; or set *HELD_P. */
static crm_error_t *post(crmd_http_answer_t *answer, int *held_p,
                         const delivery_t *delivery)
{
    const crmd_config_t *config = delivery->work->config;
    apr_pool_t *pool = delivery->work->pool;
    const char *timestamp = apr_psprintf(pool, "%" APR_TIME_T_FMT,
                                         apr_time_sec(apr_time_now()));
    const char *headers[6] = {"Content-Type: application/json"};
    const char *id = NULL, *signatures = NULL;
    crmd_http_request_t request;
    apr_time_t begun = crm_time_monotonic();

    CRM_ERR(sign(&id, &signatures, held_p, delivery, timestamp));
    if (*held_p) {
        return NULL;
    }
    CRM_ERR(crmd_work_still(delivery->work, begun));
    headers[1] = apr_pstrcat(pool, "webhook-id: ", id, NULL);
    headers[2] = apr_pstrcat(pool, "webhook-timestamp: ", timestamp, NULL);
    headers[3] = apr_pstrcat(pool, "webhook-signature: ", signatures, NULL);
    headers[4] = headers[5] = NULL;
    if (delivery->trace) {
        headers[4] = apr_pstrcat(pool, "traceparent: ",
                                 crm_trace_child(delivery->trace, pool), NULL);
    }
    memset(&request, 0, sizeof(request));
    request.url = delivery->url;
    request.headers = headers;
    request.body = delivery->body;
    request.body_len = strlen(delivery->body);
    request.timeout = config->webhook_timeout;
    request.ca_file = config->webhook_ca_file;
    request.max_answer = CRMD_WEBHOOK_ANSWER;
    request.allowed = config->webhook_private ? NULL : is_public;
    begun = crm_time_monotonic();
    crmd_http_send(answer, &request, pool);
    crm_metrics_observe(&crmd_stats.webhooks, crm_time_monotonic() - begun);
    return NULL;
}

/* ---- the result ---------------------------------------------------------- */

/* Return whether STATUS leads to another address. 304 and 300 do not. */
static int is_redirect(int status)
{
    return (status >= 301 && status <= 303) || status == 307 || status == 308;
}

/* Set OUTCOME from ANSWER. A status 2xx means success, even if the body is
 * incomplete. */
static void judge(outcome_t *outcome, const crmd_http_answer_t *answer,
                  const delivery_t *delivery)
{
    int may_defer = answer->status == 429 || answer->status == 503;

    memset(outcome, 0, sizeof(*outcome));
    if (answer->status >= 200 && answer->status < 300) {
        outcome->name = "delivered";
        return;
    }
    outcome->error = answer->error;
    if (answer->status) {
        outcome->error = apr_psprintf(delivery->work->pool, "HTTP status %d%s",
                                      answer->status,
                                      is_redirect(answer->status)
                                      ? ": redirects are not followed" : "");
    }
    outcome->name = "gone";
    if (answer->status != 410) {
        outcome->after = crmd_webhook_delay(delivery->attempts + 1,
                                            may_defer ? answer->retry_after
                                                      : 0);
        outcome->name = outcome->after < 0 ? "failed" : "retry";
    }
}

/* Record the attempt at DELIVERY, begun at STARTED, which TOOK so long, with ANSWER
 * and OUTCOME, and end its job. */
static crm_error_t *record(const delivery_t *delivery, apr_time_t started,
                           apr_interval_time_t took,
                           const crmd_http_answer_t *answer,
                           const outcome_t *outcome)
{
    apr_pool_t *pool = delivery->work->pool;
    char time[CRM_TIME_SIZE];
    const char *values[13];
    PGresult *result;

    crm_time_format_ms(time, started);
    crmd_lease_values(values, delivery->work);
    values[4] = delivery->id;
    values[5] = time;
    values[6] = apr_psprintf(pool, "%" APR_TIME_T_FMT, apr_time_as_msec(took));
    values[7] = answer->status ? apr_itoa(pool, answer->status) : NULL;
    values[8] = outcome->error;
    values[9] = crmd_webhook_text(answer->body, answer->len, pool);
    values[10] = outcome->name;
    values[11] = apr_psprintf(pool, "%" APR_TIME_T_FMT " us", outcome->after);
    values[12] = delivery->work->moment;
    return crmd_query(&result, delivery->work, "SELECT"
                      " crmapi.webhook_attempted($1::uuid, $2::bigint,"
                      " $3::text, $4::integer, $5::uuid, $6::timestamptz,"
                      " $7::integer, $8::integer, $9::text, $10::text,"
                      " $11::text, $12::interval, $13::timestamptz)", 13,
                      values);
}

/* Log OUTCOME, without the URL, which may contain a secret. */
static void log_outcome(const delivery_t *delivery, const outcome_t *outcome)
{
    int gone = !strcmp(outcome->name, "gone");
    int bad = gone || !strcmp(outcome->name, "failed");

    crmd_logf(bad ? CRM_LOG_NOTICE : CRM_LOG_INFO, "CRM3141: %s to endpoint"
              " %s, delivery %s, attempt %d: %s%s%s%s", delivery->type,
              delivery->endpoint, delivery->id, delivery->attempts + 1,
              outcome->name, outcome->error ? ": " : "",
              outcome->error ? outcome->error : "",
              gone ? "; it gets no more until crmapictl webhook enable" : "");
    if (strcmp(outcome->name, "delivered")) {
        crmd_notice(CRMD_NOTICE_WEBHOOK,
                    delivery->work->job->workspace_id);
    }
}

/* Make one attempt at DELIVERY. The caller holds a slot. */
static crm_error_t *attempt(delivery_t *delivery)
{
    apr_time_t started = apr_time_now(), begun = crm_time_monotonic();
    crmd_http_answer_t answer;
    apr_interval_time_t took;
    outcome_t outcome;
    int held = 0;

    CRM_ERR(post(&answer, &held, delivery));
    if (held) {
        return crmd_work_return(delivery->work);
    }
    took = crm_time_monotonic() - begun;
    judge(&outcome, &answer, delivery);
    CRM_ERR(record(delivery, started, took, &answer, &outcome));
    crmd_stats_delivery(outcome.name);
    log_outcome(delivery, &outcome);
    delivery->work->end = CRMD_ENDED;
    return NULL;
}

/* Cancel DELIVERY, whose endpoint is disabled, and end its job. */
static crm_error_t *cancel(const delivery_t *delivery)
{
    const char *values[5];
    PGresult *result;

    crmd_lease_values(values, delivery->work);
    values[4] = delivery->id;
    CRM_ERR(crmd_query(&result, delivery->work, "SELECT"
                       " crmapi.webhook_cancelled($1::uuid, $2::bigint,"
                       " $3::text, $4::integer, $5::uuid)", 5, values));
    delivery->work->end = CRMD_ENDED;
    return NULL;
}

/* Put the job of WORK off by WAIT: its endpoint has no free slot, and this
 * thread must not wait for one. */
static crm_error_t *postpone(crmd_work_t *work, apr_interval_time_t wait)
{
    const char *values[6];
    PGresult *result;

    crmd_lease_values(values, work);
    values[4] = apr_psprintf(work->pool, "%" APR_TIME_T_FMT " us", wait);
    values[5] = work->moment;
    CRM_ERR(crmd_query(&result, work, "SELECT crmapi.webhook_wait($1::uuid,"
                       " $2::bigint, $3::text, $4::integer, $5::interval,"
                       " $6::timestamptz)", 6, values));
    work->end = CRMD_ENDED;
    return NULL;
}

crm_error_t *crmd_webhook_deliver(crmd_work_t *work)
{
    apr_time_t started = crm_time_monotonic();
    apr_interval_time_t wait;
    crm_error_t *error;
    delivery_t delivery;
    int disabled;

    CRM_ERR(load(&delivery, &disabled, work));
    if (!delivery.id) {
        return NULL;
    }
    if (disabled) {
        return cancel(&delivery);
    }
    if (!crmd_webhook_enter(&wait, work->job->workspace_id, delivery.endpoint,
                            work->config->webhook_concurrency,
                            work->config->webhook_threads)) {
        return postpone(work, wait);
    }
    error = make_body(&delivery);
    if (!error) {
        error = attempt(&delivery);
    }
    crmd_webhook_leave(delivery.endpoint, crm_time_monotonic() - started);
    return error;
}
