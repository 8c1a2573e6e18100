/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_intake.c: what channels send: events, answers to forms, cursors */
/* libFuzzer: -max_len=16384 */
#include "fuzz.h"

#include "crm_intake.h"
#include "crm_json.h"
#include "crm_query.h"
#include "crm_text.h"
#include "crm_webform.h"
#include "intake_chat_parts.h"
#include "intake_form_body.h"
#include "intake_form_check.h"

/* An event: what is taken is valid and within its limits, so that there is
 * nothing to tidy. */
static void try_event(const char *text, size_t size, apr_pool_t *pool)
{
    crm_input_t input = {pool, NULL, 0};
    crm_intake_event_t event, tidied;
    json_object *value;
    apr_size_t offset;

    if (crm_json_parse(&value, &offset, text, size, pool)) {
        return;
    }
    crm_intake_parse(&event, &input, value);
    must(input.error || event.binds[CRM_INTAKE_EVENT_ID]);
    if (!input.error) {
        tidied = event;
        crm_intake_tidy(&tidied, pool);
        must(!memcmp(&tidied, &event, sizeof(event)));
    }
}

/* A form of all kinds of fields. */
static const crm_webform_t *form_of(apr_pool_t *pool)
{
    crm_webform_t *form = apr_pcalloc(pool, sizeof(*form));
    json_object *custom = json_tokener_parse(
        "{\"n\":{\"type\":\"number\",\"min\":1},\"d\":{\"type\":\"date\"},"
        "\"s\":{\"type\":\"multiselect\",\"options\":[\"a\",\"b\"]},"
        "\"u\":{\"type\":\"url\"},\"t\":{\"type\":\"textarea\","
        "\"max_length\":5},\"b\":{\"type\":\"boolean\"}}");

    crm_webform_configure(form, NULL, custom, NULL, pool);
    json_object_put(custom);
    return form;
}

static void try_form(const char *text, size_t size, const char *type,
                     apr_pool_t *pool)
{
    apr_array_header_t *answers;
    crm_webform_taken_t taken;

    if (crm_webform_read(&answers, text, size, type, pool)) {
        return;
    }
    for (int i = 0; i < answers->nelts; i++) {
        const char *value = APR_ARRAY_IDX(answers, i,
                                          crm_query_param_t).value;

        must(!value || crm_text_valid_utf8(value, strlen(value)));
    }
    if (!crm_webform_check(&taken, form_of(pool), answers, 0, pool)) {
        must(crm_text_valid_utf8(taken.content, strlen(taken.content)));
    }
}

static void try_cursor(const char *text)
{
    char again[CRM_CHAT_CURSOR_SIZE];
    crm_chat_cursor_t cursor, same;

    if (crm_chat_cursor_read(&cursor, text)) {
        crm_chat_cursor_write(again, &cursor);
        must(crm_chat_cursor_read(&same, again));
        must(same.ms == cursor.ms && !strcmp(same.id, cursor.id));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool = fuzz_pool(NULL);
    char *text = fuzz_text(data, size);

    try_event((const char *)data, size, pool);
    try_form((const char *)data, size, "application/x-www-form-urlencoded",
             pool);
    try_form((const char *)data, size, "multipart/form-data; boundary=x",
             pool);
    try_form((const char *)data, size, "application/json", pool);
    try_cursor(text);
    free(text);
    apr_pool_destroy(pool);
    return 0;
}
