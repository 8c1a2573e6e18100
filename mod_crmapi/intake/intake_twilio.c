/* SPDX-License-Identifier: Apache-2.0 */
/* intake_twilio.c: Twilio's webhooks: routes, signature check, responses */
#include "intake_twilio.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_form.h"
#include "crm_html.h"
#include "crm_media.h"
#include "crm_query.h"
#include "crm_text.h"
#include "intake_twilio_sign.h"
#include "intake_twilio_sms.h"
#include "intake_twilio_voice.h"

/* The numbers that Twilio sends for callers who hide theirs: ANONYMOUS,
 * BLOCKED, UNAVAILABLE, RESTRICTED and UNKNOWN on a phone's keypad. */
static const char *const hidden[] = {
    "+266696687", "+2562533", "+86282452253", "+7378742833", "+8656696",
};

#define SIGNATURE "X-Twilio-Signature"

/* The handler of a webhook. */
typedef struct handler_t {
    crm_error_t *(*serve)(const crm_twilio_hook_t *hook);
} handler_t;

const char *crm_twilio_get(const crm_twilio_hook_t *hook, const char *name)
{
    const char *value = crm_form_get(hook->params, name);

    return value && *value ? value : NULL;
}

#define WHATSAPP "whatsapp:"

int crm_twilio_is_whatsapp(const char *address)
{
    return !strncasecmp(address, WHATSAPP, strlen(WHATSAPP));
}

const char *crm_twilio_phone(const char *address, apr_pool_t *pool)
{
    const char *number = address;

    if (!address) {
        return NULL;
    }
    if (crm_twilio_is_whatsapp(address)) {
        number = address + strlen(WHATSAPP);
    }
    if (crm_text_phone(number, strlen(number))
        || strspn(number, "+0123456789 ()-./") != strlen(number)
        || CRM_IS_ONE_OF(number, hidden)) {
        return NULL;
    }
    return apr_pstrdup(pool, number);
}

crm_error_t *crm_twilio_agent(crm_intake_agent_t *agent,
                              const crm_twilio_hook_t *hook,
                              const char *address)
{
    const char *phone = crm_twilio_phone(address, hook->call->pool);

    memset(agent, 0, sizeof(*agent));
    return phone ? crm_intake_find_agent(agent, hook->call, NULL, phone,
                                         hook->account->workspace) : NULL;
}

const char *crm_twilio_workspace(const crm_twilio_hook_t *hook)
{
    return hook->account->workspace ? hook->account->workspace
           : hook->call->service->settings.workspace;
}

crm_error_t *crm_twilio_unknown_number(const crm_twilio_hook_t *hook,
                                       const char *address)
{
    crm_error_t *error = crm_error_logf(CRM_E_NOT_FOUND, hook->call->pool,
        "CRM4103: no agent, or more than one, has the number %s of a webhook "
        "of Twilio account %s", address ? address : "(none)",
        hook->account->sid);

    error->message = "No agent has this number";
    return error;
}

/* ---- authentication ------------------------------------------------------ */

/* Return the error for a request that is not from Twilio. WHY is for the
 * log. */
static crm_error_t *refused(const crm_call_t *call, const char *why)
{
    crm_error_t *error = crm_error_logf(CRM_E_FORBIDDEN, call->pool, "%s",
                                        why);

    error->message = "The request is not signed by a known account";
    return error;
}

/* Return the account of SITE whose SID is SID (may be NULL). */
static const crm_twilio_account_t *find_account(const crm_intake_site_t *site,
                                                const char *sid)
{
    for (int i = 0; sid && site->twilio && i < site->twilio->nelts; i++) {
        const crm_twilio_account_t *account =
            &APR_ARRAY_IDX(site->twilio, i, crm_twilio_account_t);

        if (!strcmp(account->sid, sid)) {
            return account;
        }
    }
    return NULL;
}

/* Return the URL that CALL's client has requested, NULL if it is unknown. */
static const char *url_of(const crm_call_t *call)
{
    const crm_request_t *request = call->request;
    const char *host;

    if (crm_intake_site(call)->public_url) {
        return apr_pstrcat(call->pool, crm_intake_site(call)->public_url,
                           request->target, NULL);
    }
    host = crm_request_header(request, "Host");
    return host ? apr_pstrcat(call->pool, request->scheme, "://", host,
                              request->target, NULL) : NULL;
}

/* Set HOOK's params from its body. Names may repeat, and values may have
 * U+0000. */
static crm_error_t *read_params(crm_twilio_hook_t *hook)
{
    crm_call_t *call = hook->call;
    apr_array_header_t *params;
    const char *body;
    apr_size_t len;

    if (!crm_media_is(crm_request_header(call->request, "Content-Type"),
                      "application/x-www-form-urlencoded")) {
        return crm_error_create(CRM_E_UNSUPPORTED_MEDIA_TYPE, "The body must be"
                                " application/x-www-form-urlencoded",
                                call->pool);
    }
    CRM_ERR(crm_call_body(&body, &len, call));
    CRM_ERR(crm_form_pairs(&params, body, len, CRM_ACCESS_FIELDS_MAX,
                           call->pool));
    hook->params = params;
    return NULL;
}

/* Remove U+0000 from HOOK's params: what a provider has signed is taken
 * (contract 17.4), and no text can have it. */
static void drop_nuls(const crm_twilio_hook_t *hook)
{
    for (int i = 0; i < hook->params->nelts; i++) {
        crm_query_param_t *param = &APR_ARRAY_IDX(hook->params, i,
                                                  crm_query_param_t);
        char *clean = apr_palloc(hook->call->pool, param->value_len + 1);
        apr_size_t len = 0;

        for (apr_size_t j = 0; j < param->value_len; j++) {
            clean[len] = param->value[j];
            len += param->value[j] != '\0';
        }
        clean[len] = '\0';
        param->value = clean;
        param->value_len = len;
    }
}

/* Check CALL before its body is read: there must be accounts and a signature,
 * and CALL is counted against the limit of its address. */
static crm_error_t *admit(crm_call_t *call)
{
    const apr_array_header_t *accounts = crm_intake_site(call)->twilio;

    if (!accounts || !accounts->nelts) {
        return refused(call, "CRM4102: a Twilio webhook is from an account "
                       "without CrmApiTwilio");
    }
    if (!crm_request_header(call->request, SIGNATURE)) {
        return refused(call, "CRM4101: a Twilio webhook has no signature");
    }
    return crm_access_admit_address(call);
}

/* Fail unless one of the site's accounts has signed HOOK. */
static crm_error_t *authenticate(crm_twilio_hook_t *hook)
{
    crm_call_t *call = hook->call;
    const char *url = url_of(call);

    CRM_ERR(read_params(hook));
    hook->account = find_account(crm_intake_site(call),
                                 crm_twilio_get(hook, "AccountSid"));
    if (!hook->account) {
        return refused(call, "CRM4102: a Twilio webhook is from an account "
                       "without CrmApiTwilio");
    }
    /* the query is not logged, since it may contain secrets */
    if (!url || !crm_twilio_signed(crm_request_header(call->request,
                                                      SIGNATURE),
                                   hook->account->token, url, hook->params,
                                   call->pool)) {
        return refused(call, apr_psprintf(call->pool, "CRM4104: a webhook of "
                       "Twilio account %s has an invalid signature: the "
                       "token differs, or the URL requested was not %s",
                       hook->account->sid, url
                       ? apr_pstrmemdup(call->pool, url, strcspn(url, "?"))
                       : "this server's"));
    }
    crm_access_proven(call);
    drop_nuls(hook);
    return NULL;
}

/* ---- responses ----------------------------------------------------------- */

void crm_twilio_answer(const crm_twilio_hook_t *hook, const char *text)
{
    crm_buf_t *body = &hook->call->response->body;

    hook->call->response->content_type = "text/xml; charset=utf-8";
    crm_buf_puts(body, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                 "<Response>");
    if (text) {
        char *clean = apr_pstrdup(hook->call->pool, text);

        for (char *c = clean; *c; c++) {
            /* XML 1.0 does not allow other control characters */
            if ((unsigned char)*c < ' ' && *c != '\n' && *c != '\t') {
                *c = ' ';
            }
        }
        crm_html_put(body, "<Message>", clean, "</Message>", NULL);
    }
    crm_buf_puts(body, "</Response>\n");
}

void crm_twilio_done(const crm_twilio_hook_t *hook)
{
    hook->call->response->status = 204;
}

crm_error_t *crm_twilio_take(crm_intake_result_t *result,
                             const crm_twilio_hook_t *hook,
                             const char *workspace_id,
                             crm_intake_event_t *event)
{
    event->binds[CRM_INTAKE_VERIFIED] = "t";
    return crm_intake_take(result, hook->call, workspace_id, event);
}

crm_error_t *crm_twilio_missing(const crm_twilio_hook_t *hook,
                                const char *name)
{
    return crm_error_createf(CRM_E_BAD_REQUEST, hook->call->pool,
                             "%s is missing", name);
}

crm_error_t *crm_twilio_update(const crm_twilio_hook_t *hook,
                               const char *workspace_id,
                               crm_intake_event_t *event)
{
    crm_intake_result_t result;
    crm_error_t *error = crm_twilio_take(&result, hook, workspace_id, event);

    return error && error->code == CRM_E_VALIDATION ? NULL : error;
}

/* ---- routes -------------------------------------------------------------- */

/* Serve CALL by its route's handler, if one of the accounts has signed it. */
static crm_error_t *serve(crm_call_t *call)
{
    const handler_t *handler = call->route->data;
    crm_twilio_hook_t hook = {call, NULL, NULL};

    CRM_ERR(authenticate(&hook));
    return handler->serve(&hook);
}

static const crm_access_t access_twilio = {"twilio", admit};
static const handler_t sms = {crm_twilio_sms};
static const handler_t status = {crm_twilio_status};
static const handler_t voice = {crm_twilio_voice};

#define ROUTE(name, handler) \
    {.method = "POST", .path = "/twilio/" name, .access = &access_twilio, \
     .max_body = CRM_ACCESS_BODY_MAX, .serve = serve, .data = &handler}

const crm_route_t crm_intake_twilio_routes[] = {
    ROUTE("sms", sms), ROUTE("status", status), ROUTE("voice", voice),
    {.method = NULL}
};
