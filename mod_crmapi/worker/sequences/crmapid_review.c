/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_review.c: the mail that asks an admin for a review */
#include "crmapid_review.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_db.h"
#include "crm_time.h"
#include "crm_value.h"
#include "crmapid_link.h"
#include "crmapid_mark.h"
#include "crmapid_relay.h"

#define FIRST_WAIT apr_time_from_sec(10)
#define LAST_WAIT apr_time_from_sec(3600)

/* One row if the enrollment still waits for a review, and the journal does not
 * say that the admin was asked before the database was restored. The column ID
 * is the message's id, the same in each attempt. */
static const char review_sql[] =
    "SELECT a.email, a.name, w.name, q.name,"
    " coalesce(nullif(concat_ws(' ', nullif(c.first_name, ''),"
    " nullif(c.last_name, '')), ''), c.email_key, c.phone_key, 'a contact'),"
    " (SELECT count(*) FROM crmapi.enrollment_step s"
    "  WHERE s.workspace_id = $1::uuid AND s.enrollment_id = e.id),"
    " md5(e.id::text || a.id::text)::uuid"
    " FROM crmapi.enrollment e"
    " JOIN crmapi.sequence q ON q.workspace_id = e.workspace_id"
    " AND q.id = e.sequence_id"
    " JOIN crmapi.workspace w ON w.id = e.workspace_id"
    " JOIN crmapi.admin a ON a.workspace_id = e.workspace_id"
    " AND a.id = $3::uuid"
    " LEFT JOIN crmapi.contact c ON c.workspace_id = e.workspace_id"
    " AND c.id = e.contact_id"
    " WHERE e.workspace_id = $1::uuid AND e.id = $2::uuid"
    " AND e.status = 'pending_approval'"
    " AND NOT EXISTS (SELECT FROM crmapi.past_send p"
    "  WHERE p.workspace_id = $1::uuid AND p.enrollment_id = e.id"
    "  AND p.part = a.id::text AND p.state <> 'free')";

enum { TO, TO_NAME, WORKSPACE, SEQUENCE, CONTACT, STEPS, ID };

/* The last statement before the mail: its link, and its number unless the
 * workspace is held. */
static const char permit_sql[] =
    "SELECT '\\x' || encode(crmapi.token_sign_link($2::bytea), 'hex'),"
    " CASE WHEN NOT crmapi.sends_held($1::uuid)"
    " THEN crmapi.mark_next($3::bigint[]) END";

enum { LINK_MAC, NUMBER };

/* Maximum characters of the contact's name in a mail. */
#define NAME_CHARS 80

/* Return the column COLUMN of ROW as it may stand in the mail. */
static const char *shown(crmd_work_t *work, const PGresult *row, int column)
{
    return crm_value_show(PQgetvalue(row, 0, column), work->pool);
}

/* Return the contact's name of ROW, which a stranger may have written: cut, and
 * without quotes. */
static const char *contact_of(crmd_work_t *work, const PGresult *row)
{
    const char *name = shown(work, row, CONTACT);
    apr_size_t end = 0, chars = 0;
    char *made;

    while (name[end] && ((name[end] & 0xc0) == 0x80
                         || chars++ < NAME_CHARS)) {
        end++;
    }
    made = apr_pstrcat(work->pool, apr_pstrmemdup(work->pool, name, end),
                       name[end] ? "..." : NULL, NULL);

    for (char *c = made; *c; c++) {
        *c = *c == '"' ? '\'' : *c;
    }
    return made;
}

/* Return the text of the mail about ROW. LINK leads to its page, or is NULL. What the
 * contact is called comes last, as a quotation: nobody should take it for a word of
 * this mail. */
static const char *make_text(crmd_work_t *work, const PGresult *row,
                             const char *link)
{
    const char *enrollment = crmd_payload(work, "enrollment_id");
    const char *steps = PQgetvalue(row, 0, STEPS);
    const char *how = link
        ? apr_psprintf(work->pool, "Read it, change it, approve or reject it"
                       " here:\n\n%s\n\nThe link is yours: please do not pass"
                       " it on.\n", link)
        : apr_psprintf(work->pool, "Approve or reject it with\n\n"
                       "crmapictl enrollment approve %s\n"
                       "crmapictl enrollment reject %s\n", enrollment,
                       enrollment);

    return apr_psprintf(work->pool, "A sequence is ready and waits for your"
                        " review in %s: \"%s\" (%s step%s). Nothing is sent"
                        " before it is approved.\n\n%s\nThe contact, as"
                        " it was written by whoever it is:\n\n> %s\n",
                        shown(work, row, WORKSPACE),
                        shown(work, row, SEQUENCE), steps,
                        strcmp(steps, "1") ? "s" : "", how,
                        contact_of(work, row));
}

/* Set MESSAGE to the mail about ROW with the LINK. */
static void make_message(crmd_message_t *message, crmd_work_t *work,
                         const PGresult *row, const char *link)
{
    const crmd_config_t *config = work->config;

    memset(message, 0, sizeof(*message));
    message->channel = &crm_channels[CRM_CHANNEL_EMAIL];
    message->id = PQgetvalue(row, 0, ID);
    message->workspace_id = work->job->workspace_id;
    message->from = *config->mail_from ? config->mail_from : NULL;
    message->from_name = config->mail_from_name;
    message->to = crmd_relay_wire(message->channel, PQgetvalue(row, 0, TO),
                                  work->pool);
    message->to_name = crm_db_value(row, 0, TO_NAME);
    message->subject = apr_psprintf(work->pool, "Please review: %s for \"%s\"",
                                    shown(work, row, SEQUENCE),
                                    contact_of(work, row));
    message->text = make_text(work, row, link);
    message->automatic = 1;
}

/* Send MESSAGE, and set how WORK ends. NUMBER is that of crmapi.mark_next(), which
 * was asked for when it was ASKED. */
static crm_error_t *send_mail(crmd_work_t *work, const crmd_relay_t *relay,
                              const crmd_message_t *message,
                              apr_int64_t number, apr_time_t asked)
{
    const crmd_config_t *config = work->config;
    const crmd_sending_t entry = {number, "enrollment_id",
                                  crmd_payload(work, "enrollment_id"), "part",
                                  crmd_payload(work, "admin_id")};
    crm_error_t *error;
    crmd_receipt_t receipt;

    CRM_ERR(crmd_mark_begin(&entry, work));
    error = crmd_work_still(work, asked);
    if (error) {
        crmd_mark_end(&entry, "free", NULL, work);
        return error;
    }
    crmd_relay_send(&receipt, relay, message, config, work->pool);
    if (receipt.verdict != CRMD_UNKNOWN) {
        crmd_mark_end(&entry, receipt.verdict == CRMD_SENT ? "sent" : "free",
                      receipt.provider_id, work);
    }
    if (receipt.verdict == CRMD_REFUSED
        || (receipt.verdict != CRMD_SENT
            && work->job->attempts >= config->send_attempts)) {
        crmd_work_dead(work, receipt.reason);
    }
    else if (receipt.verdict != CRMD_SENT) {
        /* A second mail is better than none. */
        crmd_work_retry(work, crmd_backoff(work->job->attempts, FIRST_WAIT,
                                           LAST_WAIT), receipt.reason);
    }
    return NULL;
}

/* Send the mail about ROW, unless the workspace is held: *HELD_P. */
static crm_error_t *permit_and_send(int *held_p, crmd_work_t *work,
                                    const crmd_relay_t *relay,
                                    const PGresult *row)
{
    const char *head = crmd_link_review_head(
        work->config, work->job->workspace_id,
        crmd_payload(work, "enrollment_id"), crmd_payload(work, "admin_id"),
        work->pool);
    const char *values[3] = {
        work->job->workspace_id, head, crmd_mark_known(work->pool)
    };
    apr_time_t asked = crm_time_monotonic();
    crmd_message_t message;
    PGresult *permit;

    CRM_ERR(crmd_query(&permit, work, permit_sql, 3, values));
    *held_p = PQgetisnull(permit, 0, NUMBER);
    if (*held_p) {
        return NULL;
    }
    make_message(&message, work, row,
                 crmd_link_review(work->config, head,
                                  crm_db_value(permit, 0, LINK_MAC),
                                  work->pool));
    return send_mail(work, relay, &message,
                     apr_atoi64(PQgetvalue(permit, 0, NUMBER)), asked);
}

crm_error_t *crmd_review_mail(crmd_work_t *work)
{
    const crmd_relay_t *relay = crmd_relay_of(
        work->config, &crm_channels[CRM_CHANNEL_EMAIL]);
    const char *values[3] = {
        work->job->workspace_id, crmd_payload(work, "enrollment_id"),
        crmd_payload(work, "admin_id")
    };
    crm_error_t *error;
    PGresult *result;
    int held = 0;

    crmd_relay_enter(relay, work->config);
    error = crmd_query(&result, work, review_sql, 3, values);
    if (!error && PQntuples(result)) {      /* else it was decided */
        error = permit_and_send(&held, work, relay, result);
    }
    crmd_relay_leave(relay);
    return held ? crmd_work_return(work) : error;
}
