/* SPDX-License-Identifier: Apache-2.0 */
/* crm_form.c: parsing the body of an HTML form */
#include "crm_form.h"

#include <stdlib.h>
#include <string.h>

#include "apr_strings.h"

#include "crm_media.h"
#include "crm_query.h"
#include "crm_text.h"

#define BOUNDARY_MAX 70         /* RFC 2046, 5.1.1 */

/* A part of a body. */
typedef struct span_t {
    const char *at;
    apr_size_t len;
} span_t;

static crm_error_t *malformed(apr_pool_t *pool)
{
    return crm_error_create(CRM_E_BAD_REQUEST, "The form is malformed", pool);
}

void crm_form_add(apr_array_header_t *fields, const char *name,
                  const char *value, apr_size_t len)
{
    crm_query_param_t *field = apr_array_push(fields);

    memset(field, 0, sizeof(*field));
    field->name = name;
    field->value = value;
    field->value_len = len;
}

/* ---- multipart/form-data (RFC 7578) -------------------------------------- */

/* Return the first occurrence of TEXT in SPAN, or NULL. */
static const char *find(span_t span, const char *text)
{
    return memmem(span.at, span.len, text, strlen(text));
}

/* Return the parameter NAME of HEADER, the value of Content-Disposition, a token or
 * in quotes (RFC 2183, 2), in POOL; NULL if it has none. */
static const char *parameter(const char *header, const char *name,
                             apr_pool_t *pool)
{
    size_t len = strlen(name);

    while (*header) {
        const char *end;

        header += strcspn(header, ";");
        header += strspn(header, "; \t");
        if (!strncasecmp(header, name, len) && header[len] == '=') {
            header += len + 1;
            end = *header == '"' ? strchr(++header, '"')
                  : header + strcspn(header, "; \t\"");
            return end ? apr_pstrmemdup(pool, header, (apr_size_t)
                                        (end - header)) : NULL;
        }
        /* a quoted value may contain semicolons */
        end = header + strcspn(header, ";\"");
        header = *end == '"' && strchr(end + 1, '"') ? strchr(end + 1, '"') + 1
                                                     : end;
    }
    return NULL;
}

/* Return NAME, that of a field, as its page has it, in POOL: browsers write %22 for a
 * quotation mark (HTML, 4.10.21.8). */
static const char *with_marks(const char *name, apr_pool_t *pool)
{
    char *made = apr_pstrdup(pool, name), *out = made;

    for (; *name; name++) {
        *out = *name;
        if (!strncmp(name, "%22", 3)) {
            *out = '"';
            name += 2;
        }
        out++;
    }
    *out = '\0';
    return made;
}

/* Return the LEN bytes of HEADERS, in POOL, each as one line (RFC 5322, 2.2.3). */
static const char *unfold(const char *headers, apr_size_t len, apr_pool_t *pool)
{
    char *made = apr_pstrmemdup(pool, headers, len);

    for (char *at = made; (at = strstr(at, "\r\n")); at += 2) {
        if (at[2] == ' ' || at[2] == '\t') {
            memcpy(at, "  ", 2);
        }
    }
    return made;
}

/* Return the value of Content-Disposition in HEADERS (lines that end with CR
 * LF), in POOL; NULL if there is none or it is not "form-data". */
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

/* Add the field in PART, its headers and its value, to FIELDS. A file is an
 * error, added to *ERROR_P, unless its name and content are empty: browsers
 * send that if no file was chosen. Return 0 if PART is malformed. */
static int take_part(apr_array_header_t *fields, crm_error_t **error_p,
                     span_t part, apr_pool_t *pool)
{
    const char *blank = find(part, "\r\n\r\n"), *header, *name, *file, *value;
    apr_size_t len;

    if (!blank || !crm_text_valid_utf8(part.at, (apr_size_t)
                                       (blank - part.at))) {
        return 0;
    }
    header = disposition(unfold(part.at, (apr_size_t)(blank - part.at), pool),
                         pool);
    name = header ? parameter(header, "name", pool) : NULL;
    if (!name) {
        return 0;
    }
    name = with_marks(name, pool);
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
    crm_form_add(fields, name, apr_pstrmemdup(pool, value, len), len);
    return 1;
}

/* Return the boundary in the media type TYPE, in POOL; NULL if there is none or
 * it is invalid. */
static const char *boundary_of(const char *type, apr_pool_t *pool)
{
    const char *at = strchr(type, ';');
    size_t len;

    while (at) {
        at += strspn(at, "; \t");
        if (!strncasecmp(at, "boundary=", 9)) {
            at += 9;
            len = *at == '"' ? strcspn(++at, "\"") : strcspn(at, "; \t");
            return len && len <= BOUNDARY_MAX ? apr_pstrmemdup(pool, at, len)
                                              : NULL;
        }
        at = strchr(at, ';');
    }
    return NULL;
}

/* Take the first LEN bytes from SPAN. */
static void skip(span_t *span, apr_size_t len)
{
    span->at += len;
    span->len -= len;
}

/* Take from REST what is before the first part, and its delimiter. LINE is CR LF
 * and the delimiter. Before it may be lines that mean nothing: some programs begin
 * with an empty one (RFC 2046, 5.1.1: preamble). Return 0 if there is none. */
static int skip_preamble(span_t *rest, const char *line)
{
    apr_size_t len = strlen(line);
    const char *at;

    if (rest->len >= len - 2 && !memcmp(rest->at, line + 2, len - 2)) {
        skip(rest, len - 2);
        return 1;
    }
    at = find(*rest, line);
    if (at) {
        skip(rest, (apr_size_t)(at - rest->at) + len);
    }
    return at != NULL;
}

/* Take the rest of a delimiter's line from REST. It may be padded with blanks
 * (RFC 2046, 5.1.1: transport-padding). Return 0 if there is something else. */
static int skip_line_end(span_t *rest)
{
    while (rest->len && (*rest->at == ' ' || *rest->at == '\t')) {
        skip(rest, 1);
    }
    if (rest->len < 2 || memcmp(rest->at, "\r\n", 2)) {
        return 0;
    }
    skip(rest, 2);
    return 1;
}

/* Add the fields in REST, a body of the media type TYPE, to FIELDS. More than
 * MAX parts are an error. */
static crm_error_t *read_parts(apr_array_header_t *fields, span_t rest,
                               const char *type, int max, apr_pool_t *pool)
{
    const char *boundary = boundary_of(type, pool);
    const char *line = apr_pstrcat(pool, "\r\n--", boundary ? boundary : "",
                                   NULL);
    apr_size_t len = strlen(line);
    crm_error_t *error = NULL;
    int count = 0;

    if (!boundary || !skip_preamble(&rest, line)) {
        return malformed(pool);
    }
    while (rest.len < 2 || memcmp(rest.at, "--", 2)) {
        const char *end;
        span_t part;

        if (!skip_line_end(&rest)) {
            return malformed(pool);
        }
        end = find(rest, line);
        part.at = rest.at;
        part.len = end ? (apr_size_t)(end - rest.at) : 0;
        if (!end || ++count > max
            || !take_part(fields, &error, part, pool)) {
            return malformed(pool);
        }
        skip(&rest, part.len + len);
    }
    return error;
}

/* ---- application/x-www-form-urlencoded ----------------------------------- */

/* Return whether the LEN bytes at BODY have at most MAX pairs. They are counted
 * before memory is allocated for them. */
static int has_at_most(const char *body, apr_size_t len, int max)
{
    int count = 0;

    for (apr_size_t i = 0; i < len && count <= max; i++) {
        count += body[i] != '&' && (!i || body[i - 1] == '&');
    }
    return count <= max;
}

crm_error_t *crm_form_pairs(apr_array_header_t **fields_p, const char *body,
                            apr_size_t len, int max, apr_pool_t *result_pool)
{
    if (memchr(body, '\0', len) || !has_at_most(body, len, max)) {
        return malformed(result_pool);
    }
    crm_query_parse(fields_p, apr_pstrmemdup(result_pool, body, len),
                    result_pool);
    for (int i = 0; i < (*fields_p)->nelts; i++) {
        const char *bad = APR_ARRAY_IDX(*fields_p, i, crm_query_param_t).bad;

        if (bad && bad != crm_query_nul) {
            return malformed(result_pool);
        }
    }
    return NULL;
}

/* The same for values without U+0000. */
static crm_error_t *read_pairs(apr_array_header_t **fields_p, span_t body,
                               int max, apr_pool_t *pool)
{
    CRM_ERR(crm_form_pairs(fields_p, body.at, body.len, max, pool));
    for (int i = 0; i < (*fields_p)->nelts; i++) {
        if (APR_ARRAY_IDX(*fields_p, i, crm_query_param_t).bad) {
            return malformed(pool);
        }
    }
    return NULL;
}

/* ---- both formats -------------------------------------------------------- */

crm_error_t *crm_form_parse(apr_array_header_t **fields_p, const char *body,
                            apr_size_t len, const char *content_type, int max,
                            apr_pool_t *result_pool)
{
    span_t span = {body, len};

    if (crm_media_is(content_type, "application/x-www-form-urlencoded")) {
        return read_pairs(fields_p, span, max, result_pool);
    }
    if (crm_media_is(content_type, "multipart/form-data")) {
        *fields_p = apr_array_make(result_pool, 16,
                                   sizeof(crm_query_param_t));
        return read_parts(*fields_p, span, content_type, max, result_pool);
    }
    return crm_error_create(CRM_E_UNSUPPORTED_MEDIA_TYPE, "The body must be"
                            " application/x-www-form-urlencoded or"
                            " multipart/form-data", result_pool);
}

static int by_name(const void *a, const void *b)
{
    const crm_query_param_t *const *one = a, *const *two = b;

    return strcmp((*one)->name, (*two)->name);
}

crm_error_t *crm_form_once(const apr_array_header_t *fields, apr_pool_t *pool)
{
    const crm_query_param_t **sorted =
        apr_palloc(pool, sizeof(*sorted) * (size_t)(fields->nelts + 1));

    for (int i = 0; i < fields->nelts; i++) {
        sorted[i] = &APR_ARRAY_IDX(fields, i, crm_query_param_t);
    }
    qsort(sorted, (size_t)fields->nelts, sizeof(*sorted), by_name);
    for (int i = 1; i < fields->nelts; i++) {
        if (!strcmp(sorted[i - 1]->name, sorted[i]->name)) {
            return malformed(pool);
        }
    }
    return NULL;
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
