/* SPDX-License-Identifier: Apache-2.0 */
/* review_html.c: the HTML of a review page */
#include "review_html.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_channel.h"

/* Texts for the statuses of an enrollment, and for the action that led to
 * one. */
static const struct {
    const char *status;
    const char *text;
    const char *done;           /* the action for which THANKS is shown, or
                                   NULL */
    const char *thanks;
    const char *classes;        /* CSS classes */
} states[] = {
    {"generating", "The texts are still being written. Please come back in a "
     "minute.", NULL, NULL, "note"},
    {"pending_approval", "Nothing is sent before you approve it.", "saved",
     "Saved. ", "note"},
    {"approved", "This sequence is approved and will be sent as planned.",
     "approved", "Thank you. ", "note good"},
    {"running", "This sequence is approved and is being sent.", "approved",
     "Thank you. ", "note good"},
    {"completed", "This sequence is approved and has been sent.", "approved",
     "Thank you. ", "note good"},
    {"stopped_user", "This sequence was stopped. Nothing more is sent.",
     "rejected", "Thank you. ", "note"},
    {"stopped_reply", "The contact has replied. Nothing more is sent.", NULL,
     NULL, "note"},
    {"stopped_unsubscribed", "The contact has unsubscribed. Nothing more is "
     "sent.", NULL, NULL, "note"},
    {"failed", "This sequence has failed. Nothing more is sent.", NULL, NULL,
     "note bad"},
};

/* Statuses of steps and how they are shown. */
static const char *const words[][2] = {
    {"scheduled", "will be sent"}, {"sending", "is being sent"},
    {"sent", "was sent"}, {"skipped", "was skipped"},
    {"failed", "could not be sent"}, {"cancelled", "will not be sent"},
};

/* Return how NAME, the status or channel of a step, is shown. */
static const char *word_for(const char *name)
{
    const crm_channel_t *channel = crm_channel_way(name);

    if (channel) {
        return channel->label;
    }
    for (size_t i = 0; i < CRM_NELTS(words); i++) {
        if (!strcmp(name, words[i][0])) {
            return words[i][1];
        }
    }
    return name;
}

/* Add an entry of a description list to BODY, unless VALUE is NULL or empty. */
static void put_term(crm_buf_t *body, const char *term, const char *value)
{
    if (value && *value) {
        crm_html_put(body, "<dt>", term, "</dt><dd>", value, "</dd>\n", NULL);
    }
}

/* Add the status of REVIEW to BODY. */
static void put_state(crm_buf_t *body, const crm_review_t *review)
{
    for (size_t i = 0; i < CRM_NELTS(states); i++) {
        int thanks = review->done && states[i].done
                     && !strcmp(review->done, states[i].done);
        int rejected = review->reason && !strcmp(review->reason, "rejected");

        if (strcmp(review->status, states[i].status)) {
            continue;
        }
        crm_html_put(body, "<p role=\"status\" class=\"", thanks
                     && !rejected ? "note good" : states[i].classes, "\">",
                     thanks ? states[i].thanks : "", "", rejected
                     ? "This sequence was rejected. Nothing is sent."
                     : states[i].text, "", NULL);
        if (!strcmp(review->status, "failed")) {
            crm_html_put(body, " ", review->reason, NULL);
        }
        crm_buf_puts(body, "</p>\n");
    }
}

/* Add links to the invalid texts of REVIEW to BODY, if there are any. */
static void put_invalid_texts(crm_buf_t *body, const crm_review_t *review)
{
    int begun = 0;

    for (int i = 0; i < review->steps->nelts; i++) {
        const crm_review_step_t *step = &APR_ARRAY_IDX(review->steps, i,
                                                       crm_review_step_t);

        for (int j = 0; j < step->count; j++) {
            const crm_review_text_t *text = &step->texts[j];

            if (text->rule) {
                crm_html_put(body, begun++ ? "" : "<ul>\n", "",
                             "<li><a href=\"#", text->name, ".",
                             step->id, "\">Step ", step->number, ": ",
                             text->label, "</a> ", text->rule, "</li>\n",
                             NULL);
            }
        }
    }
    crm_buf_puts(body, begun ? "</ul>\n" : "");
}

/* Add to BODY why an action on REVIEW was refused. */
static void put_problem(crm_buf_t *body, const crm_review_t *review)
{
    if (review->problem) {
        crm_html_put(body, "<div role=\"alert\" class=\"note bad\">\n",
                     review->problem, "\n", NULL);
        put_invalid_texts(body, review);
        crm_buf_puts(body, "</div>\n");
    }
}

/* Add the description of REVIEW to BODY. */
static void put_subject(crm_buf_t *body, const crm_review_t *review)
{
    crm_buf_puts(body, "<dl class=\"card\">\n");
    put_term(body, "Sequence", review->sequence);
    if (review->template_name && strcmp(review->template_name,
                                        review->sequence)) {
        put_term(body, "Template", review->template_name);
    }
    put_term(body, "Contact", review->contact ? review->contact
             : review->address ? review->address : "deleted");
    put_term(body, "Company", review->company);
    put_term(body, "Sent by", review->agent);
    put_term(body, "Workspace", review->workspace);
    put_term(body, "Approved", review->approved);
    put_term(body, "You are", review->admin);
    crm_buf_puts(body, "</dl>\n");
}

/* Add the recipient and time of STEP of REVIEW to BODY. */
static void put_address(crm_buf_t *body, const crm_review_t *review,
                        const crm_review_step_t *step)
{
    crm_buf_puts(body, "<dl>\n");
    put_term(body, "To", step->to ? step->to : "no recipient");
    if (!crm_review_waits(review)) {
        put_term(body, "Status", word_for(step->status));
    }
    if (step->when) {
        crm_html_put(body, "<dt>When</dt><dd>", step->when, " (",
                     review->time_zone, crm_review_waits(review)
                     ? ")<br><span class=\"small\">if you approve it now"
                       "</span>" : ")", "", "</dd>\n", NULL);
    }
    crm_buf_puts(body, "</dl>\n");
}

/* Add the form field of TEXT to BODY, with the id ID. */
static void put_field(crm_buf_t *body, const crm_review_text_t *text,
                      const char *id, int conflict)
{
    const char *value = text->typed && !conflict ? text->typed : text->value;
    int differs = conflict && text->typed && strcmp(text->typed, text->value);

    crm_html_put(body, "<label for=\"", id, "\">", text->label, "</label>\n",
                 "", text->is_line ? "<input type=\"text\"" : "<textarea",
                 "", " dir=\"auto\" autocomplete=\"off\" id=\"", id,
                 "\" name=\"", id, "\"", NULL);
    if (text->rule) {
        crm_html_put(body, " aria-invalid=\"true\" aria-describedby=\"error.",
                     id, "\"", NULL);
    }
    if (text->is_line) {
        crm_html_put(body, " value=\"", value, "\">\n", NULL);
    }
    else {                      /* HTML ignores the first newline */
        crm_html_put(body, ">\n", value, "</textarea>\n", NULL);
    }
    if (text->rule) {
        crm_html_put(body, "<p class=\"error\" id=\"error.", id, "\">",
                     text->label, " ", text->rule, "</p>\n", NULL);
    }
    if (differs) {
        crm_html_put(body, "<p class=\"label\">Your text</p>\n"
                     "<div class=\"text\" dir=\"auto\">", text->typed,
                     "</div>\n", NULL);
    }
}

/* Add the texts of STEP of REVIEW to BODY, as form fields if they can be
 * edited. */
static void put_texts(crm_buf_t *body, const crm_review_t *review,
                      const crm_review_step_t *step)
{
    for (int i = 0; i < step->count; i++) {
        const crm_review_text_t *text = &step->texts[i];

        if (crm_review_waits(review)) {
            put_field(body, text, apr_pstrcat(body->pool, text->name, ".",
                                              step->id, NULL),
                      review->conflict);
        }
        else if (*text->value) {
            crm_html_put(body, "<p class=\"label\">", text->label, "</p>\n"
                         "<div class=\"text\" dir=\"auto\">", text->value,
                         "</div>\n", NULL);
        }
    }
}

static void put_step(crm_buf_t *body, const crm_review_t *review,
                     const crm_review_step_t *step)
{
    crm_html_put(body, "<section aria-labelledby=\"step", step->number,
                 "\">\n<h2 id=\"step", step->number, "\">Step ",
                 step->number, ": ", word_for(step->channel), "</h2>\n",
                 NULL);
    put_address(body, review, step);
    put_texts(body, review, step);
    /* This button comes first in the form, so that the Enter key saves. */
    if (crm_review_waits(review)) {
        crm_buf_puts(body, "<p class=\"bar\"><button name=\"action\" "
                     "value=\"save\">Save changes</button></p>\n");
    }
    crm_buf_puts(body, "</section>\n");
}

/* Rejecting cannot be undone, so its button is shown only after a click. That
 * needs no script. */
static const char decision[] =
    "<div class=\"card\">\n"
    "<p class=\"small\">Approving saves and sends the texts above.</p>\n"
    "<div class=\"bar\">\n"
    "<button class=\"main\" name=\"action\" value=\"approve\">Approve and "
    "send</button>\n"
    "<details>\n<summary>Reject</summary>\n"
    "<p>Nothing will be sent. This cannot be undone.</p>\n"
    "<button class=\"no\" name=\"action\" value=\"reject\">Reject this "
    "sequence</button>\n</details>\n"
    "</div>\n</div>\n";

void crm_review_show(crm_page_t *page, const crm_review_t *review, int status)
{
    crm_buf_t *body = &page->response->body;
    int waits = crm_review_waits(review);

    crm_page_begin(page->response, status, waits
                   ? "Review before sending" : "Review of a sequence",
                   page->pool);
    put_problem(body, review);
    put_state(body, review);
    put_subject(body, review);
    if (waits) {
        crm_html_put(body, "<form method=\"post\">\n"
                     "<input type=\"hidden\" name=\"form\" value=\"",
                     review->form_token, "\">\n<input type=\"hidden\" "
                     "name=\"seen\" value=\"", review->digest, "\">\n", NULL);
    }
    for (int i = 0; i < review->steps->nelts; i++) {
        put_step(body, review, &APR_ARRAY_IDX(review->steps, i,
                                              crm_review_step_t));
    }
    if (waits) {
        crm_buf_puts(body, decision);
        crm_buf_puts(body, "</form>\n");
    }
    crm_page_end(page->response);
}
