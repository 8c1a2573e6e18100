/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_token.c: what comes with links from mails: tokens, and forms */
/* libFuzzer: -max_len=4096 */
#include "fuzz.h"

#include "crm_form.h"
#include "crm_token.h"

/* Only one text says what a token says: what is made of what was read, and of
 * its parts, is the same. */
static void try_token(const char *text, size_t size, apr_pool_t *pool)
{
    const char *head, *mac;
    crm_token_t token;

    if (!crm_token_read(&token, text, size)) {
        return;
    }
    must(size == CRM_TOKEN_LEN);
    crm_token_parts(&head, &mac, text, pool);
    must(!strcmp(crm_token_head(&token, pool), head));
    must(!strcmp(crm_token_text(head, mac, pool), text));
}

static void try_form(const char *text, size_t size, const char *type,
                     apr_pool_t *pool)
{
    apr_array_header_t *fields;

    if (!crm_form_parse(&fields, text, size, type, 100, pool)) {
        const char *value = crm_form_get(fields, "a");

        must(fields->nelts <= 100);
        if (value) {
            must(strlen(value) <= size);
            must(!strchr(crm_form_lines(value, pool), '\r'));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool = fuzz_pool(NULL);
    char *text = fuzz_text(data, size);

    try_token(text, size, pool);
    /* and with nothing behind the bytes */
    try_form((const char *)data, size, "application/x-www-form-urlencoded",
             pool);
    try_form((const char *)data, size, "multipart/form-data; boundary=x",
             pool);
    free(text);
    apr_pool_destroy(pool);
    return 0;
}
