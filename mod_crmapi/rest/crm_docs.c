/* SPDX-License-Identifier: Apache-2.0 */
/* crm_docs.c: the OpenAPI document for people and for language models */
#include "crm_docs.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_docs_schema.h"
#include "crm_html.h"
#include "crm_openapi.h"
#include "crm_openapi_merge.h"

/* Contrasts are above 4.5:1 in both colour schemes. */
static const char style[] =
    ":root{color-scheme:light dark;--ink:#1c2330;--dim:#566072;--paper:#fff;"
    "--ground:#f3f5f8;--line:#d5dae2;--main:#1a56c4;--get:#17642f;"
    "--post:#1a56c4;--patch:#8a4b00;--delete:#b3261e}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e7eaf0;--dim:#a5afc0;"
    "--paper:#1d2330;--ground:#12161f;--line:#384152;--main:#8ab4ff;"
    "--get:#8fdba5;--post:#8ab4ff;--patch:#ffbd6b;--delete:#ff9f97}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0 auto;max-width:76rem;padding:1rem;background:var(--ground);"
    "color:var(--ink);font:1rem/1.5 system-ui,-apple-system,\"Segoe UI\","
    "Roboto,\"Liberation Sans\",sans-serif;overflow-wrap:anywhere}\n"
    "h1{font-size:1.6rem;line-height:1.25;margin:.5rem 0}\n"
    "h2{font-size:1.25rem;margin:2rem 0 .25rem}\n"
    "h3{font-size:1rem;margin:1rem 0 .25rem}\n"
    "p{margin:.4rem 0}\n"
    "a{color:var(--main)}\n"
    "code,pre{font:.9em/1.5 ui-monospace,\"Liberation Mono\",monospace}\n"
    "pre{background:var(--ground);border:1px solid var(--line);"
    "border-radius:.4rem;padding:.6rem;overflow-x:auto}\n"
    "nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1rem;list-style:none;"
    "margin:0;padding:0}\n"
    "details{background:var(--paper);border:1px solid var(--line);"
    "border-radius:.5rem;margin:.5rem 0;padding:0 .9rem}\n"
    "details[open]{padding-bottom:.9rem}\n"
    "summary{cursor:pointer;padding:.55rem 0}\n"
    "summary span{color:var(--dim);display:block}\n"
    "summary b{display:inline-block;min-width:4.3rem}\n"
    ".get{color:var(--get)}.post{color:var(--post)}"
    ".patch{color:var(--patch)}.delete{color:var(--delete)}\n"
    "[id]{scroll-margin-top:5rem}\n"
    "@media(max-width:30rem){details [id]{scroll-margin-top:10rem}}\n"
    "dl{margin:.25rem 0}\n"
    "dt{border-top:1px solid var(--line);padding-top:.3rem}\n"
    "dd{margin:0 0 .3rem;color:var(--dim)}\n"
    "dd dl{margin-left:1rem}\n"
    ":focus-visible{outline:3px solid var(--main);outline-offset:2px}\n"
    "@media(min-width:64rem){body{display:grid;gap:0 2rem;"
    "grid-template-columns:13rem minmax(0,1fr)}header{grid-column:1/3}"
    "nav{position:sticky;top:0;align-self:start;padding-top:2rem}"
    "nav ul{display:block}dl{display:grid;"
    "grid-template-columns:minmax(0,2fr) minmax(0,3fr)}"
    "dd{border-top:1px solid var(--line);padding-top:.3rem;margin-left:1rem}"
    "dd dl{display:block;margin-left:0}dd dd{border:0;margin-left:1rem}}\n";

static const char *policy;
static crm_buf_t page, llms;

static json_object *document;

/* Return what OBJECT refers to, or OBJECT. */
static json_object *resolve(json_object *object, const char *kind)
{
    const char *name = crm_docs_ref(object);

    return name ? crm_docs_at(crm_docs_at(crm_docs_at(document, "components"),
                                          kind), name) : object;
}

/* A browser opens a <details> if a link leads to an element in it, so that what
 * has an id is behind the summary. */

/* ---- operations ---------------------------------------------------------- */

/* A function that adds OPERATION, METHOD on PATH, to BUF. */
typedef void add_operation_t(crm_buf_t *buf, const char *method,
                             const char *path, json_object *operation);

/* Call ADD for the operations of ITEM, the member PATH of the document's paths or
 * webhooks, that have TAG, but not for HEAD, which is there wherever GET is. */
static void each_of_path(crm_buf_t *buf, const char *tag, const char *path,
                         json_object *item, add_operation_t *add)
{
    json_object_object_foreach(item, method, operation) {
        json_object *tags = crm_docs_at(operation, "tags");

        if (strcmp(method, "head")
            && !strcmp(tag, json_object_get_string(
                           json_object_array_get_idx(tags, 0)))) {
            add(buf, method, path, operation);
        }
    }
}

/* Call ADD for each operation and webhook of the document that has TAG. */
static void each_operation(crm_buf_t *buf, const char *tag,
                           add_operation_t *add)
{
    json_object *paths = crm_docs_at(document, "paths");
    json_object *webhooks = crm_docs_at(document, "webhooks");

    json_object_object_foreach(paths, path, item) {
        each_of_path(buf, tag, path, item, add);
    }
    json_object_object_foreach(webhooks, event, webhook) {
        each_of_path(buf, tag, event, webhook, add);
    }
}

/* Add the parameters of OPERATION: those of its own, and links to the others. */
static void add_parameters(crm_buf_t *buf, json_object *operation)
{
    json_object *list = crm_docs_at(operation, "parameters");
    size_t n = list ? json_object_array_length(list) : 0;
    const char *before = "<dl>";

    for (size_t i = 0; i < n; i++) {
        json_object *one = json_object_array_get_idx(list, i);

        if (!crm_docs_ref(one)) {
            crm_buf_puts(buf, before);
            crm_docs_field(buf, crm_docs_text(one, "name"),
                           crm_docs_at(one, "schema"),
                           crm_docs_text(one, "description"),
                           crm_docs_at(one, "required") != NULL);
            before = "";
        }
    }
    crm_buf_puts(buf, *before ? "" : "</dl>");
    before = "<p>Parameters: ";
    for (size_t i = 0; i < n; i++) {
        const char *name = crm_docs_ref(json_object_array_get_idx(list, i));

        if (name) {
            crm_html_put(buf, before, "", "<a href=\"#p-", name, "\">",
                         crm_docs_text(resolve(json_object_array_get_idx(
                                                   list, i), "parameters"),
                                       "name"), "</a>", NULL);
            before = ", ";
        }
    }
    crm_buf_puts(buf, *before == ',' ? "</p>" : "");
}

/* Return the first media type of CONTENT (NULL: there is none), or NULL. */
static const char *first_type(json_object *content)
{
    if (!content) {
        return NULL;
    }
    json_object_object_foreach(content, type, media) {
        (void)media;
        return type;
    }
    return NULL;
}

/* Add the example of OPERATION, VERB on PATH: a call of curl. Who has only a
 * keyboard can scroll it. */
static void add_example(crm_buf_t *buf, const char *verb, const char *path,
                        json_object *operation)
{
    json_object *content = crm_docs_at(crm_docs_at(operation, "requestBody"),
                                       "content");
    const char *type = first_type(content);
    json_object *example = crm_docs_at(crm_docs_at(content, type ? type : ""),
                                       "example");

    crm_html_put(buf, "<pre tabindex=0>curl ", !strcmp(verb, "GET") ? ""
                 : apr_pstrcat(buf->pool, "-X ", verb, " ", NULL),
                 "\"$CRMAPI_URL", path,
                 "\" -H \"Authorization: Bearer $CRMAPI_KEY\"", NULL);
    if (example) {
        crm_html_put(buf, " \\\n    -H 'Content-Type: ", type, "' -d '",
                     json_object_to_json_string_ext(
                         example, JSON_C_TO_STRING_PRETTY
                         | JSON_C_TO_STRING_NOSLASHESCAPE), "'", NULL);
    }
    crm_buf_puts(buf, "</pre>");
}

/* Add the body that OPERATION takes. */
static void add_body(crm_buf_t *buf, json_object *operation)
{
    json_object *content = crm_docs_at(crm_docs_at(operation, "requestBody"),
                                       "content");
    const char *before = "<p>Body: ";

    if (!content) {
        return;
    }
    json_object_object_foreach(content, type, media) {
        crm_html_put(buf, before, type, " ", NULL);
        crm_docs_type(buf, crm_docs_at(media, "schema"));
        before = ", or ";
    }
    crm_buf_puts(buf, "</p>");
}

/* Add the response STATUS of an operation: what its JSON has, or a link. */
static void add_response(crm_buf_t *buf, const char *status,
                         json_object *response)
{
    const char *ref = crm_docs_ref(response);
    json_object *content = crm_docs_at(response, "content");
    const char *type = first_type(content);
    json_object *schema = crm_docs_at(crm_docs_at(content, type ? type : ""),
                                      "schema");

    if (ref) {
        crm_html_put(buf, " <a href=\"#r-", ref, "\">", status, "</a>", NULL);
        return;
    }
    crm_html_put(buf, "<b>", status, "</b> ",
                 crm_docs_text(response, "description"), " ", type, NULL);
    crm_docs_fields(buf, schema);
}

static void add_responses(crm_buf_t *buf, json_object *operation)
{
    json_object *responses = crm_docs_at(operation, "responses");

    crm_buf_puts(buf, "<h3>Responses</h3><div>");
    json_object_object_foreach(responses, status, response) {
        add_response(buf, status, response);
    }
    crm_buf_puts(buf, "</div>");
}

static void add_operation(crm_buf_t *buf, const char *method,
                          const char *path, json_object *operation)
{
    char *verb = apr_pstrdup(buf->pool, method);

    for (char *c = verb; *c; c++) {
        *c &= (char)~0x20;
    }
    crm_html_put(buf, "<details><summary><b class=\"", method, "\">", verb,
                 "</b> <code>", path, "</code><span>",
                 crm_docs_text(operation, "summary"),
                 crm_docs_at(operation, "deprecated")
                 ? " (deprecated)</span></summary><div id=\""
                 : "</span></summary><div id=\"",
                 crm_docs_text(operation, "operationId"), "\"><p>", NULL);
    crm_html_text(buf, crm_docs_text(operation, "description"));
    crm_buf_puts(buf, "</p>");
    add_parameters(buf, operation);
    add_body(buf, operation);
    if (*path == '/') {
        add_example(buf, verb, path, operation);
    }
    add_responses(buf, operation);
    crm_buf_puts(buf, "</div></details>\n");
}

/* ---- the page ------------------------------------------------------------ */

/* Return component KIND of the document. */
static json_object *components(const char *kind)
{
    return crm_docs_at(crm_docs_at(document, "components"), kind);
}

static void add_nav(crm_buf_t *buf, json_object *tags)
{
    crm_buf_puts(buf, "<nav aria-label=\"Parts\"><ul>");
    for (size_t i = 0; i < json_object_array_length(tags); i++) {
        const char *name = crm_docs_text(json_object_array_get_idx(tags, i),
                                         "name");

        crm_html_put(buf, "<li><a href=\"#t-", name, "\">", name,
                     "</a></li>", NULL);
    }
    crm_buf_puts(buf, "<li><a href=\"#parameters\">Parameters</a></li>"
                 "<li><a href=\"#responses\">Responses</a></li>"
                 "<li><a href=\"#schemas\">Schemas</a></li></ul></nav>\n");
}

static void add_tags(crm_buf_t *buf, json_object *tags)
{
    for (size_t i = 0; i < json_object_array_length(tags); i++) {
        json_object *tag = json_object_array_get_idx(tags, i);
        const char *name = crm_docs_text(tag, "name");

        crm_html_put(buf, "<h2 id=\"t-", name, "\">", name, "</h2><p>",
                     crm_docs_text(tag, "description"), "</p>\n", NULL);
        each_operation(buf, name, add_operation);
    }
}

static void add_components(crm_buf_t *buf)
{
    json_object *parameters = components("parameters");
    json_object *responses = components("responses");
    json_object *schemas = components("schemas");

    crm_buf_puts(buf, "<h2 id=\"parameters\">Parameters</h2><dl>");
    json_object_object_foreach(parameters, parameter, one) {
        crm_html_put(buf, "<div id=\"p-", parameter, "\"></div>", NULL);
        crm_docs_field(buf, crm_docs_text(one, "name"),
                       crm_docs_at(one, "schema"),
                       crm_docs_text(one, "description"), 0);
    }
    crm_buf_puts(buf, "</dl>\n<h2 id=\"responses\">Responses</h2><dl>");
    json_object_object_foreach(responses, status, response) {
        crm_html_put(buf, "<dt id=\"r-", status, "\">", status, "</dt><dd>",
                     crm_docs_text(response, "description"), "</dd>", NULL);
    }
    crm_buf_puts(buf, "</dl>\n<h2 id=\"schemas\">Schemas</h2>\n");
    json_object_object_foreach(schemas, name, schema) {
        crm_html_put(buf, "<details><summary><code>", name, "</code><span>",
                     NULL);
        crm_html_text(buf, crm_docs_text(schema, "description"));
        crm_html_put(buf, "</span></summary><div id=\"", name, "\">", NULL);
        if (crm_docs_at(schema, "properties")) {
            crm_docs_fields(buf, schema);
        }
        else {
            crm_docs_type(buf, schema);
        }
        crm_buf_puts(buf, "</div></details>\n");
    }
}

static void make_page(crm_buf_t *buf)
{
    json_object *info = crm_docs_at(document, "info");
    json_object *tags = crm_docs_at(document, "tags");
    const char *title = crm_docs_text(info, "title");

    crm_html_put(buf, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
                 "<meta charset=\"utf-8\">\n"
                 "<meta name=\"viewport\" content=\"width=device-width, "
                 "initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n"
                 "<title>", title, "</title>\n<style>", NULL);
    crm_buf_add(buf, style, sizeof(style) - 1);
    crm_html_put(buf, "</style>\n</head>\n<body>\n<header>\n<h1>", title, " ",
                 crm_docs_text(info, "version"), "</h1>\n<p>",
                 crm_docs_text(info, "description"), "</p>\n<p>",
                 crm_docs_text(crm_docs_at(components("securitySchemes"),
                                           "key"), "description"),
                 "</p>\n<p><a href=\"openapi.json\">openapi.json</a>, "
                 "<a href=\"llms.txt\">llms.txt</a></p>\n</header>\n", NULL);
    add_nav(buf, tags);
    crm_buf_puts(buf, "<main>\n");
    add_tags(buf, tags);
    add_components(buf);
    crm_buf_puts(buf, "</main>\n</body>\n</html>\n");
}

/* ---- llms.txt ------------------------------------------------------------ */

static void add_line(crm_buf_t *buf, const char *method, const char *path,
                     json_object *operation)
{
    if (*path == '/') {
        crm_buf_puts(buf, "- [");
        for (; *method; method++) {
            crm_buf_putc(buf, (char)(*method & ~0x20));
        }
        crm_buf_printf(buf, " %s](" CRM_API_BASE "/docs#%s): %s\n", path,
                       crm_docs_text(operation, "operationId"),
                       crm_docs_text(operation, "summary"));
    }
}

static void make_llms(crm_buf_t *buf)
{
    json_object *info = crm_docs_at(document, "info");
    json_object *tags = crm_docs_at(document, "tags");

    crm_buf_printf(buf, "# %s\n\n> %s\n\n"
                   "Send the header `Authorization: Bearer KEY`. %s\n"
                   "One row is `{\"data\": {...}}`, a list is `{\"data\": [...],"
                   " \"pagination\": {...}}`, an error is `{\"error\": {\"code\","
                   " \"message\", \"details\"}}`.\n"
                   "A write with the header `Idempotency-Key` may be sent again:"
                   " it is done once. After 429 and 503 wait for `Retry-After`.\n"
                   "[OpenAPI](" CRM_API_BASE "/openapi.json) has all fields.\n"
                   "\nA mirror: take `GET " CRM_API_BASE "/events?cursor=end`,"
                   " read the lists with `cursor=*`, then follow the events."
                   " docs/integration.md of mod_crmapi, \"Build an"
                   " integration\", has a program that mirrors both ways.\n",
                   crm_docs_text(info, "title"),
                   crm_docs_text(info, "description"),
                   crm_docs_text(crm_docs_at(components("securitySchemes"),
                                             "key"), "description"));
    for (size_t i = 0; i < json_object_array_length(tags); i++) {
        const char *name = crm_docs_text(json_object_array_get_idx(tags, i),
                                         "name");
        apr_size_t before = buf->len, empty;

        crm_buf_printf(buf, "\n## %s\n\n", name);
        empty = buf->len;
        each_operation(buf, name, add_line);
        buf->len = buf->len == empty ? before : buf->len;
    }
}

/* ---- serving ------------------------------------------------------------- */

/* Return, in POOL, the Content-Security-Policy that allows STYLE alone. */
static const char *make_policy(apr_pool_t *pool)
{
    return crm_html_policy(style, sizeof(style) - 1,
                           "img-src data:; form-action 'none'", pool);
}

crm_error_t *crm_docs_init(apr_pool_t *pool)
{
    apr_size_t len;
    const char *text = crm_openapi_document(&len);
    apr_pool_t *scratch;

    apr_pool_create(&scratch, pool);
    CRM_ERR(crm_openapi_parse(&document, text, len, scratch));
    policy = make_policy(pool);
    crm_buf_init(&page, 262144, pool);
    make_page(&page);
    crm_buf_init(&llms, 16384, pool);
    make_llms(&llms);
    apr_pool_destroy(scratch);
    document = NULL;
    return NULL;
}

crm_error_t *crm_docs_serve(crm_call_t *call)
{
    crm_response_t *response = call->response;

    apr_table_setn(response->headers, "Content-Security-Policy", policy);
    apr_table_setn(response->headers, "Referrer-Policy", "no-referrer");
    response->content_type = "text/html; charset=utf-8";
    crm_buf_add(&response->body, page.data, page.len);
    return NULL;
}

crm_error_t *crm_docs_serve_llms(crm_call_t *call)
{
    call->response->content_type = "text/plain; charset=utf-8";
    crm_buf_add(&call->response->body, llms.data, llms.len);
    return NULL;
}
