/* SPDX-License-Identifier: Apache-2.0 */
/* review.c: a sequence is looked at, changed, approved or rejected */
#include "crm_review.h"

#include <string.h>

#include "apr_cstr.h"
#include "apr_strings.h"

#include "crm_array.h"
#include "crm_form.h"
#include "crm_query.h"
#include "crm_text.h"

/* As crmapi.line and crmapi.prose have it (schema/README). */
#define LINE_MAX_CHARS 1000
#define PROSE_MAX_CHARS 65536

static const char act_sql[] =
    "SELECT crmapi.review_act($1::uuid, $2::uuid, $3, $4, $5::jsonb)";

/* Actions of the form, what the page says after them, and whether texts are
 * taken over. */
static const struct {
    const char *action;
    const char *done;
    int edits;
} actions[] = {
    {"approve", "?done=approved", 1},
    {"reject", "?done=rejected", 0},
    {"save", "?done=saved", 1},
};

/* --- forms ---------------------------------------------------------------- */

/* Return NULL or why the form that was sent to PAGE, of REVIEW, is not taken:
 * it must be one that this very page has had, not long ago. Set *OLD_P to
 * whether it is but old. */
static const char *check_form_token(int *old_p, const crm_page_t *page,
                                    const crm_review_t *review)
{
    const char *text = crm_form_get(page->fields, "form");
    char bound[CRM_UUID_LEN + 1];
    crm_token_t token;

    *old_p = 0;
    crm_token_bind(bound, page->token_text);
    if (!text || !crm_token_read(&token, text, strlen(text))
        || token.purpose != CRM_TOKEN_FORM
        || strcmp(token.workspace_id, page->token.workspace_id)
        || strcmp(token.subject_id, page->token.subject_id)
        || strcmp(token.other_id, bound)
        || !review->form_signed) {
        return "This form did not come from this page, so nothing was done. "
               "Please look again and decide here.";
    }
    *old_p = crm_token_expired(&token, page->now);
    return *old_p ? "This page was open for too long, so nothing was done "
                    "yet. What you typed is below: please send it again."
                  : NULL;
}

/* Return whether another site has sent REQUEST, by what the browser tells. Our
 * own pages say "no-referrer", with which browsers send "Origin: null". */
static int is_foreign(const crm_request_t *request)
{
    const char *origin = crm_request_header(request, "Origin");
    const char *site = crm_request_header(request, "Sec-Fetch-Site");
    const char *own = crm_request_header(request, "Host");
    const char *host = origin ? strstr(origin, "://") : NULL;

    if (site && strcmp(site, "same-origin") && strcmp(site, "none")) {
        return 1;
    }
    if (!origin || !strcmp(origin, "null")) {
        return 0;
    }
    return !host || !own || apr_cstr_casecmp(host + 3, own);
}

/* Return NULL or the rule that TEXT's typed value breaks. What was not there
 * before may stay away. */
static const char *check_text(const crm_review_text_t *text)
{
    const char *typed = text->typed;
    apr_size_t len = strlen(typed);
    apr_size_t chars = crm_text_length(typed, len);

    if (text->is_line && strpbrk(typed, "\n")) {
        return "must be one line";
    }
    if (*text->value && strspn(typed, " \t\n") == len) {
        return "must not be empty";
    }
    if (text->is_line && chars > LINE_MAX_CHARS) {
        return "must have at most 1,000 characters";
    }
    return chars > PROSE_MAX_CHARS
           ? "must have at most 65,536 characters" : NULL;
}

/* Take what PAGE's form says of REVIEW's texts. Return how many are wrong. */
static int take_texts(const crm_review_t *review, const crm_page_t *page)
{
    int invalid = 0;

    for (int i = 0; i < review->steps->nelts; i++) {
        crm_review_step_t *step = &APR_ARRAY_IDX(review->steps, i,
                                                 crm_review_step_t);

        for (int j = 0; j < step->count; j++) {
            crm_review_text_t *text = &step->texts[j];
            const char *typed = crm_form_get(page->fields,
                apr_pstrcat(page->pool, text->name, ".", step->id, NULL));

            if (typed) {
                text->typed = crm_form_lines(typed, page->pool);
                text->rule = check_text(text);
                invalid += text->rule != NULL;
            }
        }
    }
    return invalid;
}

/* --- acting --------------------------------------------------------------- */

/* Add to EDITS what was typed for STEP, if that is something else. */
static void add_edit(crm_buf_t *edits, const crm_review_step_t *step)
{
    int begun = 0;

    for (int i = 0; i < step->count; i++) {
        const crm_review_text_t *text = &step->texts[i];

        if (!text->typed
            || !strcmp(text->typed, crm_form_lines(text->value,
                                                   edits->pool))) {
            continue;
        }
        if (!begun++) {
            crm_buf_printf(edits, "%s{\"step\":\"%s\"",
                           edits->len > 1 ? "," : "", step->id);
        }
        crm_buf_printf(edits, ",\"%s\":", text->name);
        crm_buf_json_string(edits, text->typed, strlen(text->typed));
    }
    crm_buf_puts(edits, begun ? "}" : "");
}

/* Return what was typed as crmapi.review_act() wants it. */
static const char *make_edits(const crm_review_t *review, apr_pool_t *pool)
{
    crm_buf_t edits;

    crm_buf_init(&edits, 1024, pool);
    crm_buf_putc(&edits, '[');
    for (int i = 0; i < review->steps->nelts; i++) {
        add_edit(&edits, &APR_ARRAY_IDX(review->steps, i,
                                        crm_review_step_t));
    }
    crm_buf_add(&edits, "]", 2);
    return edits.data;
}

/* Show REVIEW as it is now, after something was not done because of PROBLEM,
 * beside what was typed if KEEP. */
static crm_error_t *show_again(crm_page_t *page, crm_review_t *review,
                               const char *problem, int keep, int status)
{
    CRM_ERR(crm_review_load(review, page));
    if (!review->status) {
        crm_page_refuse(page->response, page->pool);
        return NULL;
    }
    review->problem = problem;
    if (keep) {
        take_texts(review, page);
        review->conflict = status == 409;
    }
    crm_review_show(page, review, status);
    return NULL;
}

/* Do action number N with REVIEW. */
static crm_error_t *act(crm_page_t *page, crm_review_t *review, int n)
{
    const char *values[5], *had;
    PGresult *result;

    values[0] = page->token.workspace_id;
    values[1] = page->token.subject_id;
    values[2] = crm_form_get(page->fields, "seen");
    values[3] = actions[n].action;
    values[4] = actions[n].edits ? make_edits(review, page->pool) : "[]";
    CRM_ERR(crm_call_run(&result, page->call, act_sql, 5, values));
    had = crm_db_value(result, 0, 0);
    if (had && !strcmp(had, "pending_approval")) {
        crm_page_redirect(page->response, actions[n].done, page->pool);
        return NULL;
    }
    if (had && !strcmp(had, "changed")) {
        return show_again(page, review, "Somebody else has changed a text "
                          "since you opened this page, so nothing was done. "
                          "The texts below are those of now: please look "
                          "again.", 1, 409);
    }
    return show_again(page, review, "Somebody else was faster, so nothing was "
                      "done.", 0, 409);
}

/* Return the number of the action that PAGE's form asks for, -1 if none. */
static int find_action(const crm_page_t *page)
{
    const char *action = crm_form_get(page->fields, "action");

    for (int i = 0; action && i < (int)CRM_NELTS(actions); i++) {
        if (!strcmp(action, actions[i].action)) {
            return i;
        }
    }
    return -1;
}

/* Do what the form that was sent to PAGE, of REVIEW, asks for. */
static crm_error_t *post(crm_page_t *page, crm_review_t *review)
{
    int old, n = find_action(page);
    const char *problem = check_form_token(&old, page, review);

    if (problem) {
        return show_again(page, review, problem, old, 403);
    }
    if (n < 0) {
        return crm_error_create(CRM_E_BAD_REQUEST, "The form must have an "
                                "action: approve, reject or save",
                                page->pool);
    }
    if (crm_review_waits(review) && actions[n].edits
        && take_texts(review, page)) {
        review->problem = "Nothing was done yet, because of these texts:";
        crm_review_show(page, review, 422);
        return NULL;
    }
    return act(page, review, n);
}

/* Return what the query of PAGE says was done, or NULL. */
static const char *find_done(const crm_page_t *page)
{
    apr_array_header_t *params;

    crm_query_parse(&params, page->call->request->query, page->pool);
    return crm_form_get(params, "done");
}

crm_error_t *crm_page_review(crm_page_t *page)
{
    crm_review_t review;

    if (page->posts && is_foreign(page->call->request)) {
        crm_page_say(page->response, 403, "This did not work", "Another site "
                     "has sent this form, so nothing was done. Open the link "
                     "in the mail again.", page->pool);
        return NULL;
    }
    CRM_ERR(crm_review_load(&review, page));
    if (!review.status) {
        crm_page_refuse(page->response, page->pool);
        return NULL;
    }
    if (page->posts) {
        return post(page, &review);
    }
    review.done = find_done(page);
    crm_review_show(page, &review, 200);
    return NULL;
}
