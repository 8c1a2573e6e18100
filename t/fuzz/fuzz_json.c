/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_json.c: the strict check, json-c behind it, and what can be stored */
/* libFuzzer: -max_len=16384 */
#include "fuzz.h"

#include "crm_buf.h"
#include "crm_json.h"
#include "crm_json_check.h"
#include "crm_json_store.h"
#include "crm_text.h"

/* What can be stored is JSON itself, small enough, and says the same. */
static void store(json_object *value, apr_pool_t *pool)
{
    apr_array_header_t *faults;
    json_object *again = NULL;
    const char *text = NULL;
    apr_size_t offset;

    faults = crm_json_storable(&text, value, 4096, 16, pool);
    must(!text == !!faults);
    for (int i = 0; faults && i < faults->nelts; i++) {
        must(APR_ARRAY_IDX(faults, i, crm_json_fault_t).path
             && APR_ARRAY_IDX(faults, i, crm_json_fault_t).rule);
    }
    if (!faults) {
        must(strlen(text) <= 4096);
        must(!crm_json_parse(&again, &offset, text, strlen(text), pool));
        must(json_object_equal(value, again));
    }
}

/* A string from a text is written as it can be read again. */
static void write_string(json_object *value, apr_pool_t *pool)
{
    apr_size_t len = (apr_size_t)json_object_get_string_len(value), offset;
    const char *text = json_object_get_string(value);
    json_object *again = NULL;
    crm_buf_t buf;

    must(crm_text_valid_utf8(text, len));
    crm_buf_init(&buf, 0, pool);
    crm_buf_json_string(&buf, text, len);
    must(!crm_json_parse(&again, &offset, buf.data, buf.len, pool));
    must((apr_size_t)json_object_get_string_len(again) == len);
    must(!memcmp(json_object_get_string(again), text, len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool = fuzz_pool(NULL);
    json_object *value = NULL;
    apr_size_t offset = 0;
    const char *wrong;

    wrong = crm_json_check(&offset, (const char *)data, size, pool);
    must(offset <= size);
    must(!wrong || *wrong);
    if (!wrong) {
        must(crm_text_valid_utf8((const char *)data, size));
        /* nothing that passes the check surprises json-c */
        must(!crm_json_parse(&value, &offset, (const char *)data, size,
                             pool));
        store(value, pool);
        if (json_object_is_type(value, json_type_string)) {
            write_string(value, pool);
        }
    }
    apr_pool_destroy(pool);
    return 0;
}
