/* SPDX-License-Identifier: Apache-2.0 */
/* intake_form.c: submission of web forms */
#include "intake_form.h"

#include <string.h>

#include "apr_cstr.h"

#include "crm_channel.h"
#include "crm_form.h"
#include "crm_intake_site.h"
#include "crm_json.h"
#include "crm_key.h"
#include "crm_look_up.h"
#include "crm_query.h"
#include "crm_type.h"
#include "crm_uuid.h"
#include "crm_webform.h"
#include "intake_form_body.h"
#include "intake_form_check.h"
#include "intake_form_page.h"

/* The form $1, if its workspace is $2 (id or slug; NULL: any) and not held.
 * Of several with this id it is the one that the database knows longest, so that
 * no import takes it from another workspace (contract 14.2). */
static const char form_sql[] =
    "SELECT f.workspace_id, f.bot_id, f.standard_fields, f.custom_fields,"
    " f.survey_questions FROM crmapi.form f"
    " JOIN crmapi.workspace w ON w.id = f.workspace_id"
    " WHERE f.id = $1::uuid AND " CRM_INTAKE_SERVES("w.id")
    " ORDER BY f.known_at, w.created_at, w.id LIMIT 1";

/* One row if the intake token with the hash $1 is valid. */
static const char token_sql[] =
    "SELECT FROM crmapi.intake_key_find($1::bytea) k";

/* ---- the form ------------------------------------------------------------ */

/* Set *OBJECT_P to the JSON in TEXT, a column's value. */
static crm_error_t *read_object(json_object **object_p, const char *text,
                                apr_pool_t *pool)
{
    apr_size_t offset;

    return crm_json_parse(object_p, &offset, text, strlen(text), pool)
           ? crm_error_logf(CRM_E_INTERNAL, pool, "CRM4201: the configuration "
                            "of a form cannot be read") : NULL;
}

/* Load the form ID into *FORM. Errors: CRM_E_NOT_FOUND. */
static crm_error_t *load_form(crm_webform_t *form, crm_call_t *call,
                              const char *id)
{
    json_object *objects[3];
    const char *values[2];
    PGresult *result;

    values[0] = id;
    values[1] = call->service->settings.workspace;
    CRM_ERR(crm_call_run(&result, call, form_sql, 2, values));
    if (PQntuples(result) != 1) {
        return crm_error_create(CRM_E_NOT_FOUND, "There is no such form",
                                call->pool);
    }
    for (int i = 0; i < 3; i++) {
        CRM_ERR(read_object(&objects[i], PQgetvalue(result, 0, 2 + i),
                            call->pool));
    }
    crm_webform_configure(form, objects[0], objects[1], objects[2],
                          call->pool);
    form->id = id;
    form->workspace_id = crm_db_value(result, 0, 0);
    form->bot_id = crm_db_value(result, 0, 1);
    return NULL;
}

/* ---- access -------------------------------------------------------------- */

/* Fail if CALL is from a page of an origin that FORM does not allow. A request
 * without Origin is not from a page. */
static crm_error_t *check_origin(const crm_webform_t *form,
                                 const crm_call_t *call)
{
    const char *origin = crm_request_header(call->request, "Origin");

    if (!form->origins || !origin) {
        return NULL;
    }
    for (int i = 0; i < form->origins->nelts; i++) {
        if (!apr_cstr_casecmp(APR_ARRAY_IDX(form->origins, i, const char *),
                              origin)) {
            return NULL;
        }
    }
    return crm_error_create(CRM_E_FORBIDDEN, "This form must not be sent from "
                            "this site", call->pool);
}

/* Set *INTERNAL_P to whether the query of CALL has "internal", a boolean as
 * contract 7.3 has it, that is true. */
static crm_error_t *read_internal(int *internal_p, const crm_call_t *call)
{
    const char *bind = "f", *rule = NULL, *value;
    crm_error_t *error = NULL;
    apr_array_header_t *params;

    crm_query_parse(&params, call->request->query, call->pool);
    value = crm_form_get(params, "internal");
    if (value) {
        rule = crm_type_boolean.parse_query(&bind, NULL, value, call->pool);
    }
    if (rule) {
        crm_error_detail(&error, "internal", rule, call->pool);
    }
    *internal_p = *bind == 't';
    return error;
}

/* Fail unless CALL has an intake token of FORM's workspace. The request is
 * charged to the token instead of the address, and the look-up of an unknown
 * token to the address (contract 2.4). */
static crm_error_t *check_token(const crm_webform_t *form,
                                crm_call_t *call)
{
    const char *hash;
    PGresult *result;

    CRM_ERR(crm_access_token.admit(call));
    if (strcmp(call->key.workspace_id, form->workspace_id)) {
        return crm_error_create(CRM_E_UNAUTHORIZED, "Intake token is missing "
                                "or invalid", call->pool);
    }
    hash = crm_look_up_hash(call);
    CRM_ERR(crm_call_run(&result, call, token_sql, 1, &hash));
    if (!PQntuples(result)) {
        return crm_access_revoked(call);
    }
    crm_access_proven(call);
    return NULL;
}

/* ---- storing ------------------------------------------------------------- */

/* Return the event id of TAKEN, a submission of FORM. It is random, unless the
 * page has sent SUBMISSION_ID (may be NULL): the same answers then have the
 * same id. */
static const char *event_id(const crm_webform_t *form,
                            const crm_webform_taken_t *taken,
                            const char *submission_id, apr_pool_t *pool)
{
    char *id = apr_palloc(pool, 5 + 2 * CRM_KEY_HASH_LEN + 1);
    unsigned char hash[CRM_KEY_HASH_LEN];
    crm_buf_t text;

    memcpy(id, "form:", 5);
    if (!submission_id || !*submission_id) {
        crm_uuid_v7(id + 5);
        return id;
    }
    crm_buf_init(&text, 1024, pool);
    crm_buf_add(&text, form->id, strlen(form->id) + 1);
    crm_buf_add(&text, submission_id, strlen(submission_id) + 1);
    crm_buf_add(&text, taken->content, strlen(taken->content) + 1);
    crm_buf_puts(&text, taken->responses);
    crm_key_hash(hash, text.data, text.len);
    crm_key_hash_hex(id + 5, hash);
    return id;
}

/* Store ANSWERS to FORM, which are valid (TAKEN). */
static crm_error_t *take(crm_call_t *call, const crm_webform_t *form,
                         const crm_webform_taken_t *taken,
                         const apr_array_header_t *answers, int internal)
{
    crm_intake_event_t event = {{NULL}};
    crm_intake_result_t result;

    event.binds[CRM_INTAKE_EVENT_ID] =
        event_id(form, taken, crm_form_get(answers, "submission_id"),
                 call->pool);
    event.binds[CRM_INTAKE_CHANNEL] = CRM_CODE_FORM;
    event.binds[CRM_INTAKE_BOT_ID] = form->bot_id;
    event.binds[CRM_INTAKE_FROM_EMAIL] = taken->email;
    event.binds[CRM_INTAKE_FROM_PHONE] = taken->phone;
    event.binds[CRM_INTAKE_FROM_NAME] = taken->name;
    event.binds[CRM_INTAKE_CONTENT] = taken->content;
    event.binds[CRM_INTAKE_FORM_ID] = form->id;
    event.binds[CRM_INTAKE_RESPONSES] = taken->responses;
    event.binds[CRM_INTAKE_CONTACT] = taken->contact;
    event.binds[CRM_INTAKE_INTERNAL] = internal ? "t" : "f";
    CRM_ERR(crm_intake_take(&result, call, form->workspace_id, &event));
    crm_webform_thank(call, form, result.submission_id, internal);
    return NULL;
}

/* Return whether ANSWERS fill FORM's honeypot, which people do not see. A field
 * of that name is an ordinary field. */
static int has_honeypot_value(const crm_webform_t *form,
                              const apr_array_header_t *answers)
{
    for (int i = 0; i < answers->nelts; i++) {
        const crm_query_param_t *one = &APR_ARRAY_IDX(answers, i,
                                                      crm_query_param_t);

        if (one->value_len && !strcmp(one->name, form->honeypot)) {
            return !crm_webform_field(form, form->honeypot);
        }
    }
    return 0;
}

/* Store ANSWERS to FORM if they are valid. */
static crm_error_t *submit(crm_call_t *call, const crm_webform_t *form,
                           const apr_array_header_t *answers)
{
    crm_webform_taken_t taken;
    int internal;

    CRM_ERR(check_origin(form, call));
    CRM_ERR(read_internal(&internal, call));
    if (internal) {
        CRM_ERR(check_token(form, call));
    }
    if (has_honeypot_value(form, answers)) {
        char id[CRM_UUID_LEN + 1];

        crm_uuid_v7(id);
        crm_webform_thank(call, form, id, internal);
        return NULL;
    }
    CRM_ERR(crm_webform_check(&taken, form, answers,
                              crm_webform_is_json(call), call->pool));
    return take(call, form, &taken, answers, internal);
}

/* Set the CORS headers: pages of any origin may send a form, without
 * cookies. */
static void allow_pages(const crm_call_t *call)
{
    apr_table_t *headers = call->response->headers;

    apr_table_setn(headers, "Access-Control-Allow-Origin", "*");
    apr_table_setn(headers, "Access-Control-Expose-Headers", "Retry-After");
}

/* Respond to a CORS preflight request. */
static crm_error_t *serve_preflight(crm_call_t *call)
{
    apr_table_t *headers = call->response->headers;

    allow_pages(call);
    apr_table_setn(headers, "Access-Control-Allow-Methods", "POST");
    apr_table_setn(headers, "Access-Control-Allow-Headers", "Content-Type");
    apr_table_setn(headers, "Access-Control-Max-Age", "3600");
    call->response->status = 204;
    return NULL;
}

static crm_error_t *serve_form(crm_call_t *call)
{
    char *id = apr_palloc(call->pool, CRM_UUID_LEN + 1);
    apr_array_header_t *answers;
    crm_webform_t form;
    const char *body;
    apr_size_t len;
    crm_error_t *error;

    allow_pages(call);
    if (!crm_uuid_parse(id, call->args[0].text, call->args[0].len)) {
        return crm_error_create(CRM_E_NOT_FOUND, "There is no such form",
                                call->pool);
    }
    CRM_ERR(crm_call_body(&body, &len, call));
    CRM_ERR(crm_webform_read(&answers, body, len,
                             crm_request_header(call->request,
                                                "Content-Type"),
                             call->pool));
    memset(&form, 0, sizeof(form));
    CRM_ERR(load_form(&form, call, id));
    error = submit(call, &form, answers);
    if (error && error->code == CRM_E_VALIDATION) {
        /* shown here, where the form's labels are known */
        crm_webform_show_error(call, &form, error);
        error = NULL;
    }
    return error;
}

static void show_error(crm_call_t *call, const crm_error_t *error)
{
    allow_pages(call);
    crm_webform_show_error(call, NULL, error);
}

static const crm_access_t access_form = {"form", crm_access_admit_address};

const crm_route_t crm_intake_form_routes[] = {
    {.method = "POST", .path = "/forms/{id}", .access = &access_form,
     .max_body = CRM_ACCESS_BODY_MAX, .serve = serve_form,
     .show_error = show_error},
    {.method = "OPTIONS", .path = "/forms/{id}",
     .access = &crm_access_anybody, .serve = serve_preflight},
    {.method = NULL}
};
