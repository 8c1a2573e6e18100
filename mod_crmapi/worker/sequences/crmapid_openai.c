/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_openai.c: the generator "openai", an OpenAI-compatible service */
#include <string.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_array.h"
#include "crm_json.h"
#include "crmapid_curl.h"
#include "crmapid_generate.h"
#include "crmapid_prompt.h"
#include "crmapid_tidy.h"

/* Maximum bytes of an answer. */
#define ANSWER_MAX (1024 * 1024)

/* The longest error code that is logged. */
#define CODE_LEN 64

static crm_error_t *check(const crmd_config_t *config, apr_pool_t *pool)
{
    if (!*config->openai_url) {
        return crm_error_create(CRM_E_BAD_REQUEST, "openai_url is not set: the"
                                " generator openai needs it", pool);
    }
    if (!*config->openai_model) {
        return crm_error_create(CRM_E_BAD_REQUEST, "openai_model is not set:"
                                " the generator openai needs it", pool);
    }
    return NULL;
}

/* Send the request BODY and fill ANSWER, in POOL. */
static void send_request(crmd_http_answer_t *answer, const char *body,
                         const crmd_config_t *config, apr_pool_t *pool)
{
    const char *headers[3] = {"Content-Type: application/json", NULL, NULL};
    crmd_http_request_t request;

    memset(&request, 0, sizeof(request));
    request.url = apr_pstrcat(pool, config->openai_url, "/chat/completions", NULL);
    if (*config->openai_key) {
        headers[1] = apr_pstrcat(pool, "Authorization: Bearer ",
                                 config->openai_key, NULL);
    }
    request.headers = headers;
    request.body = body;
    request.body_len = strlen(body);
    request.timeout = config->openai_timeout;
    request.max_answer = ANSWER_MAX;
    request.harmless = 1;
    crmd_http_send(answer, &request, pool);
}

/* Set *OBJECT_P to the JSON object in the LEN bytes at TEXT, freed with POOL.
 * Return 0 if they are not a JSON object. */
static int parse(json_object **object_p, const char *text, apr_size_t len,
                 apr_pool_t *pool)
{
    apr_size_t offset;

    return !crm_json_parse(object_p, &offset, text, len, pool)
           && json_object_is_type(*object_p, json_type_object);
}

/* Return the first choice of COMPLETION, NULL if it has none. */
static json_object *first_choice(json_object *completion)
{
    json_object *choices = json_object_object_get(completion, "choices");

    return json_object_is_type(choices, json_type_array)
           ? json_object_array_get_idx(choices, 0) : NULL;
}

/* Return NULL, or the reason why CHOICE has no complete answer. */
static const char *incomplete_reason(json_object *choice)
{
    static const struct {
        const char *reason;
        const char *why;
    } known[] = {
        {"length", "the answer was cut off at openai_max_tokens"},
        {"content_filter", "the service withheld the answer"},
    };
    const char *reason = crm_json_text(
        json_object_object_get(choice, "finish_reason"));
    json_object *refusal = json_object_object_get(
        json_object_object_get(choice, "message"), "refusal");

    for (size_t i = 0; reason && i < CRM_NELTS(known); i++) {
        if (!strcmp(reason, known[i].reason)) {
            return known[i].why;
        }
    }
    /* Some services send an empty refusal in every answer. */
    return json_object_is_type(refusal, json_type_string)
           && !json_object_get_string_len(refusal) ? NULL
           : refusal ? "the model refused" : NULL;
}

/* Return what CONTENT, of a message, says: the text, or those of its parts, in POOL.
 * Return NULL if it says nothing. */
static const char *text_of(json_object *content, apr_pool_t *pool)
{
    apr_array_header_t *texts = apr_array_make(pool, 0, sizeof(const char *));
    size_t count = crm_json_count(content);

    if (crm_json_text(content)) {
        return crm_json_text(content);
    }
    for (size_t i = 0; i < count; i++) {
        const char *part = crm_json_text(json_object_object_get(
            json_object_array_get_idx(content, i), "text"));

        if (part) {
            APR_ARRAY_PUSH(texts, const char *) = part;
        }
    }
    return texts->nelts ? apr_array_pstrcat(pool, texts, '\0') : NULL;
}

/* Return where the last object with the member "steps" begins in TEXT, NULL if there
 * is none: models write drafts before it. */
static const char *last_plan(const char *text)
{
    static const char member[] = "\"steps\"";
    const char *last = NULL;

    while ((text = strchr(text, '{'))) {
        const char *name = text + 1 + strspn(text + 1, " \t\r\n");

        last = strncmp(name, member, sizeof(member) - 1) ? last : text;
        text++;
    }
    return last;
}

/* Return whether CONTACT has something that looks like a plan: a model that quotes it
 * does not mean it. */
static int has_plan(json_object *contact)
{
    const char *text = json_object_to_json_string(contact);

    return strstr(text, "\"steps\"") || strstr(text, "\\\"steps\\\"");
}

/* Set *PLAN_P to the object {"steps": ...} in TEXT, freed with POOL. What models put
 * around it is left out: thoughts before it, which end with </think>, a block of code
 * in Markdown, words, tokens of their own; but no words if CONTACT has something like
 * it. Return 0 if there is none. */
static int find_plan(json_object **plan_p, const char *text,
                     json_object *contact, apr_pool_t *pool)
{
    static const char thought[] = "</think>", fence[] = "```json5\r\n";
    const char *next, *plan;
    apr_size_t end, len;

    while ((next = strstr(text, thought))) {
        text = next + strlen(thought);
    }
    plan = last_plan(text);
    if (!plan || ((next = strstr(text, "<think>")) && next < plan)) {
        return 0;
    }
    len = strlen(plan);
    if (!crm_json_parse(plan_p, &end, plan, len, pool)) {
        end = len;
    }
    else if (!parse(plan_p, plan, end, pool)) {
        return 0;
    }
    return !has_plan(contact)
           || ((apr_size_t)(plan - text) < sizeof(fence)
               && len - end < sizeof(fence));
}

/* Read the LEN bytes at TEXT, a completion, into OUTLINE. Return NULL, or the
 * reason why they cannot be used. */
static const char *read_completion(crmd_outline_t *outline, const char *text,
                                   apr_size_t len,
                                   const crm_reading_t *reading)
{
    json_object *completion, *choice, *plan;
    const char *fault, *content;

    if (!parse(&completion, text, len, reading->pool)) {
        return "the answer is not a JSON object";
    }
    choice = first_choice(completion);
    fault = incomplete_reason(choice);
    if (fault) {
        return fault;
    }
    content = text_of(json_object_object_get(
        json_object_object_get(choice, "message"), "content"), reading->pool);
    if (!content) {
        return "the answer has no content";
    }
    if (!find_plan(&plan, content, reading->subject->contact, reading->pool)
        || json_object_object_length(plan) != 1) {
        return "the content is not {\"steps\": [...]}";
    }
    crmd_tidy_steps(json_object_object_get(plan, "steps"), reading->pool);
    fault = crm_steps_read(&outline->steps,
                           json_object_object_get(plan, "steps"), reading);
    return fault ? fault
           : crmd_tidy_fault(outline->steps, reading->subject, reading->pool);
}

/* Return whether VALUE is an error code: a word such as invalid_api_key, or a
 * small positive number. */
static int is_code(json_object *value)
{
    const char *text = json_object_get_string(value);
    size_t len = 0;

    if (json_object_is_type(value, json_type_int)) {
        return json_object_get_int64(value) > 0
               && json_object_get_int64(value) <= CRMD_CODE_MAX;
    }
    if (!json_object_is_type(value, json_type_string)) {
        return 0;
    }
    while (apr_isalnum(text[len]) || (text[len] && strchr("_-.", text[len]))) {
        len++;
    }
    return apr_isalpha(*text) && len <= CODE_LEN
           && len == (size_t)json_object_get_string_len(value);
}

/* Return the error object of ANSWER, NULL if it has none. */
static json_object *error_of(const crmd_http_answer_t *answer, apr_pool_t *pool)
{
    json_object *body, *error;

    if (!parse(&body, answer->body, answer->len, pool)) {
        return NULL;
    }
    error = json_object_object_get(body, "error");
    return json_object_is_type(error, json_type_object) ? error : NULL;
}

/* Return whether ANSWER refuses the request because of something in DIALECT, which
 * then is another one. What a service says is no more than a hint: its body is
 * searched for the names of what it may not know. */
static int adapt(crmd_dialect_t *dialect, const crmd_http_answer_t *answer,
                 apr_pool_t *pool)
{
    const char *body;

    if (answer->error || answer->cut
        || (answer->status != 400 && answer->status != 422)) {
        return 0;
    }
    body = apr_pstrmemdup(pool, answer->body, answer->len);
    /* OpenAI refuses max_tokens for models that reason. */
    if (!dialect->newer_limit && (strstr(body, "max_completion_tokens")
                                  || strstr(body, "\"max_tokens\""))) {
        return dialect->newer_limit = 1;
    }
    if (!dialect->no_schema && (strstr(body, "response_format")
                                || strstr(body, "json_schema"))) {
        return dialect->no_schema = 1;
    }
    return 0;
}

/* Return the reason why the request failed, from ANSWER, whose status is not 200,
 * or that is an error all the same: the status, and the code or type of an OpenAI
 * error object. The rest of the body is left out: it may quote the contact or the
 * key, and the reason is logged. */
static const char *refusal(const crmd_http_answer_t *answer,
                           const crmd_config_t *config, apr_pool_t *pool)
{
    static const char *const names[] = {"code", "type"};
    json_object *error = error_of(answer, pool);

    for (int i = 0; i < 2; i++) {
        json_object *value = json_object_object_get(error, names[i]);
        const char *code = is_code(value) ? json_object_get_string(value)
                                          : NULL;

        if (code && !(*config->openai_key
                      && strstr(code, config->openai_key))) {
            return apr_psprintf(pool, "openai: status %d, %s", answer->status,
                                code);
        }
    }
    return apr_psprintf(pool, "openai: status %d", answer->status);
}

/* All failures are temporary: the service may answer the next request, or an
 * operator may correct the key or the name of the model. generate_attempts
 * limits the number of attempts. */
static void generate(crmd_outline_t *outline, const crm_subject_t *subject,
                     const crmd_config_t *config, const crm_log_t *log,
                     apr_pool_t *result_pool)
{
    const crm_reading_t reading = {subject, config->max_steps, 0,
                                   result_pool};
    crmd_dialect_t dialect = {0, 0};
    crmd_http_answer_t answer;
    const char *fault;

    (void)log;
    do {
        send_request(&answer,
                     crmd_prompt(subject, config, &dialect, result_pool),
                     config, result_pool);
    } while (adapt(&dialect, &answer, result_pool));
    outline->retry_after = answer.retry_after;
    if (answer.error || answer.cut) {
        outline->setback = apr_pstrcat(result_pool, "openai: ", answer.error
                                       ? answer.error : "the answer is too"
                                       " long", NULL);
    }
    else if (answer.status != 200 || error_of(&answer, result_pool)) {
        outline->setback = refusal(&answer, config, result_pool);
    }
    else if ((fault = read_completion(outline, answer.body, answer.len,
                                      &reading))) {
        outline->setback = apr_pstrcat(result_pool, "openai: ", fault, NULL);
    }
}

const crmd_generator_t crmd_generator_openai = {"openai", check, generate};
