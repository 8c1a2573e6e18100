/* SPDX-License-Identifier: Apache-2.0 */
/* crm_mail_deliver.c: delivering a mail to agents, as events of intake */
#include "crm_mail_deliver.h"

#include <string.h>

#include <openssl/evp.h>

#include "apr_escape.h"
#include "apr_strings.h"

#include "crm_db.h"
#include "crm_email.h"
#include "crm_text.h"
#include "crm_uuid.h"
#include "mail_event.h"
#include "mail_keep.h"

#define EVENT_ID_CHARS 255

/* ---- the key ------------------------------------------------------------- */

/* Return "sha256:" and the digest of the LEN BYTES, in POOL. */
static const char *digest(const char *bytes, apr_size_t len, apr_pool_t *pool)
{
    unsigned char made[EVP_MAX_MD_SIZE];
    unsigned size = 0;

    EVP_Digest(bytes, len, made, &size, EVP_sha256(), NULL);
    return apr_pstrcat(pool, "sha256:", apr_pescape_hex(pool, made, size, 0),
                       NULL);
}

/* Return the key of MAIL (contract 18.6): its Message-ID and its sender, as a
 * digest if they are too long for an event id; a digest of the LEN BYTES if
 * there is no Message-ID. */
static const char *key_of(const crm_mail_t *mail, const char *bytes,
                          apr_size_t len, apr_pool_t *pool)
{
    const char *key;

    if (!mail->message_id) {
        return digest(bytes, len, pool);
    }
    key = apr_pstrcat(pool, mail->message_id,
                      mail->from ? crm_email_key(mail->from, pool) : "", NULL);
    return strlen(key) <= EVENT_ID_CHARS - 64 ? key
           : digest(key, strlen(key), pool);
}

/* ---- storing ------------------------------------------------------------- */

/* Return new ids for the attachments of MAIL, in POOL. */
static const apr_array_header_t *new_ids(const crm_mail_t *mail,
                                         apr_pool_t *pool)
{
    apr_array_header_t *ids = apr_array_make(pool, mail->attachments->nelts,
                                             sizeof(const char *));

    for (int i = 0; i < mail->attachments->nelts; i++) {
        char *id = apr_palloc(pool, CRM_UUID_LEN + 1);

        crm_uuid_v7(id);
        APR_ARRAY_PUSH(ids, const char *) = id;
    }
    return ids;
}

/* Store BATCH, the event of DELIVERY, with all that the mail carries, in one
 * transaction. */
static crm_error_t *take(crm_intake_batch_t *batch,
                         const crm_mail_delivery_t *delivery)
{
    crm_mail_kept_t kept = {
        .workspace_id = delivery->workspace_id, .mail = delivery->mail,
        .ids = delivery->ids, .bytes = delivery->bytes, .len = delivery->len
    };
    crm_conn_t *conn = delivery->conn;
    crm_error_t *error = NULL;

    CRM_ERR(crm_intake_begin(batch, conn, delivery->pool));
    kept.message_id = batch->results->message_id;
    if (batch->known && !batch->results->field && !batch->results->again
        && kept.message_id && !batch->events->binds[CRM_INTAKE_STATUS]) {
        error = crm_mail_keep(conn, &kept, delivery->options, delivery->pool);
    }
    error = error ? error : crm_db_exec(conn, "COMMIT", delivery->pool);
    if (error) {
        crm_db_rollback(conn);
    }
    return error;
}

/* Store DELIVERY's mail through intake, and fill OUTCOME. */
static crm_error_t *store(crm_mail_outcome_t *outcome,
                          crm_mail_delivery_t *delivery)
{
    crm_intake_event_t event;
    crm_intake_result_t result;
    crm_intake_batch_t batch = {.workspace_id = delivery->workspace_id,
                                .events = &event, .results = &result,
                                .count = 1};

    delivery->ids = new_ids(delivery->mail, delivery->pool);
    CRM_ERR(crm_mail_event(&event, delivery));
    CRM_ERR(take(&batch, delivery));
    outcome->again = result.again;
    outcome->automatic = delivery->automatic;
    outcome->conversation_id = result.conversation_id;
    outcome->message_id = result.message_id;
    outcome->result = CRM_MAIL_STORED;
    /* a report on a message that is not there any more was taken */
    if (!batch.known || (result.field && !event.binds[CRM_INTAKE_STATUS])) {
        outcome->result = CRM_MAIL_REFUSED;
        outcome->reason = !batch.known ? "the source is not known"
                          : apr_pstrcat(delivery->pool, result.field, " ",
                                        result.message, NULL);
    }
    return NULL;
}

/* ---- recipients ---------------------------------------------------------- */

/* Set *AGENT to the agent that receives mail at ADDRESS. Its bot_id is NULL if
 * there is none, or if the agent's email_inbound is false. */
static crm_error_t *find_agent(crm_intake_agent_t *agent, crm_conn_t *conn,
                               const char *address, const char *workspace,
                               apr_pool_t *pool)
{
    const char *values[2];
    crm_stmt_t stmt = {
        "SELECT FROM crmapi.agent a WHERE a.workspace_id = $1::uuid"
        " AND a.id = $2::uuid AND a.email_inbound IS FALSE", 2, values
    };
    PGresult *result;

    memset(agent, 0, sizeof(*agent));
    if (crm_text_email(address, strlen(address))
        || !crm_text_valid_utf8(address, strlen(address))) {
        return NULL;
    }
    CRM_ERR(crm_intake_agent(agent, conn, address, NULL, workspace, pool));
    if (!agent->workspace_id) {
        agent->bot_id = NULL;
        return NULL;
    }
    values[0] = agent->workspace_id;
    values[1] = agent->bot_id;
    CRM_ERR(crm_db_query(&result, conn, &stmt, pool));
    if (PQntuples(result)) {
        agent->bot_id = NULL;
    }
    return NULL;
}

/* Set *AGENT as find_agent() does, and fill OUTCOME for ADDRESS. */
static void expect(crm_mail_outcome_t *outcome, crm_intake_agent_t *agent,
                   crm_conn_t *conn, const char *address,
                   const char *workspace, apr_pool_t *pool)
{
    memset(outcome, 0, sizeof(*outcome));
    outcome->recipient = address;
    outcome->error = find_agent(agent, conn, address, workspace, pool);
    if (outcome->error) {
        outcome->result = CRM_MAIL_RETRY;
        outcome->reason = "the database is unavailable";
    }
    else if (agent->not_now) {
        outcome->result = CRM_MAIL_RETRY;
        outcome->reason = agent->not_now;
    }
    else if (!agent->bot_id) {
        outcome->result = CRM_MAIL_UNKNOWN;
        outcome->reason = "no agent receives mail at this address";
    }
    else {
        outcome->result = CRM_MAIL_STORED;
    }
}

void crm_mail_expect(crm_mail_outcome_t *outcome, crm_conn_t *conn,
                     const char *address, const char *workspace,
                     apr_pool_t *result_pool)
{
    crm_intake_agent_t agent;

    expect(outcome, &agent, conn, address, workspace, result_pool);
}

/* Deliver a mail to ADDRESS, and fill OUTCOME. BASE has the members that are
 * the same for all recipients. */
static void deliver_to(crm_mail_outcome_t *outcome,
                       const crm_mail_delivery_t *base, const char *address)
{
    crm_mail_delivery_t delivery = *base;
    crm_intake_agent_t agent;

    expect(outcome, &agent, base->conn, address, base->options->workspace,
           base->pool);
    if (outcome->result != CRM_MAIL_STORED) {
        return;
    }
    delivery.recipient = address;
    delivery.workspace_id = agent.workspace_id;
    delivery.bot_id = agent.bot_id;
    outcome->error = store(outcome, &delivery);
    if (outcome->error) {
        outcome->result = CRM_MAIL_RETRY;
        outcome->reason = "the database is unavailable";
    }
}

void crm_mail_deliver(apr_array_header_t **outcomes_p, crm_conn_t *conn,
                      const char *bytes, apr_size_t len,
                      const apr_array_header_t *recipients,
                      const crm_mail_options_t *options,
                      apr_pool_t *result_pool)
{
    crm_mail_delivery_t base = {.conn = conn, .options = options,
                                .bytes = bytes, .len = len,
                                .pool = result_pool};
    const apr_array_header_t *all;
    crm_mail_t mail;

    crm_mail_read(&mail, bytes, len, options, result_pool);
    base.mail = &mail;
    base.key = key_of(&mail, bytes, len, result_pool);
    all = recipients ? recipients : mail.recipients;
    *outcomes_p = apr_array_make(result_pool, all->nelts + 1,
                                 sizeof(crm_mail_outcome_t));
    for (int i = 0; i < all->nelts; i++) {
        crm_mail_outcome_t outcome;

        deliver_to(&outcome, &base, APR_ARRAY_IDX(all, i, const char *));
        if (recipients || outcome.result != CRM_MAIL_UNKNOWN) {
            APR_ARRAY_PUSH(*outcomes_p, crm_mail_outcome_t) = outcome;
        }
    }
}
