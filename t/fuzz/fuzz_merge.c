/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_merge.c: texts with merge fields, as templates have them */
/* libFuzzer: -max_len=4096 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "apr_general.h"

#include "crm_text.h"
#include "crm_merge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX 200

static void must(int is)
{
    if (!is) {
        abort();
    }
}

static void make_subject(crm_subject_t *subject)
{
    memset(subject, 0, sizeof(*subject));
    subject->contact = json_tokener_parse(
        "{\"first_name\":\"Ada\",\"notes\":\"{{email}}\\r\\n\",\"city\":\"\","
        "\"emails\":[{\"email\":\"a@x.org\",\"is_primary\":true}],"
        "\"custom_fields\":{\"a\":1,\"b\":\"\\u00f8\",\"c\":[]}}");
    subject->company = json_tokener_parse("{\"name\":\"X\",\"city\":null}");
    subject->plan = json_tokener_parse("{\"name\":\"Spring\"}");
}

/* What comes out is as short as it should be, valid, not blank, and taken by
 * the check, too; a text without braces comes out as it is. */
static void try_text(const char *text, int one_line,
                     const crm_subject_t *subject, apr_pool_t *pool)
{
    const char *out = NULL;
    const char *wrong = crm_merge(&out, text, subject, one_line, MAX, pool);

    must(!wrong || *wrong);
    if (wrong) {
        must(strlen(wrong) < 300);
        must(wrong[strcspn(wrong, "\r\n")] == '\0');
        return;
    }
    must(crm_text_valid_utf8(out, strlen(out)));
    must(crm_text_length(out, strlen(out)) <= MAX);
    must(out[strspn(out, " \t\r\n")] != '\0');
    must(strstr(text, "{{") || !strcmp(text, out));
    must(!crm_merge(NULL, text, subject, one_line, MAX, pool));
    must(!one_line || strpbrk(text, "\r\n") || !strpbrk(out, "\r\n"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static apr_pool_t *parent;
    static crm_subject_t subject;
    apr_pool_t *pool;
    char *text;

    if (!parent) {
        apr_initialize();
        apr_pool_create(&parent, NULL);
        make_subject(&subject);
    }
    /* The database holds nothing else. */
    if (!crm_text_valid_utf8((const char *)data, size)
        || memchr(data, 0, size)) {
        return 0;
    }
    apr_pool_create(&pool, parent);
    text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    try_text(text, 0, &subject, pool);
    try_text(text, 1, &subject, pool);
    free(text);
    apr_pool_destroy(pool);
    return 0;
}
