/* SPDX-License-Identifier: Apache-2.0 */
/* crm_form.c: parsing the body of an HTML form */
#include "crm_form.h"

#include <stdlib.h>
#include <string.h>

#include "apr_strings.h"

#include "crm_query.h"
#include "crm_text.h"

#define BOUNDARY_MAX 70         /* RFC 2046, 5.1.1 */

static crm_error_t *malformed(apr_pool_t *pool)
{
    return crm_error_create(CRM_E_BAD_REQUEST, "The form is malformed", pool);
}

/* Return the rest of CONTENT_TYPE behind the media type NAME, or NULL if it is
 * another type. */
static const char *after_type(const char *content_type, const char *name)
{
    size_t len = strlen(name);

    return content_type && !strncasecmp(content_type, name, len)
           && strchr("; \t", content_type[len]) ? content_type + len : NULL;
}

/* Return the boundary in PARAMETERS, the rest of a Content-Type, in POOL.
 * Return NULL if it is missing or invalid. */
static const char *find_boundary(const char *parameters, apr_pool_t *pool)
{
    const char *at = parameters;
    size_t len;

    while (*at == ';' || *at == ' ' || *at == '\t') {
        at++;
    }
    if (strncasecmp(at, "boundary=", 9)) {
        return NULL;
    }
    at += 9;
    at += *at == '"';
    len = strcspn(at, "\"; \t");
    return len && len <= BOUNDARY_MAX ? apr_pstrmemdup(pool, at, len) : NULL;
}

/* Return the field's name in HEADERS, the headers of a part, in POOL. Return
 * NULL if there is none or the part is a file. */
static const char *part_name(const char *headers, apr_pool_t *pool)
{
    static const char start[] = "form-data; name=\"";
    static const char field[] = "Content-Disposition:";
    const char *at = headers, *end;

    while (at && strncasecmp(at, field, sizeof(field) - 1)) {
        at = strstr(at, "\r\n");
        at = at ? at + 2 : NULL;
    }
    if (!at) {
        return NULL;
    }
    at += sizeof(field) - 1;
    at += strspn(at, " \t");
    if (strncasecmp(at, start, sizeof(start) - 1)) {
        return NULL;
    }
    at += sizeof(start) - 1;
    end = strchr(at, '"');
    return end && (end[1] == '\r' || !end[1])
           ? apr_pstrmemdup(pool, at, (apr_size_t)(end - at)) : NULL;
}

/* Add the part between AT and END to FIELDS. Return 0 if it is not a text
 * field. */
static int take_part(apr_array_header_t *fields, const char *at,
                     const char *end, apr_pool_t *pool)
{
    char *part = apr_pstrmemdup(pool, at, (apr_size_t)(end - at));
    char *blank = strstr(part, "\r\n\r\n");
    crm_query_param_t *param;
    const char *name;

    if (!blank) {
        return 0;
    }
    *blank = '\0';
    name = part_name(part, pool);
    if (!name) {
        return 0;
    }
    param = apr_array_push(fields);
    memset(param, 0, sizeof(*param));
    param->name = name;
    param->value = blank + 4;
    param->value_len = strlen(param->value);
    return 1;
}

/* Add the fields of BODY, a multipart/form-data with PARAMETERS, to FIELDS. */
static crm_error_t *parse_parts(apr_array_header_t *fields, const char *body,
                                const char *parameters, apr_pool_t *pool)
{
    const char *boundary = find_boundary(parameters, pool);
    const char *line = apr_pstrcat(pool, "\r\n--", boundary ? boundary : "",
                                   NULL);
    size_t len = strlen(line);
    const char *at = body;

    if (!boundary || strncmp(body, line + 2, len - 2)) {
        return malformed(pool);
    }
    at += len - 2;
    while (strncmp(at, "--", 2)) {
        const char *end = strncmp(at, "\r\n", 2) ? NULL
                          : strstr(at + 2, line);

        if (!end || fields->nelts == CRM_FORM_FIELDS
            || !take_part(fields, at + 2, end, pool)) {
            return malformed(pool);
        }
        at = end + len;
    }
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    const crm_query_param_t *const *one = a, *const *two = b;

    return strcmp((*one)->name, (*two)->name);
}

/* Return an error if a field is malformed or a name occurs twice. */
static crm_error_t *check(const apr_array_header_t *fields, apr_pool_t *pool)
{
    const crm_query_param_t **sorted;

    if (fields->nelts > CRM_FORM_FIELDS) {
        return malformed(pool);
    }
    sorted = apr_palloc(pool, sizeof(*sorted) * (size_t)(fields->nelts + 1));
    for (int i = 0; i < fields->nelts; i++) {
        sorted[i] = &APR_ARRAY_IDX(fields, i, crm_query_param_t);
        if (sorted[i]->bad) {
            return malformed(pool);
        }
    }
    qsort(sorted, (size_t)fields->nelts, sizeof(*sorted), by_name);
    for (int i = 1; i < fields->nelts; i++) {
        if (!strcmp(sorted[i - 1]->name, sorted[i]->name)) {
            return malformed(pool);
        }
    }
    return NULL;
}

crm_error_t *crm_form_parse(apr_array_header_t **fields_p, const char *body,
                            apr_size_t len, const char *content_type,
                            apr_pool_t *result_pool)
{
    const char *rest = after_type(content_type, "multipart/form-data");
    const char *text;

    if (memchr(body, '\0', len) || !crm_text_valid_utf8(body, len)) {
        return malformed(result_pool);
    }
    text = apr_pstrmemdup(result_pool, body, len);
    if (rest) {
        *fields_p = apr_array_make(result_pool, 4, sizeof(crm_query_param_t));
        CRM_ERR(parse_parts(*fields_p, text, rest, result_pool));
    }
    else if (after_type(content_type, "application/x-www-form-urlencoded")) {
        crm_query_parse(fields_p, text, result_pool);
    }
    else {
        return crm_error_create(CRM_E_UNSUPPORTED_MEDIA_TYPE, NULL,
                                result_pool);
    }
    return check(*fields_p, result_pool);
}

const char *crm_form_get(const apr_array_header_t *fields, const char *name)
{
    for (int i = 0; i < fields->nelts; i++) {
        const crm_query_param_t *field =
            &APR_ARRAY_IDX(fields, i, crm_query_param_t);

        if (!strcmp(field->name, name)) {
            return field->value;
        }
    }
    return NULL;
}

const char *crm_form_lines(const char *text, apr_pool_t *result_pool)
{
    char *copy = apr_pstrdup(result_pool, text), *out = copy;

    for (const char *c = text; *c; c++) {
        if (*c != '\r') {
            *out++ = *c;
        }
        else if (c[1] != '\n') {
            *out++ = '\n';
        }
    }
    *out = '\0';
    return copy;
}
