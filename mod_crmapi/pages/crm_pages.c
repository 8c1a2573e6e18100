/* SPDX-License-Identifier: Apache-2.0 */
/* crm_pages.c: the mounts of pages opened by links in mails */
#include "crm_pages.h"

#include <string.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_form.h"
#include "crm_media.h"
#include "review.h"
#include "unsubscribe.h"

/* The largest form of a page whose token is valid. */
#define BODY_MAX (1024 * 1024)
#define FIELDS_MAX 1000

/* How many hyphens at the end of a token may be missing. */
#define HYPHENS_MAX 3

/* A kind of page: the tokens that open it and its handler. */
typedef struct crm_page_kind_t {
    crm_token_purpose_t purpose;
    crm_error_t *(*serve)(crm_page_t *page);
    int any_type;               /* a form may have any media type, or none */
} crm_page_kind_t;

/* Whether workspace $1 signed the token with the head $3 and the signature $4.
 * No row if the workspace is not $2 (id or slug; NULL: any). */
static const char signed_sql[] =
    "SELECT crmapi.token_signed($3::bytea, $4::bytea)"
    " FROM crmapi.workspace w WHERE w.id = $1::uuid AND ($2::text IS NULL"
    " OR w.id::text = lower($2::text) OR w.slug = $2::text)";

/* Set *IS_P to whether PAGE's token was signed by its workspace and this vhost
 * serves that workspace. */
static crm_error_t *authenticate(int *is_p, crm_page_t *page)
{
    const char *values[4];
    PGresult *result;

    values[0] = page->token.workspace_id;
    values[1] = page->call->service->settings.workspace;
    crm_token_parts(&values[2], &values[3], page->token_text, page->pool);
    CRM_ERR(crm_call_run(&result, page->call, signed_sql, 4, values));
    *is_p = PQntuples(result) == 1 && *PQgetvalue(result, 0, 0) == 't';
    return NULL;
}

/* Read the form of PAGE. */
static crm_error_t *read_form(crm_page_t *page, const crm_page_kind_t *kind)
{
    const char *type = crm_request_header(page->call->request,
                                          "Content-Type");
    apr_array_header_t *fields;
    const char *body;
    apr_size_t len;

    CRM_ERR(crm_call_body(&body, &len, page->call));
    if (!len || (kind->any_type
                 && !crm_media_is(type, "multipart/form-data"))) {
        CRM_ERR(crm_form_pairs(&fields, body, len, FIELDS_MAX, page->pool));
    }
    else {
        CRM_ERR(crm_call_form(&fields, FIELDS_MAX, page->call));
    }
    CRM_ERR(crm_form_once(fields, page->pool));
    page->fields = fields;
    return NULL;
}

/* Serve PAGE as KIND if its token is signed. The token is well-formed. */
static crm_error_t *serve_page(crm_page_t *page, const crm_page_kind_t *kind)
{
    int is_signed;

    CRM_ERR(authenticate(&is_signed, page));
    if (!is_signed) {
        crm_page_refuse(page->response, page->pool);
        return NULL;
    }
    crm_access_proven(page->call);
    page->response->workspace_id = apr_pstrdup(page->pool,
                                               page->token.workspace_id);
    if (crm_token_expired(&page->token, page->now)) {
        crm_page_say(page->response, 410, "This link has expired",
                     "Ask whoever sent it to you for a new one.", page->pool);
        return NULL;
    }
    if (page->posts) {
        CRM_ERR(read_form(page, kind));
    }
    return kind->serve(page);
}

/* Return the token in ARG, in POOL, and set *LEN_P to its length. What makes links of
 * text often takes along what follows it: a period, a bracket, a quotation mark. No
 * such character is in a token. Some of these programs leave hyphens at the end out:
 * they are put back. */
static const char *token_of(apr_size_t *len_p, const crm_arg_t *arg,
                            apr_pool_t *pool)
{
    apr_size_t len = 0;
    const char *text;

    while (len < arg->len && (apr_isalnum(arg->text[len])
                              || strchr("-_", arg->text[len]))) {
        len++;
    }
    text = apr_pstrmemdup(pool, arg->text, len);
    if (len < CRM_TOKEN_LEN && len + HYPHENS_MAX >= CRM_TOKEN_LEN) {
        text = apr_psprintf(pool, "%s%.*s", text, (int)(CRM_TOKEN_LEN - len),
                            "---");
        len = CRM_TOKEN_LEN;
    }
    *len_p = len;
    return text;
}

/* Serve CALL. Its route's data is a crm_page_kind_t. */
static crm_error_t *serve(crm_call_t *call)
{
    const crm_page_kind_t *kind = call->route->data;
    apr_size_t len;
    crm_page_t page;

    memset(&page, 0, sizeof(page));
    page.call = call;
    page.response = call->response;
    page.pool = call->pool;
    page.token_text = token_of(&len, &call->args[0], call->pool);
    page.now = apr_time_now();
    page.posts = !strcmp(call->request->method, "POST");
    if (!crm_token_read(&page.token, page.token_text, len)
        || page.token.purpose != kind->purpose) {
        crm_page_refuse(call->response, call->pool);
        return NULL;
    }
    return serve_page(&page, kind);
}

/* Show ERROR as a page. */
static void show_error(crm_call_t *call, const crm_error_t *error)
{
    crm_response_t *response = call->response;
    const char *text = error->message;

    if (error->code == CRM_E_NOT_FOUND) {
        crm_page_refuse(response, call->pool);
        return;
    }
    if (error->code == CRM_E_METHOD_NOT_ALLOWED) {
        text = "This page takes only GET, HEAD and POST.";
    }
    if (response->status >= 500) {
        crm_page_say(response, response->status, "Please try again",
                     "This does not work at the moment. Nothing has been "
                     "changed. Please try again in a minute.", call->pool);
    }
    else {
        crm_page_say(response, response->status, "This did not work", text,
                     call->pool);
    }
}

static const crm_access_t access_link = {"link", crm_access_admit_link};
static const crm_page_kind_t review = {CRM_TOKEN_REVIEW, crm_page_review, 0};
static const crm_page_kind_t unsubscribe = {CRM_TOKEN_UNSUBSCRIBE,
                                            crm_page_unsubscribe, 1};

#define ROUTE(verb, kind) \
    {.method = verb, .path = "/{token}", .access = &access_link, \
     .max_body = BODY_MAX, .serve = serve, .data = &kind}

crm_mount_t crm_review_mount = {
    .other = &crm_access_anybody, .slash = 1,
    .show_error = show_error,
};

crm_mount_t crm_unsubscribe_mount = {
    .other = &crm_access_anybody, .slash = 1,
    .show_error = show_error,
};

void crm_pages_init(apr_pool_t *pool)
{
    static const crm_route_t review_routes[] = {
        ROUTE("GET", review), ROUTE("POST", review), {.method = NULL}
    };
    static const crm_route_t unsubscribe_routes[] = {
        ROUTE("GET", unsubscribe), ROUTE("POST", unsubscribe), {.method = NULL}
    };
    const crm_route_t *tables[] = {review_routes, NULL};

    crm_review_mount.router = crm_router_create(tables, "review", NULL, pool);
    tables[0] = unsubscribe_routes;
    crm_unsubscribe_mount.router = crm_router_create(tables, "unsubscribe",
                                                     NULL, pool);
}
