/* SPDX-License-Identifier: Apache-2.0 */
/* review_load.c: loading a review from the database */
#include "review_load.h"

#include <string.h>

#include "crm_array.h"
#include "crm_channel.h"
#include "crm_form.h"
#include "crm_steps.h"

/* How long the form of a page may be sent, in seconds. */
#define FORM_TTL (2 * 60 * 60)

#define TIME_FORMAT "'FMDay, FMDD FMMonth YYYY, HH24:MI'"

/* The enrollment $2 of the workspace $1, for its admin $3. $4: the head of the
 * token of a new form. $5, $6: the parts of the token of the form that was
 * sent. The digest is read before the texts: if a text changes in between,
 * approving it is refused as outdated, and no text is approved that was not
 * shown. */
static const char review_sql[] =
    "SELECT e.status, q.name, t.name, a.name,"
    " nullif(concat_ws(' ', c.first_name, c.last_name), ''),"
    " crmapi.list_primary(c.emails, 'email'), c.company, w.name, w.time_zone,"
    " crmapi.review_digest(e.workspace_id, e.id), coalesce(m.name, m.email),"
    " coalesce(e.stop_reason, e.generation_error),"
    " to_char(e.approved_at AT TIME ZONE w.time_zone, " TIME_FORMAT "),"
    " '\\x' || encode(crmapi.token_sign_page($4::bytea), 'hex'),"
    " crmapi.token_signed($5::bytea, $6::bytea)"
    " FROM crmapi.enrollment e"
    " JOIN crmapi.workspace w ON w.id = e.workspace_id"
    " JOIN crmapi.admin m ON m.workspace_id = e.workspace_id"
    " AND m.id = $3::uuid"
    " JOIN crmapi.sequence q ON q.workspace_id = e.workspace_id"
    " AND q.id = e.sequence_id"
    " LEFT JOIN crmapi.sequence_template t"
    " ON t.workspace_id = e.workspace_id AND t.id = q.template_id"
    " LEFT JOIN crmapi.agent a ON a.workspace_id = e.workspace_id"
    " AND a.id = q.bot_id"
    " LEFT JOIN crmapi.contact c ON c.workspace_id = e.workspace_id"
    " AND c.id = e.contact_id"
    " WHERE e.workspace_id = $1::uuid AND e.id = $2::uuid";

static const char steps_sql[] =
    "SELECT s.id, s.sort_order, s.channel, s.status, s.to_identifier,"
    " to_char(d.due AT TIME ZONE w.time_zone, " TIME_FORMAT "),"
    " s.email_subject, s.email_body, s.sms_body, s.voice_objective,"
    " s.voice_script"
    " FROM crmapi.enrollment_step s"
    " JOIN crmapi.workspace w ON w.id = s.workspace_id"
    " JOIN crmapi.review_times($1::uuid, $2::uuid, statement_timestamp()) d"
    " ON d.step = s.id"
    " WHERE s.workspace_id = $1::uuid AND s.enrollment_id = $2::uuid"
    " ORDER BY s.sort_order";

/* The texts of each channel, and their columns in the statement above. */
static const struct {
    int channel;                /* CRM_CHANNEL_... */
    const char *name;
    const char *label;
    int is_line;
    int column;
} texts[] = {
    {CRM_CHANNEL_EMAIL, "subject", "Subject", 1, 6},
    {CRM_CHANNEL_EMAIL, "body", "Text", 0, 7},
    {CRM_CHANNEL_TEXT, "body", "Text", 0, 8},
    {CRM_CHANNEL_PHONE, "objective", "Objective of the call", 0, 9},
    {CRM_CHANNEL_PHONE, "body", "Script", 0, 10},
};

int crm_review_waits(const crm_review_t *review)
{
    return !strcmp(review->status, "pending_approval");
}

/* Add the step in ROW of RESULT to REVIEW. */
static void add_step(crm_review_t *review, const PGresult *result, int row)
{
    crm_review_step_t *step = apr_array_push(review->steps);
    const crm_channel_t *channel;

    memset(step, 0, sizeof(*step));
    channel = crm_channel_way(PQgetvalue(result, row, 2));
    step->id = crm_db_value(result, row, 0);
    step->number = crm_db_value(result, row, 1);
    step->channel = crm_db_value(result, row, 2);
    step->status = crm_db_value(result, row, 3);
    step->to = crm_db_value(result, row, 4);
    step->when = crm_db_value(result, row, 5);
    for (int i = 0; i < (int)CRM_NELTS(texts); i++) {
        crm_review_text_t *text = &step->texts[step->count];

        if (crm_channel_is(channel, texts[i].channel)) {
            const char *value = crm_db_value(result, row, texts[i].column);

            text->name = texts[i].name;
            text->label = texts[i].label;
            text->is_line = texts[i].is_line;
            text->max = crm_step_max(PQfname(result, texts[i].column));
            text->value = value ? value : "";
            step->count++;
        }
    }
}

/* The columns of form tokens, after those that take_row() reads. */
enum { FORM_MAC = 13, FORM_SIGNED };

/* Set *HEAD_P to the head of the token for the form of PAGE, and *SENT to the
 * parts of the token that was sent, or NULL. */
static void read_forms(const char **head_p, const char **sent,
                       const crm_page_t *page)
{
    const char *text = page->fields ? crm_form_get(page->fields, "form")
                                    : NULL;
    crm_token_t token;

    sent[0] = sent[1] = NULL;
    if (text && crm_token_read(&token, text, strlen(text))) {
        crm_token_parts(&sent[0], &sent[1], text, page->pool);
    }
    token = page->token;
    token.purpose = CRM_TOKEN_FORM;
    crm_token_bind(token.other_id, page->token_text);
    token.expires = apr_time_sec(page->now) + FORM_TTL;
    *head_p = crm_token_head(&token, page->pool);
}

/* Read RESULT's row into REVIEW. */
static void take_row(crm_review_t *review, const PGresult *result)
{
    const char **const columns[] = {&review->status, &review->sequence,
        &review->template_name, &review->agent, &review->contact,
        &review->address, &review->company, &review->workspace,
        &review->time_zone, &review->digest, &review->admin, &review->reason,
        &review->approved};

    for (int i = 0; i < (int)CRM_NELTS(columns); i++) {
        *columns[i] = crm_db_value(result, 0, i);
    }
}

crm_error_t *crm_review_load(crm_review_t *review, const crm_page_t *page)
{
    const char *values[6], *token, *form_signed;
    PGresult *result;

    memset(review, 0, sizeof(*review));
    values[0] = page->token.workspace_id;
    values[1] = page->token.subject_id;
    values[2] = *page->token.other_id ? page->token.other_id : NULL;
    read_forms(&values[3], &values[4], page);
    CRM_ERR(crm_call_run(&result, page->call, review_sql, 6, values));
    if (!PQntuples(result)) {
        return NULL;
    }
    take_row(review, result);
    token = crm_token_text(values[3], crm_db_value(result, 0, FORM_MAC),
                           page->pool);
    review->form_token = token ? token : "";
    form_signed = crm_db_value(result, 0, FORM_SIGNED);
    review->form_signed = form_signed && *form_signed == 't';
    CRM_ERR(crm_call_run(&result, page->call, steps_sql, 2, values));
    review->steps = apr_array_make(page->pool, PQntuples(result) + 1,
                                   sizeof(crm_review_step_t));
    for (int row = 0; row < PQntuples(result); row++) {
        add_step(review, result, row);
    }
    return NULL;
}
