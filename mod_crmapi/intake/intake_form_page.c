/* SPDX-License-Identifier: Apache-2.0 */
/* intake_form_page.c: the responses to a submitted form */
#include "intake_form_page.h"

#include <string.h>

#include "crm_envelope.h"
#include "crm_page.h"
#include "intake_form_body.h"

/* ---- thanks -------------------------------------------------------------- */

static void thank_json(crm_call_t *call, const crm_webform_t *form,
                       const char *id, int internal)
{
    call->response->status = 201;
    crm_buf_printf(&call->response->body, "{\"data\":{\"id\":\"%s\","
                   "\"form_id\":\"%s\",\"is_internal\":%s}}", id, form->id,
                   internal ? "true" : "false");
}

void crm_webform_thank(crm_call_t *call, const crm_webform_t *form,
                       const char *id, int internal)
{
    crm_response_t *page = call->response;

    if (crm_webform_wants_json(call)) {
        thank_json(call, form, id, internal);
        return;
    }
    if (form->redirect_url) {
        call->response->status = 303;
        apr_table_setn(call->response->headers, "Location",
                       form->redirect_url);
        return;
    }
    crm_page_begin(page, 200, "Thank you", call->pool);
    crm_html_put(&page->body, "<p role=\"status\" class=\"note good text\" "
                 "dir=\"auto\">",
                 form->thank_you ? form->thank_you
                                 : "We have received your answers.",
                 "</p>\n", NULL);
    crm_page_end(page);
}

/* ---- errors -------------------------------------------------------------- */

/* Return the title of a page for ERROR, and set *TEXT_P to its text. */
static const char *error_texts(const char **text_p, const crm_error_t *error)
{
    int status = crm_code_info(error->code)->status;

    if (status >= 500) {
        *text_p = "This does not work at the moment, and nothing was "
                  "stored. Please send the form again in a minute.";
        return "Please try again";
    }
    if (error->code == CRM_E_RATE_LIMITED) {
        *text_p = "Too many forms were sent within a minute. "
                  "Please send yours again a little later.";
        return "Please wait a moment";
    }
    if (error->code == CRM_E_VALIDATION) {
        *text_p = error->details ? "Some answers are missing or invalid, so "
                                   "nothing has been stored."
                                 : error->message;
        return "Please check your answers";
    }
    *text_p = error->message;
    return "This did not work";
}

/* Add a list of DETAILS (of crm_detail_t) to BODY, with FORM's labels. */
static void list_details(crm_buf_t *body, const crm_webform_t *form,
                         const apr_array_header_t *details)
{
    crm_buf_puts(body, "<ul class=\"card\">\n");
    for (int i = 0; i < details->nelts; i++) {
        const crm_detail_t *detail = &APR_ARRAY_IDX(details, i, crm_detail_t);
        const crm_webform_field_t *field =
            form ? crm_webform_field(form, detail->field) : NULL;

        crm_html_put(body, "<li><strong>",
                     field ? field->label : detail->field, "</strong> ",
                     detail->message, "</li>\n", NULL);
    }
    crm_buf_puts(body, "</ul>\n");
}

/* Add to BODY how to go back to the form of CALL. Only the browser's back
 * button keeps what was typed. */
static void write_back(crm_buf_t *body, const crm_call_t *call)
{
    const char *page = crm_request_header(call->request, "Referer");

    crm_buf_puts(body, "<p>Use your browser's back button: what you have typed "
                 "is still there.</p>\n");
    if (page && (!strncmp(page, "https://", 8)
                 || !strncmp(page, "http://", 7))) {
        crm_html_put(body, "<p class=\"small\">Or start again: <a href=\"",
                     page, "\">", "the form's page", "</a></p>\n", NULL);
    }
}

void crm_webform_show_error(crm_call_t *call, const crm_webform_t *form,
                            const crm_error_t *error)
{
    crm_response_t *page = call->response;
    const char *text;

    call->response->status = crm_code_info(error->code)->status;
    if (crm_webform_wants_json(call)) {
        crm_envelope_error(&call->response->body, error);
        return;
    }
    crm_page_begin(page, call->response->status, error_texts(&text, error),
                   call->pool);
    crm_html_put(&page->body, "<p class=\"note bad\" role=\"alert\">", text,
                 "</p>\n", NULL);
    if (error->details) {
        list_details(&page->body, form, error->details);
    }
    write_back(&page->body, call);
    crm_page_end(page);
}
