/* SPDX-License-Identifier: Apache-2.0 */
/* crm_mcp.c: the mount of the Model Context Protocol (contract 21): admission, and
 * what a message must say about itself */
#include "crm_mcp.h"

#include <stdlib.h>
#include <string.h>

#include "mcp_header.h"
#include "mcp_methods.h"
#include "mcp_rights.h"

#define VERSION_HEADER "MCP-Protocol-Version"
#define METHOD_HEADER "Mcp-Method"
#define NAME_HEADER "Mcp-Name"

/* ---- admission ----------------------------------------------------------- */

/* Refuse CALL if a browser sends it from a site that is not allowed (MCP,
 * basic/transports/streamable-http, "Security & Endpoint"). */
static crm_error_t *check_origin(const crm_call_t *call)
{
    const char *origin = crm_request_header(call->request, "Origin");
    const apr_array_header_t *allowed = mcp_site(call)->origins;

    for (int i = 0; origin && allowed && i < allowed->nelts; i++) {
        if (!strcasecmp(APR_ARRAY_IDX(allowed, i, const char *), origin)) {
            return NULL;
        }
    }
    return !origin ? NULL
           : crm_error_create(CRM_E_FORBIDDEN, "The Origin is not allowed",
                              call->pool);
}

/* Read CALL's message into MCP. What is wrong is told when the call was
 * charged. */
static void read_message(mcp_t *mcp, crm_call_t *call)
{
    const char *data;
    apr_size_t len;

    mcp->failed = crm_call_is_json(call) ? crm_call_body(&data, &len, call)
                  : crm_error_create(CRM_E_UNSUPPORTED_MEDIA_TYPE, NULL,
                                     call->pool);
    if (!mcp->failed) {
        mcp->code = mcp_message_read(&mcp->message, &mcp->problem, data, len,
                                     call->pool);
    }
}

/* Return whether a call of METHOD for NAME (either may be NULL) changes
 * something. */
static int is_write(const char *method, const char *name)
{
    const mcp_tool_t *tool = method && name && !strcmp(method, "tools/call")
                             ? mcp_tool_find(name) : NULL;

    return tool && tool->write;
}

/* Return the class of CALL if MCP's headers tell it: so it can be refused before its
 * body is read. Headers that contradict the body are refused later. A body larger
 * than what a read needs is a write's. Return -1 if only the body tells it. */
static int class_of_headers(const mcp_t *mcp, crm_call_t *call)
{
    const char *length;

    if (mcp->version && mcp->method && !strcmp(mcp->version, mcp_versions[0])) {
        return is_write(mcp->method, mcp->name
                        ? mcp_header_text(mcp->name, call->pool) : NULL)
               ? CRM_LIMIT_WRITE : CRM_LIMIT_READ;
    }
    length = crm_request_header(call->request, "Content-Length");
    return !length || strlen(length) > 9 || atoi(length) > CRM_ACCESS_BODY_MAX
           ? CRM_LIMIT_WRITE : -1;
}

/* Charge CALL, which is authenticated (contract 21.2), and read its message into
 * MCP. */
static crm_error_t *charge(mcp_t *mcp, crm_call_t *call)
{
    int class = class_of_headers(mcp, call);

    if (class >= 0) {
        CRM_ERR(crm_access_charge(call, (crm_limit_class_t)class));
        read_message(mcp, call);
        return NULL;
    }
    read_message(mcp, call);
    return crm_access_charge(call, is_write(mcp->message.method,
                                            mcp->message.name)
                             ? CRM_LIMIT_WRITE : CRM_LIMIT_READ);
}

static crm_error_t *admit(crm_call_t *call)
{
    mcp_t *mcp = mcp_of(call);

    CRM_ERR(check_origin(call));
    CRM_ERR(crm_access_authenticate(call));
    if (!call->route || mcp) {  /* no POST, or the call is served again */
        return crm_access_charge(call, CRM_LIMIT_READ);
    }
    call->state = mcp = apr_pcalloc(call->pool, sizeof(*mcp));
    mcp->version = crm_request_header(call->request, VERSION_HEADER);
    mcp->method = crm_request_header(call->request, METHOD_HEADER);
    mcp->name = crm_request_header(call->request, NAME_HEADER);
    return charge(mcp, call);
}

/* ---- what a message says about itself ------------------------------------ */

/* Refuse CALL for what its message says: HTTP's STATUS, JSON-RPC's CODE and
 * MESSAGE. Now and then the database is asked first whether the key is still
 * alive (contract 2.3). */
static crm_error_t *refuse(crm_call_t *call, int status, int code,
                           const char *message, const char *data)
{
    crm_error_t *refusal = crm_error_create(CRM_E_BAD_REQUEST, message,
                                            call->pool);
    crm_error_t *error = call->confirm ? crm_access_confirm(call, refusal)
                         : refusal;

    if (error != refusal || call->renewed) {
        return error;
    }
    mcp_answer_error(call, status, code, message, data);
    return NULL;
}

/* Return whether VERSION is served. */
static int is_version(const char *version)
{
    for (int i = 0; mcp_versions[i]; i++) {
        if (!strcmp(mcp_versions[i], version)) {
            return 1;
        }
    }
    return 0;
}

/* Return, in CALL's pool, the data of an error about a version: those that are
 * served and the one that was REQUESTED, if not NULL. */
static const char *version_data(const crm_call_t *call, const char *requested)
{
    crm_buf_t data;

    crm_buf_init(&data, 256, call->pool);
    crm_buf_puts(&data, "{\"supported\":[");
    for (int i = 0; mcp_versions[i]; i++) {
        crm_buf_printf(&data, "%s\"%s\"", i ? "," : "", mcp_versions[i]);
    }
    crm_buf_puts(&data, "]");
    if (requested) {
        crm_buf_puts(&data, ",\"requested\":");
        crm_buf_json_text(&data, requested);
    }
    crm_buf_puts(&data, "}");
    crm_buf_putc(&data, '\0');
    return data.data;
}

/* Refuse CALL, which is of an unknown VERSION. */
static crm_error_t *refuse_version(crm_call_t *call, const char *version)
{
    return refuse(call, 400, MCP_BAD_VERSION, "Unsupported protocol version",
                  version_data(call, version));
}

/* Return what is wrong with the headers of CALL, a modern request of METHOD (NULL:
 * an unknown one), or NULL (MCP 2026-07-28, "Server Validation"). */
static const char *header_problem(const crm_call_t *call,
                                  const mcp_method_t *method)
{
    const mcp_t *mcp = mcp_of(call);
    const mcp_message_t *message = &mcp->message;
    const char *problem = mcp_header_check(VERSION_HEADER, mcp->version,
                                           message->version, 0, call->pool);

    if (!problem) {
        problem = mcp_header_check(METHOD_HEADER, mcp->method,
                                   message->method, 0, call->pool);
    }
    if (!problem && method && method->subject != MCP_OF_NOTHING) {
        problem = mcp_header_check(NAME_HEADER, mcp->name,
                                   method->subject == MCP_OF_URI
                                   ? message->uri : message->name, 1,
                                   call->pool);
    }
    return problem;
}

/* Serve CALL, a request of METHOD (NULL: an unknown one) that says its version in
 * _meta, or should. */
static crm_error_t *serve_modern(crm_call_t *call, const mcp_method_t *method)
{
    const mcp_message_t *message = &mcp_of(call)->message;
    const char *problem;

    if (!message->version) {
        return refuse(call, 400, MCP_INVALID_PARAMS, "_meta must have"
                      " io.modelcontextprotocol/protocolVersion", NULL);
    }
    problem = header_problem(call, method);
    if (problem) {
        return refuse(call, 400, MCP_HEADER_MISMATCH, problem, NULL);
    }
    if (strcmp(message->version, mcp_versions[0])) {
        return refuse_version(call, message->version);
    }
    if (crm_slice_type(message->capabilities) != '{') {
        return refuse(call, 400, MCP_INVALID_PARAMS, "_meta must have"
                      " io.modelcontextprotocol/clientCapabilities", NULL);
    }
    if (!method || !method->modern) {
        return refuse(call, 404, MCP_NO_METHOD, "Method not found", NULL);
    }
    return method->serve(call);
}

/* Serve CALL, a request of METHOD (NULL: an unknown one) of a client that begins
 * with "initialize" and then sends VERSION in a header. */
static crm_error_t *serve_earlier(crm_call_t *call, const mcp_method_t *method)
{
    const char *version = mcp_of(call)->version;
    int begins = method && !strcmp(method->name, "initialize");

    if (!version && !begins) {
        return refuse(call, 400, MCP_HEADER_MISMATCH,
                      "Header mismatch: " VERSION_HEADER " is missing",
                      version_data(call, NULL));
    }
    if (!begins && !is_version(version)) {
        return refuse_version(call, version);
    }
    if (!method || !method->earlier) {
        return refuse(call, 200, MCP_NO_METHOD, "Method not found", NULL);
    }
    return method->serve(call);
}

/* Serve CALL, a notification: nothing follows from any. */
static crm_error_t *serve_notification(crm_call_t *call)
{
    mcp_rights_t rights;

    CRM_ERR(mcp_rights_read(&rights, call));
    call->response->status = 202;
    return NULL;
}

static crm_error_t *serve(crm_call_t *call)
{
    mcp_t *mcp = mcp_of(call);
    const mcp_method_t *method;

    if (mcp->failed) {
        return call->confirm ? crm_access_confirm(call, mcp->failed)
               : mcp->failed;
    }
    if (mcp->code) {
        return refuse(call, 400, mcp->code, mcp->problem, NULL);
    }
    if (!mcp->message.id.text) {
        return serve_notification(call);
    }
    method = mcp_method_find(mcp->message.method);
    mcp->modern = mcp->message.version
                  || (mcp->version && !strcmp(mcp->version, mcp_versions[0]));
    return mcp->modern ? serve_modern(call, method)
           : serve_earlier(call, method);
}

/* ---- the mount ----------------------------------------------------------- */

static const crm_access_t access_mcp = {"API key", admit};

static const crm_route_t routes[] = {
    {.method = "POST", .path = "/", .access = &access_mcp, .serve = serve},
    {.method = NULL}
};

crm_mount_t crm_mcp_mount = {
    .other = &access_mcp, .rest = 1, .show_error = mcp_show_error,
};

crm_error_t *crm_mcp_init(apr_pool_t *pool)
{
    static const crm_route_t *const tables[] = {routes, NULL};

    CRM_ERR(mcp_tools_init(pool));
    crm_mcp_mount.router = crm_router_create(tables, "mcp", "OPTIONS", pool);
    return NULL;
}
