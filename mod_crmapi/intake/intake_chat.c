/* SPDX-License-Identifier: Apache-2.0 */
/* intake_chat.c: the web chat: script, access, start */
#include "intake_chat.h"

#include <string.h>
#include <strings.h>

#include "chat_script.h"
#include "crm_envelope.h"
#include "crm_etag.h"
#include "crm_intake_site.h"
#include "crm_json.h"
#include "crm_type.h"
#include "crm_type_list.h"
#include "intake_chat_file.h"
#include "intake_chat_load.h"
#include "intake_chat_parts.h"
#include "intake_chat_poll.h"
#include "intake_chat_post.h"

#define DAY APR_INT64_C(86400)
#define TOKEN_DAYS 365
#define PREFLIGHT_SECONDS "7200"

static const char sign_sql[] =
    "SELECT '\\x' || encode(crmapi.token_sign_page($1::bytea), 'hex')";

/* The agent $1, if its workspace is $2 (id or slug; NULL: any) and not held, and
 * whether a workspace has signed the token with the parts $3 and $4. Of
 * several with this id it is the one that the database knows longest, so that no
 * import takes it from another workspace (contract 14.2). */
static const char agent_sql[] =
    "SELECT a.workspace_id, a.id, a.name, a.chat_greeting, a.agent_color,"
    " a.chat_avatar_image_url, a.chat_origins,"
    " crmapi.token_signed($3::bytea, $4::bytea)"
    " FROM crmapi.agent a"
    " JOIN crmapi.workspace w ON w.id = a.workspace_id"
    " WHERE a.id = $1::uuid AND a.public AND a.enabled"
    " AND " CRM_INTAKE_SERVES("w.id")
    " ORDER BY a.known_at, w.created_at, w.id LIMIT 1";

/* ---- the script ---------------------------------------------------------- */

/* Return whether the If-None-Match of CALL's request matches the script (RFC 9110,
 * 13.1.2). One that cannot be read is ignored. */
static int is_known(const crm_call_t *call)
{
    const char *header = crm_request_header(call->request, "If-None-Match");
    crm_etags_t known;

    return header && !crm_etags_read(&known, header, call->pool)
           && crm_etags_have(&known, crm_chat_script_etag, 1);
}

static crm_error_t *serve_script(crm_call_t *call)
{
    crm_response_t *response = call->response;

    call->response->content_type = "text/javascript; charset=utf-8";
    apr_table_setn(response->headers, "ETag", crm_chat_script_etag);
    apr_table_setn(response->headers, "Cache-Control",
                   "public, max-age=3600");
    apr_table_setn(response->headers, "Cross-Origin-Resource-Policy",
                   "cross-origin");
    apr_table_setn(response->headers, "Access-Control-Allow-Origin", "*");
    if (is_known(call)) {
        response->status = 304;
        return NULL;
    }
    crm_buf_add(&response->body, (const char *)crm_chat_script,
                crm_chat_script_len);
    return NULL;
}

/* ---- access -------------------------------------------------------------- */

/* Set the CORS headers of the response if the agent of CHAT allows the
 * request's origin. ORIGINS is the agent's list, a text[]. Errors:
 * CRM_E_FORBIDDEN. */
static crm_error_t *check_origin(crm_chat_t *chat, const char *origins)
{
    const crm_call_t *call = chat->call;
    const crm_request_t *request = call->request;
    const char *origin = crm_request_header(request, "Origin");
    apr_table_t *headers = call->response->headers;

    apr_table_setn(headers, "Vary", "Origin");
    if (!crm_chat_origin_ok(origin,
                            crm_type_array_strings(origins, call->pool),
                            request->scheme,
                            crm_request_header(request, "Host"),
                            crm_intake_site(call)->public_url)) {
        return crm_error_create(CRM_E_FORBIDDEN, "Pages of this site may not "
                                "use this chat", call->pool);
    }
    if (origin) {
        apr_table_setn(headers, "Access-Control-Allow-Origin", origin);
        apr_table_setn(headers, "Access-Control-Expose-Headers",
                       "Retry-After");
    }
    return NULL;
}

/* Set CHAT's token to the one in its request, if it is well-formed. IS_START:
 * it is in the body. */
static void read_token(crm_chat_t *chat, int is_start)
{
    const char *text = crm_request_header(chat->call->request,
                                          "Authorization");

    if (is_start) {
        text = crm_json_text(json_object_object_get(chat->body, "visitor"));
    }
    else if (text) {
        text = strncasecmp(text, "Bearer ", 7) ? NULL : text + 7;
    }
    if (text && crm_token_read(&chat->token, text, strlen(text))) {
        chat->token_text = text;
    }
}

/* Load the agent ID into *CHAT and check whether the page may chat with it.
 * Errors: CRM_E_NOT_FOUND, CRM_E_FORBIDDEN. */
static crm_error_t *load_agent(crm_chat_t *chat, const char *id)
{
    crm_call_t *call = chat->call;
    const char *values[4] = {id, call->service->settings.workspace}, *is;
    PGresult *result;

    if (chat->token_text) {
        crm_token_parts(&values[2], &values[3], chat->token_text, call->pool);
    }
    CRM_ERR(crm_call_run(&result, call, agent_sql, 4, values));
    if (PQntuples(result) != 1) {
        return crm_error_create(CRM_E_NOT_FOUND, "There is no such chat",
                                call->pool);
    }
    chat->workspace_id = crm_db_value(result, 0, 0);
    chat->bot_id = crm_db_value(result, 0, 1);
    chat->name = crm_db_value(result, 0, 2);
    chat->greeting = crm_db_value(result, 0, 3);
    chat->color = crm_db_value(result, 0, 4);
    chat->avatar = crm_db_value(result, 0, 5);
    is = crm_db_value(result, 0, 7);
    chat->is_signed = is && *is == 't';
    call->response->workspace_id = chat->workspace_id;
    return check_origin(chat, PQgetvalue(result, 0, 6));
}

/* Set CHAT's visitor to that of its token, if the workspace has signed it and
 * it is valid for DAYS more days. Return 0 otherwise. */
static int find_visitor(crm_chat_t *chat, int days)
{
    apr_time_t then = apr_time_now() + apr_time_from_sec(days * DAY);

    if (!chat->is_signed
        || !crm_chat_token_ok(&chat->token, chat->workspace_id, chat->bot_id,
                              then)) {
        return 0;
    }
    memcpy(chat->visitor, chat->token.subject_id, sizeof(chat->visitor));
    return 1;
}

/* Set CHAT's visitor to that of the token. Errors: CRM_E_UNAUTHORIZED. */
static crm_error_t *authenticate(crm_chat_t *chat)
{
    if (!find_visitor(chat, 0)) {
        return crm_error_create(CRM_E_UNAUTHORIZED, "Visitor token is missing "
                                "or invalid", chat->call->pool);
    }
    return NULL;
}

/* ---- start --------------------------------------------------------------- */

/* Fail if CHAT's body has other members than the visitor's token. */
static crm_error_t *check_start(const crm_chat_t *chat)
{
    crm_error_t *error = NULL;

    json_object_object_foreach(chat->body, name, member) {
        if (strcmp(name, "visitor")) {
            crm_error_detail(&error, name, "is not a known field",
                             chat->call->pool);
        }
        else if (member && !json_object_is_type(member, json_type_string)) {
            crm_error_detail(&error, name, "must be a string",
                             chat->call->pool);
        }
    }
    return error;
}

/* Set *TEXT_P to a token for CHAT's visitor: the one in the body; a new one for
 * the same visitor after half of its lifetime; or one for a new visitor if
 * there is none or it is invalid. */
static crm_error_t *make_token(const char **text_p, crm_chat_t *chat)
{
    apr_int64_t expires = apr_time_sec(apr_time_now()) + TOKEN_DAYS * DAY;
    const char *head;
    PGresult *result;

    *text_p = chat->token_text;
    if (find_visitor(chat, TOKEN_DAYS / 2)) {
        return NULL;
    }
    if (!find_visitor(chat, 0)) {
        crm_uuid_v7(chat->visitor);
    }
    head = crm_token_visitor(chat->workspace_id, chat->visitor, chat->bot_id,
                             expires, chat->call->pool);
    CRM_ERR(crm_call_run(&result, chat->call, sign_sql, 1, &head));
    *text_p = crm_token_text(head, crm_db_value(result, 0, 0),
                             chat->call->pool);
    return NULL;
}

/* Write CHAT's member "agent" to BODY. */
static void write_agent(crm_buf_t *body, const crm_chat_t *chat)
{
    crm_buf_puts(body, "\"agent\":{");
    crm_chat_write_text(body, "name", chat->name);
    crm_chat_write_text(body, "greeting", chat->greeting);
    crm_chat_write_text(body, "color", chat->color);
    crm_chat_write_text(body, "avatar", chat->avatar);
    crm_buf_putc(body, '}');
}

/* Serve POST chat/{bot_id}/start. Nothing is stored, so that a visitor who
 * writes nothing does not appear in the inbox. */
static crm_error_t *start(crm_chat_t *chat)
{
    crm_call_t *call = chat->call;
    crm_buf_t *body = &call->response->body;
    crm_chat_cursor_t cursor;
    crm_chat_conversations_t conversations;
    const char *token;
    PGresult *messages;

    CRM_ERR(check_start(chat));
    CRM_ERR(make_token(&token, chat));
    CRM_ERR(crm_chat_conversations(&conversations, chat));
    CRM_ERR(crm_chat_latest(&messages, &cursor, chat, &conversations));
    crm_buf_puts(body, "{\"data\":{");
    crm_chat_write_text(body, "visitor", token);
    crm_buf_putc(body, ',');
    write_agent(body, chat);
    crm_buf_putc(body, ',');
    crm_chat_write_messages(body, messages, &cursor);
    crm_buf_puts(body, "}}");
    return NULL;
}

/* ---- requests ------------------------------------------------------------ */

/* Read CHAT's body, a JSON object. The media type must be JSON's: pages of any
 * site may send others without a preflight request. */
static crm_error_t *read_body(crm_chat_t *chat)
{
    CRM_ERR(crm_call_json(&chat->body, chat->call));
    return json_object_is_type(chat->body, json_type_object) ? NULL
           : crm_error_create(CRM_E_VALIDATION, "The body must be an object",
                              chat->call->pool);
}

/* Initialise CHAT for CALL: its body if it is a POST, its visitor's token (in
 * the body if IS_START), its agent, and whether the page may chat. Pages that
 * may not chat see no other error. Errors: CRM_E_NOT_FOUND, CRM_E_FORBIDDEN,
 * those of the body. */
static crm_error_t *begin(crm_chat_t *chat, crm_call_t *call, int is_start)
{
    char id[CRM_UUID_LEN + 1];
    crm_error_t *error = NULL;

    memset(chat, 0, sizeof(*chat));
    chat->call = call;
    if (!crm_uuid_parse(id, call->args[0].text, call->args[0].len)) {
        return crm_error_create(CRM_E_NOT_FOUND, NULL, call->pool);
    }
    if (!strcmp(call->request->method, "POST")) {
        error = read_body(chat);
    }
    read_token(chat, is_start);
    CRM_ERR(load_agent(chat, id));
    return error;
}

/* Respond to a CORS preflight request. */
static crm_error_t *serve_preflight(crm_call_t *call)
{
    apr_table_t *headers = call->response->headers;
    crm_chat_t chat;

    CRM_ERR(begin(&chat, call, 0));
    call->response->status = 204;
    apr_table_setn(headers, "Access-Control-Allow-Methods",
                   call->route->data);
    apr_table_setn(headers, "Access-Control-Allow-Headers",
                   "authorization, content-type");
    apr_table_setn(headers, "Access-Control-Max-Age", PREFLIGHT_SECONDS);
    return NULL;
}

static crm_error_t *serve_start(crm_call_t *call)
{
    crm_chat_t chat;

    CRM_ERR(begin(&chat, call, 1));
    return start(&chat);
}

static crm_error_t *serve_poll(crm_call_t *call)
{
    crm_chat_t chat;

    CRM_ERR(begin(&chat, call, 0));
    CRM_ERR(authenticate(&chat));
    return crm_chat_poll(&chat);
}

static crm_error_t *serve_post(crm_call_t *call)
{
    crm_chat_t chat;

    CRM_ERR(begin(&chat, call, 0));
    CRM_ERR(authenticate(&chat));
    return crm_chat_post(&chat);
}

/* Serve GET chat/{bot_id}/attachments/{id}. */
static crm_error_t *serve_attachment(crm_call_t *call)
{
    crm_chat_t chat;

    CRM_ERR(begin(&chat, call, 0));
    CRM_ERR(authenticate(&chat));
    return crm_chat_file(&chat, &call->args[1]);
}

/* Show ERROR. If the agent is not known yet, pages of any origin may read it,
 * because their script needs Retry-After. */
static void show_error(crm_call_t *call, const crm_error_t *error)
{
    apr_table_t *headers = call->response->headers;

    if (error->code == CRM_E_RATE_LIMITED) {
        apr_table_setn(headers, "Access-Control-Allow-Origin", "*");
        apr_table_setn(headers, "Access-Control-Expose-Headers",
                       "Retry-After");
    }
    crm_envelope_error(&call->response->body, error);
}

static const crm_access_t access_chat = {"chat", crm_access_admit_address};
static const crm_access_t access_poll = {"poll", crm_access_admit_poll};
static const crm_access_t access_preflight = {"preflight",
                                              crm_access_admit_poll};

#define START "/chat/{bot_id}/start"
#define MESSAGES "/chat/{bot_id}/messages"
#define ATTACHMENT "/chat/{bot_id}/attachments/{attachment_id}"
#define POST_ROUTE(at, handler) \
    {.method = "POST", .path = at, .access = &access_chat, \
     .max_body = CRM_ACCESS_BODY_MAX, .serve = handler, \
     .show_error = show_error}
#define PREFLIGHT_ROUTE(at, methods) \
    {.method = "OPTIONS", .path = at, .access = &access_preflight, \
     .serve = serve_preflight, .show_error = show_error, .data = methods}

const crm_route_t crm_intake_chat_routes[] = {
    {.method = "GET", .path = "/chat/widget.js",
     .access = &crm_access_anybody, .serve = serve_script},
    POST_ROUTE(START, serve_start),
    PREFLIGHT_ROUTE(START, "POST"),
    {.method = "GET", .path = MESSAGES, .access = &access_poll,
     .serve = serve_poll, .show_error = show_error},
    POST_ROUTE(MESSAGES, serve_post),
    PREFLIGHT_ROUTE(MESSAGES, "GET, POST"),
    {.method = "GET", .path = ATTACHMENT, .access = &access_chat,
     .serve = serve_attachment, .show_error = show_error},
    PREFLIGHT_ROUTE(ATTACHMENT, "GET"),
    {.method = NULL}
};
