/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_run.c: running an operation of the API inside a call of a tool */
#include "mcp_run.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_envelope.h"
#include "crm_rest.h"

/* ---- the operation ------------------------------------------------------- */

/* Return the request to OPERATION, in place of CALL's. What the API would ignore
 * is refused, because a model would not see that it was. */
static const crm_request_t *request_of(const crm_call_t *call,
                                       mcp_operation_t *operation)
{
    crm_request_t *request = apr_pmemdup(call->pool, call->request,
                                         sizeof(*request));
    apr_table_t *headers = apr_table_make(call->pool, 2);

    apr_table_setn(headers, "Prefer", "handling=strict");
    if (operation->key) {
        apr_table_setn(headers, "Idempotency-Key", operation->key);
    }
    request->method = operation->route->method;
    request->path = operation->path;
    request->query = operation->query.data;
    request->headers = headers;
    request->expects_continue = 0;
    return request;
}

/* Remove the headers that speak of the API's own response. */
static void drop_headers(crm_call_t *call)
{
    static const char *const names[] = {"Link", "Location"};

    for (size_t i = 0; i < CRM_NELTS(names); i++) {
        apr_table_unset(call->response->headers, names[i]);
    }
}

crm_error_t *mcp_run(crm_call_t *call, mcp_operation_t *operation)
{
    crm_call_t outer = *call;
    crm_error_t *error;

    call->request = request_of(call, operation);
    call->route = operation->route;
    memcpy(call->args, operation->args, sizeof(call->args));
    call->body = operation->body.len ? operation->body.data : "";
    call->body_len = operation->body.len;
    call->body_checked = 1;
    call->inner = 1;
    error = crm_rest_serve(call);
    call->inner = outer.inner;
    call->request = outer.request;
    call->route = outer.route;
    memcpy(call->args, outer.args, sizeof(call->args));
    call->body = outer.body;
    call->body_len = outer.body_len;
    call->body_checked = outer.body_checked;
    call->state = outer.state;
    drop_headers(call);
    return error;
}

/* ---- its result ---------------------------------------------------------- */

/* Return whether a model can act on ERROR: it is the result of a call. Others are
 * answered with their status: keys, budgets, and failures of the server. */
static int is_result(const crm_error_t *error)
{
    switch (error->code) {
    case CRM_E_UNAUTHORIZED:
    case CRM_E_RATE_LIMITED:
    case CRM_E_REQUEST_TIMEOUT:
    case CRM_E_INTERNAL:
    case CRM_E_UNAVAILABLE:
        return 0;
    default:
        return 1;
    }
}

/* Begin the result of CALL in OUT, with the LEN bytes at DATA as text. */
static void begin_content(crm_buf_t *out, const crm_call_t *call,
                          const char *data, apr_size_t len)
{
    crm_buf_init(out, 2 * len + len / 2 + 512, call->pool);
    mcp_begin_result(out, mcp_of(call));
    crm_buf_puts(out, "\"content\":[{\"type\":\"text\",\"text\":");
    crm_buf_json_string(out, data, len);
    crm_buf_puts(out, "}]");
}

void mcp_answer_data(crm_call_t *call, const char *data, apr_size_t len)
{
    crm_buf_t out;

    begin_content(&out, call, data, len);
    crm_buf_puts(&out, ",\"structuredContent\":");
    crm_buf_add(&out, data, len);
    mcp_end_result(&out);
    call->response->body = out;
    call->response->status = 200;
}

/* An argument's name in a model's language. */
static void rename_details(const crm_error_t *error)
{
    for (int i = 0; error->details && i < error->details->nelts; i++) {
        crm_detail_t *detail = &APR_ARRAY_IDX(error->details, i,
                                              crm_detail_t);

        if (!strcmp(detail->field, "Idempotency-Key")) {
            detail->field = "idempotency_key";
        }
    }
}

crm_error_t *mcp_answer_failure(crm_call_t *call, crm_error_t *error)
{
    crm_buf_t text, out;

    if (!is_result(error)) {
        return error;
    }
    rename_details(error);
    crm_buf_init(&text, 512, call->pool);
    crm_envelope_error(&text, error);
    begin_content(&out, call, text.data, text.len);
    crm_buf_puts(&out, ",\"isError\":true");
    mcp_end_result(&out);
    call->response->body = out;
    call->response->status = 200;
    call->response->log = error->log;
    call->response->level = CRM_LOG_INFO;
    if (error->retry_after) {
        apr_table_setn(call->response->headers, "Retry-After",
                       apr_itoa(call->pool, error->retry_after));
    }
    return NULL;
}
