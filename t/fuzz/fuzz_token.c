/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_token.c: what comes with links from mails: tokens, and forms */
/* libFuzzer: -max_len=4096 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "apr_general.h"

#include "crm_form.h"
#include "crm_token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int is)
{
    if (!is) {
        abort();
    }
}

/* Only one text says what a token says: signed again, it is the same up to
 * the signature. */
static void try_token(const char *text, size_t size)
{
    static const unsigned char key[CRM_TOKEN_KEY_LEN];
    char again[CRM_TOKEN_LEN + 1];
    crm_token_t token;

    if (!crm_token_read(&token, text, size)) {
        return;
    }
    must(size == CRM_TOKEN_LEN);
    must(crm_token_write(again, &token, key));
    must(!strncmp(again, text, 76));
    must(crm_token_verify(text, key) == !strcmp(again, text));
}

static void try_form(const char *text, size_t size, const char *type,
                     apr_pool_t *pool)
{
    apr_array_header_t *fields;

    if (!crm_form_parse(&fields, text, size, type, pool)) {
        const char *value = crm_form_get(fields, "a");

        must(fields->nelts <= CRM_FORM_FIELDS);
        if (value) {
            must(strlen(value) <= size);
            must(!strchr(crm_form_lines(value, pool), '\r'));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static apr_pool_t *parent;
    char *text = malloc(size + 1);
    apr_pool_t *pool;

    if (!parent) {
        apr_initialize();
        apr_pool_create(&parent, NULL);
    }
    apr_pool_create(&pool, parent);
    memcpy(text, data, size);
    text[size] = '\0';
    try_token(text, size);
    /* and with nothing behind the bytes */
    try_form((const char *)data, size, "application/x-www-form-urlencoded",
             pool);
    try_form((const char *)data, size, "multipart/form-data; boundary=x",
             pool);
    free(text);
    apr_pool_destroy(pool);
    return 0;
}
