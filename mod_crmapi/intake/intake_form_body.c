/* SPDX-License-Identifier: Apache-2.0 */
/* intake_form_body.c: what was sent to a form, as names and texts */
#include "crm_webform.h"

#include <string.h>
#include <strings.h>

#include "apr_strings.h"

#include "crm_form.h"
#include "crm_json.h"
#include "crm_query.h"
#include "crm_text.h"

#define BOUNDARY_MAX 70         /* RFC 2046, 5.1.1 */

/* Bytes that are looked at. */
typedef struct span_t {
    const char *at;
    apr_size_t len;
} span_t;

static crm_error_t *malformed(apr_pool_t *pool)
{
    return crm_error_create(CRM_E_BAD_REQUEST, "The form is malformed", pool);
}

/* Add NAME with VALUE (LEN bytes) to ANSWERS. */
static void add(apr_array_header_t *answers, const char *name,
                const char *value, apr_size_t len)
{
    crm_query_param_t *answer = apr_array_push(answers);

    memset(answer, 0, sizeof(*answer));
    answer->name = name;
    answer->value = value;
    answer->value_len = len;
}

/* ---- multipart/form-data (RFC 7578) -------------------------------------- */

/* Return where TEXT is in SPAN, NULL if nowhere. */
static const char *find(span_t span, const char *text)
{
    return memmem(span.at, span.len, text, strlen(text));
}

/* Return the parameter NAME of the header HEADER, a Content-Disposition, in
 * POOL; NULL if it is not there. */
static const char *parameter(const char *header, const char *name,
                             apr_pool_t *pool)
{
    size_t len = strlen(name);

    while (*header) {
        const char *end;

        header += strcspn(header, ";");
        header += strspn(header, "; \t");
        if (!strncasecmp(header, name, len) && header[len] == '='
            && header[len + 1] == '"') {
            header += len + 2;
            end = strchr(header, '"');
            return end ? apr_pstrmemdup(pool, header, (apr_size_t)
                                        (end - header)) : NULL;
        }
        /* what is quoted has no parameters */
        end = header + strcspn(header, ";\"");
        header = *end == '"' && strchr(end + 1, '"') ? strchr(end + 1, '"') + 1
                                                     : end;
    }
    return NULL;
}

/* Return the value of Content-Disposition among HEADERS (lines with CR LF), in
 * POOL; NULL if it is no form field's. */
static const char *disposition(const char *headers, apr_pool_t *pool)
{
    static const char name[] = "Content-Disposition:";
    const char *at = headers;

    while (at && strncasecmp(at, name, sizeof(name) - 1)) {
        at = strstr(at, "\r\n");
        at = at ? at + 2 : NULL;
    }
    if (!at) {
        return NULL;
    }
    at += sizeof(name) - 1;
    at += strspn(at, " \t");
    return strncasecmp(at, "form-data", 9) ? NULL
           : apr_pstrmemdup(pool, at, strcspn(at, "\r"));
}

/* Add to ANSWERS what PART has, headers and all; a file goes to *ERROR_P, if
 * it is not one that nobody has chosen. Return 0 if it is malformed. */
static int take_part(apr_array_header_t *answers, crm_error_t **error_p,
                     span_t part, apr_pool_t *pool)
{
    const char *blank = find(part, "\r\n\r\n"), *header, *name, *file, *value;
    apr_size_t len;

    if (!blank || !crm_text_valid_utf8(part.at, (apr_size_t)
                                       (blank - part.at))) {
        return 0;
    }
    header = disposition(apr_pstrmemdup(pool, part.at, (apr_size_t)
                                        (blank - part.at)), pool);
    name = header ? parameter(header, "name", pool) : NULL;
    if (!name) {
        return 0;
    }
    file = parameter(header, "filename", pool);
    value = blank + 4;
    len = (apr_size_t)(part.at + part.len - value);
    if (file || strstr(header, "filename*")) {
        if (!file || *file || len) {
            crm_error_detail(error_p, name, "must not be a file", pool);
        }
        return 1;
    }
    if (memchr(value, '\0', len) || !crm_text_valid_utf8(value, len)) {
        return 0;
    }
    add(answers, name, apr_pstrmemdup(pool, value, len), len);
    return 1;
}

/* Return the boundary in TYPE in POOL, NULL if there is no good one. */
static const char *boundary_of(const char *type, apr_pool_t *pool)
{
    const char *at = strchr(type, ';');
    size_t len;

    while (at) {
        at += strspn(at, "; \t");
        if (!strncasecmp(at, "boundary=", 9)) {
            at += 9;
            at += *at == '"';
            len = strcspn(at, "\"; \t");
            return len && len <= BOUNDARY_MAX ? apr_pstrmemdup(pool, at, len)
                                              : NULL;
        }
        at = strchr(at, ';');
    }
    return NULL;
}

/* Set ANSWERS from REST, a body of TYPE. */
static crm_error_t *read_parts(apr_array_header_t *answers, span_t rest,
                               const char *type, apr_pool_t *pool)
{
    const char *boundary = boundary_of(type, pool);
    const char *line = apr_pstrcat(pool, "\r\n--", boundary ? boundary : "",
                                   NULL);
    apr_size_t len = strlen(line);
    crm_error_t *error = NULL;
    int count = 0;

    if (!boundary || rest.len < len
        || memcmp(rest.at, line + 2, len - 2)) {
        return malformed(pool);
    }
    rest.at += len - 2;
    rest.len -= len - 2;
    while (rest.len < 2 || memcmp(rest.at, "--", 2)) {
        const char *end;
        span_t part;

        if (rest.len < 2 || memcmp(rest.at, "\r\n", 2)) {
            return malformed(pool);
        }
        rest.at += 2;
        rest.len -= 2;
        end = find(rest, line);
        part.at = rest.at;
        part.len = end ? (apr_size_t)(end - rest.at) : 0;
        if (!end || ++count > CRM_FORM_FIELDS
            || !take_part(answers, &error, part, pool)) {
            return malformed(pool);
        }
        rest.at = end + len;
        rest.len -= part.len + len;
    }
    return error;
}

/* ---- application/x-www-form-urlencoded ----------------------------------- */

static crm_error_t *read_pairs(apr_array_header_t **answers_p,
                               const char *body, apr_size_t len,
                               apr_pool_t *pool)
{
    if (memchr(body, '\0', len)) {
        return malformed(pool);
    }
    crm_query_parse(answers_p, apr_pstrmemdup(pool, body, len), pool);
    if ((*answers_p)->nelts > CRM_FORM_FIELDS) {
        return malformed(pool);
    }
    for (int i = 0; i < (*answers_p)->nelts; i++) {
        if (APR_ARRAY_IDX(*answers_p, i, crm_query_param_t).bad) {
            return malformed(pool);
        }
    }
    return NULL;
}

/* ---- JSON ---------------------------------------------------------------- */

/* Add VALUE, which is none of several, to ANSWERS; return the rule that it
 * breaks, or NULL. */
static const char *take_value(apr_array_header_t *answers, const char *name,
                              json_object *value, apr_pool_t *pool)
{
    const char *text;
    apr_size_t len;

    if (!value) {
        return NULL;
    }
    if (json_object_is_type(value, json_type_object)
        || json_object_is_type(value, json_type_array)) {
        return "must be a string, a number, true or false, or an array of "
               "these";
    }
    text = json_object_get_string(value);
    len = json_object_is_type(value, json_type_string)
          ? (apr_size_t)json_object_get_string_len(value) : strlen(text);
    if (memchr(text, '\0', len)) {
        return "must not contain U+0000";
    }
    add(answers, name, apr_pstrmemdup(pool, text, len), len);
    return NULL;
}

/* Set ANSWERS from BODY, a JSON object. */
static crm_error_t *read_json(apr_array_header_t *answers, span_t body,
                              apr_pool_t *pool)
{
    crm_error_t *error = NULL;
    json_object *all;

    CRM_ERR(crm_json_body(&all, body.at, body.len, pool));
    if (!json_object_is_type(all, json_type_object)) {
        return crm_error_create(CRM_E_VALIDATION, "The body must be an "
                                "object", pool);
    }
    json_object_object_foreach(all, key, value) {
        int many = json_object_is_type(value, json_type_array);
        size_t count = many ? json_object_array_length(value) : 1;
        const char *name = apr_pstrdup(pool, key), *wrong = NULL;

        for (size_t i = 0; i < count && !wrong; i++) {
            wrong = answers->nelts == CRM_FORM_FIELDS
                ? "has too many answers before it"
                : take_value(answers, name, many
                             ? json_object_array_get_idx(value, i) : value,
                             pool);
        }
        if (wrong) {
            crm_error_detail(&error, name, wrong, pool);
        }
    }
    return error;
}

/* ---- all of them --------------------------------------------------------- */

/* Return whether CONTENT_TYPE (may be NULL) is the media type NAME. */
static int is_type(const char *content_type, const char *name)
{
    size_t len = strlen(name);

    return content_type && !strncasecmp(content_type, name, len)
           && strchr("; \t", content_type[len]);
}

int crm_webform_is_json(const crm_intake_call_t *call)
{
    const char *type = call->request->content_type;

    return type && crm_json_is_type(type);
}

crm_error_t *crm_webform_read(apr_array_header_t **answers_p,
                              const char *body, apr_size_t len,
                              const char *content_type,
                              apr_pool_t *result_pool)
{
    span_t span;

    span.at = body;
    span.len = len;
    *answers_p = apr_array_make(result_pool, 16, sizeof(crm_query_param_t));
    if (is_type(content_type, "application/x-www-form-urlencoded")) {
        return read_pairs(answers_p, body, len, result_pool);
    }
    if (is_type(content_type, "multipart/form-data")) {
        return read_parts(*answers_p, span, content_type, result_pool);
    }
    if (content_type && crm_json_is_type(content_type)) {
        return read_json(*answers_p, span, result_pool);
    }
    return crm_error_create(CRM_E_UNSUPPORTED_MEDIA_TYPE, "The form must be "
                            "sent as application/x-www-form-urlencoded, "
                            "multipart/form-data or application/json",
                            result_pool);
}
