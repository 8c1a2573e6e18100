/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_bearer.c: the headers that are taken apart: Authorization, Prefer */
/* libFuzzer: -max_len=512 */
#include "fuzz.h"

#include "crm_key.h"
#include "crm_prefer.h"

/* Look at a key that HEADER is said to hold, with PREFIX. */
static void accepted(const char *header, const char *key, apr_size_t len,
                     const char *prefix)
{
    unsigned char hash[CRM_KEY_HASH_LEN];
    char shown[CRM_KEY_SIZE];
    apr_size_t prefix_len = strlen(prefix);

    /* exactly one space, the key, nothing else (contract 3.1) */
    must(key == header + 7 && header[6] == ' ' && key[len] == '\0');
    must(strlen(header) == 7 + len && !strchr(key, ' '));
    must(len == prefix_len + 29 || len == prefix_len + 30);
    must(!strncmp(key, prefix, prefix_len));
    must(strspn(key + prefix_len, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                "abcdefghijklmnopqrstuvwxyz0123456789") == len - prefix_len);
    must(crm_key_valid(key, len, prefix));
    crm_key_display(shown, key, prefix);
    must(strlen(shown) == prefix_len + 11);
    crm_key_hash(hash, key, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const prefixes[] = {CRM_KEY_PREFIX, "", "k"};
    char *header = fuzz_text(data, size);

    for (int i = 0; i < 3; i++) {
        apr_size_t len = 0;
        const char *key = NULL;

        if (crm_key_from_bearer(&key, &len, header, prefixes[i])) {
            accepted(header, key, len, prefixes[i]);
        }
        /* and with nothing behind the bytes */
        crm_key_valid((const char *)data, size, prefixes[i]);
    }
    crm_prefer_has(header, "handling", "strict");
    crm_prefer_has(header, "handling", "lenient");
    free(header);
    return 0;
}
