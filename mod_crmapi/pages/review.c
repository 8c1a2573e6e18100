/* SPDX-License-Identifier: Apache-2.0 */
/* review.c: reviewing a sequence: show, save, approve, reject */
#include "review.h"

#include <string.h>

#include "apr_cstr.h"
#include "apr_strings.h"

#include "crm_array.h"
#include "crm_bare.h"
#include "crm_form.h"
#include "crm_query.h"
#include "crm_text.h"
#include "review_html.h"
#include "review_load.h"

static const char act_sql[] =
    "SELECT crmapi.review_act($1::uuid, $2::uuid, $3, $4, $5::jsonb,"
    " $6::uuid, $7)";

/* Actions of the form, the value of "done" in the page's query afterwards, and
 * whether the texts are stored. */
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

/* Return NULL, or why the form that was sent to PAGE is refused. Its token must
 * be one that this page of REVIEW issued less than two hours ago. Set *OLD_P if
 * its age is the only reason. */
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
        return "This form was not sent from this page, so nothing was done. "
               "Please review the sequence below.";
    }
    *old_p = crm_token_expired(&token, page->now);
    return *old_p ? "This page was open for too long, so nothing was done "
                    "yet. Your texts are below. Please send them again."
                  : NULL;
}

/* Return whether REQUEST was sent from another site, according to the browser's
 * headers. Browsers send "Origin: null" from our own pages because of their
 * Referrer-Policy "no-referrer". */
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

/* Return NULL or the rule, in POOL, that TEXT's typed value breaks. A text that was
 * empty before may stay empty. */
static const char *check_text(const crm_review_text_t *text, apr_pool_t *pool)
{
    const char *typed = text->typed;

    if (text->is_line && strpbrk(typed, "\n")) {
        return "must be one line";
    }
    if (*text->value && !crm_text_shows(typed)) {
        return "must not be empty";
    }
    return crm_text_length(typed, strlen(typed)) <= (apr_size_t)text->max ? NULL
           : apr_psprintf(pool, "must have at most %d,%03d characters",
                          text->max / 1000, text->max % 1000);
}

/* Read the texts in PAGE's form into REVIEW. Return the number of invalid
 * texts. */
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
                text->rule = check_text(text, page->pool);
                invalid += text->rule != NULL;
            }
        }
    }
    return invalid;
}

/* --- actions -------------------------------------------------------------- */

/* Add the texts typed for STEP to EDITS, if they differ from the stored
 * ones. */
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
        crm_buf_json_text(edits, text->typed);
    }
    crm_buf_puts(edits, begun ? "}" : "");
}

/* Return the edited texts as the argument of crmapi.review_act(). */
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

/* Show REVIEW, loaded again, with PROBLEM as the reason why an action was
 * refused. If KEEP, show the texts that were typed. */
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

/* Do action N on REVIEW. */
static crm_error_t *act(crm_page_t *page, crm_review_t *review, int n)
{
    const char *values[7], *had;
    PGresult *result;

    values[0] = page->token.workspace_id;
    values[1] = page->token.subject_id;
    values[2] = crm_form_get(page->fields, "seen");
    values[3] = actions[n].action;
    values[4] = actions[n].edits ? make_edits(review, page->pool) : "[]";
    values[5] = page->token.other_id;
    values[6] = page->call->request->address;
    CRM_ERR(crm_call_run(&result, page->call, act_sql, 7, values));
    had = crm_db_value(result, 0, 0);
    if (had && !strcmp(had, "pending_approval")) {
        crm_page_redirect(page->response, actions[n].done, page->pool);
        return NULL;
    }
    if (had && !strcmp(had, "changed")) {
        return show_again(page, review, "Somebody else has changed a text "
                          "since you opened this page, so nothing was done. "
                          "The current texts are below. Please review them "
                          "again.", 1, 409);
    }
    return show_again(page, review, "Somebody else has already decided, so "
                      "nothing was done.", 0, 409);
}

/* Return the index of the action in PAGE's form, -1 if it has none. */
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

/* Do the action of the form that was sent to PAGE, of REVIEW. */
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
        review->problem = "Nothing was done yet. Please correct these texts:";
        crm_review_show(page, review, 422);
        return NULL;
    }
    return act(page, review, n);
}

/* Return the action done before, from the query of PAGE, or NULL. */
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
