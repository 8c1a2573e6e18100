/* SPDX-License-Identifier: Apache-2.0 */
/* crm_error.c: creating errors; the table of codes */
#include "crm_error.h"

#include <string.h>

#include "apr_strings.h"

static const crm_code_info_t code_infos[CRM_E_COUNT] = {
    [CRM_E_BAD_REQUEST] = {400, "bad_request", "The request is malformed"},
    [CRM_E_UNAUTHORIZED] = {401, "unauthorized",
                            "API key is missing or invalid"},
    [CRM_E_FORBIDDEN] = {403, "forbidden", "This is not allowed"},
    [CRM_E_NOT_FOUND] = {404, "not_found", "Not found"},
    [CRM_E_METHOD_NOT_ALLOWED] = {405, "method_not_allowed",
                                  "This method is not allowed here"},
    [CRM_E_REQUEST_TIMEOUT] = {408, "bad_request",
                               "The request took too long to arrive"},
    [CRM_E_CONFLICT] = {409, "conflict",
                        "The current state does not allow this"},
    [CRM_E_GONE] = {410, "gone", "This is no longer available"},
    [CRM_E_PRECONDITION_FAILED] = {412, "precondition_failed",
                                   "The resource does not match If-Match"},
    [CRM_E_PAYLOAD_TOO_LARGE] = {413, "payload_too_large",
                                 "The request body is too large"},
    [CRM_E_URI_TOO_LONG] = {414, "uri_too_long", "The URL is too long"},
    [CRM_E_UNSUPPORTED_MEDIA_TYPE] = {415, "unsupported_media_type",
                                      "The body must be application/json"
                                      " in UTF-8"},
    [CRM_E_RANGE] = {416, "bad_request", "There is nothing in this range"},
    [CRM_E_VALIDATION] = {422, "validation_error", "Validation failed"},
    [CRM_E_HEADER_TOO_LARGE] = {431, "bad_request",
                                "A header of the request is too large"},
    [CRM_E_RATE_LIMITED] = {429, "rate_limited", "Rate limit exceeded"},
    [CRM_E_INTERNAL] = {500, "internal_error", "Internal error"},
    [CRM_E_UNAVAILABLE] = {503, "service_unavailable",
                           "The service is not available at the moment"},
};

const crm_code_info_t *crm_code_info(crm_code_t code)
{
    return &code_infos[code < CRM_E_COUNT ? code : CRM_E_INTERNAL];
}

crm_code_t crm_code_from_status(int status)
{
    for (int code = 0; code < CRM_E_COUNT; code++) {
        if (code_infos[code].status == status) {
            return (crm_code_t)code;
        }
    }
    return status >= 400 && status < 500 ? CRM_E_BAD_REQUEST : CRM_E_INTERNAL;
}

crm_error_t *crm_error_create(crm_code_t code, const char *message,
                              apr_pool_t *result_pool)
{
    crm_error_t *error = apr_pcalloc(result_pool, sizeof(*error));

    error->code = code;
    error->message = message ? message : crm_code_info(code)->message;
    error->retry_after = code == CRM_E_UNAVAILABLE ? 1 : 0;
    return error;
}

crm_error_t *crm_error_createf(crm_code_t code, apr_pool_t *result_pool,
                               const char *format, ...)
{
    crm_error_t *error = crm_error_create(code, NULL, result_pool);
    va_list args;

    va_start(args, format);
    error->message = apr_pvsprintf(result_pool, format, args);
    va_end(args);
    return error;
}

crm_error_t *crm_error_logf(crm_code_t code, apr_pool_t *result_pool,
                            const char *format, ...)
{
    crm_error_t *error = crm_error_create(code, NULL, result_pool);
    va_list args;

    va_start(args, format);
    error->log = apr_pvsprintf(result_pool, format, args);
    va_end(args);
    return error;
}

void crm_error_detail(crm_error_t **error_p, const char *field,
                      const char *message, apr_pool_t *result_pool)
{
    crm_detail_t *detail;

    if (!*error_p) {
        *error_p = crm_error_create(CRM_E_VALIDATION, NULL, result_pool);
    }
    if (!(*error_p)->details) {
        (*error_p)->details = apr_array_make(result_pool, 4,
                                             sizeof(crm_detail_t));
    }
    detail = apr_array_push((*error_p)->details);
    detail->field = apr_pstrdup(result_pool, field);
    detail->message = message;
}

int crm_error_is(const crm_error_t *error, const char *state)
{
    return error && error->sqlstate && !strcmp(error->sqlstate, state);
}

int crm_error_refuses(const crm_error_t *error)
{
    return error && error->sqlstate && (!strncmp(error->sqlstate, "22", 2)
                                        || !strncmp(error->sqlstate, "23", 2));
}
