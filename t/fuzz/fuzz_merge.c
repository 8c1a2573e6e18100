/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_merge.c: texts with merge fields, as templates have them */
/* libFuzzer: -max_len=4096 */
#include <json-c/json.h>

#include "fuzz.h"

#include "crm_merge.h"
#include "crm_text.h"

#define MAX 200

/* Who the texts are for. */
static crm_subject_t subject;

static void make_subject(apr_pool_t *pool)
{
    (void)pool;
    subject.contact = json_tokener_parse(
        "{\"first_name\":\"Ada\",\"notes\":\"{{email}}\\r\\n\",\"city\":\"\","
        "\"emails\":[{\"email\":\"a@x.org\",\"is_primary\":true}],"
        "\"custom_fields\":{\"a\":1,\"b\":\"\\u00f8\",\"c\":[]}}");
    subject.company = json_tokener_parse("{\"name\":\"X\",\"city\":null}");
    subject.plan = json_tokener_parse("{\"name\":\"Spring\"}");
}

/* What comes out is as short as it should be, valid, not blank, and taken by
 * the check, too; a text without braces comes out as it is. */
static void try_text(const char *text, int one_line, apr_pool_t *pool)
{
    const char *out = NULL;
    const char *wrong = crm_merge(&out, text, &subject, one_line, MAX, pool);

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
    must(!crm_merge(NULL, text, &subject, one_line, MAX, pool));
    must(!one_line || strpbrk(text, "\r\n") || !strpbrk(out, "\r\n"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool;
    char *text;

    /* The database holds nothing else. */
    if (!crm_text_valid_utf8((const char *)data, size)
        || memchr(data, 0, size)) {
        return 0;
    }
    pool = fuzz_pool(make_subject);
    text = fuzz_text(data, size);
    try_text(text, 0, pool);
    try_text(text, 1, pool);
    free(text);
    apr_pool_destroy(pool);
    return 0;
}
