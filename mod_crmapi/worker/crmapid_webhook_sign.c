/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_webhook_sign.c: how a webhook is signed (contract 12.2) */
#include "crmapid_webhook.h"

#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "apr_strings.h"

#include "crm_buf.h"

/* "v1," and the base64 of 32 bytes, with its NUL. */
#define SIGNATURE_SIZE (3 + 44 + 1)

const char *crmd_webhook_sign(const unsigned char *key, apr_size_t key_len,
                              const char *id, const char *timestamp,
                              const char *body, apr_size_t len,
                              apr_pool_t *result_pool)
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned int mac_len;
    char *signature;
    crm_buf_t text;

    crm_buf_init(&text, strlen(id) + strlen(timestamp) + len + 2, result_pool);
    crm_buf_puts(&text, id);
    crm_buf_putc(&text, '.');
    crm_buf_puts(&text, timestamp);
    crm_buf_putc(&text, '.');
    crm_buf_add(&text, body, len);
    if (!HMAC(EVP_sha256(), key, (int)key_len,
              (const unsigned char *)text.data, text.len, mac, &mac_len)
        || mac_len != 32) {
        return NULL;
    }
    signature = apr_palloc(result_pool, SIGNATURE_SIZE);
    memcpy(signature, "v1,", 3);
    EVP_EncodeBlock((unsigned char *)signature + 3, mac, (int)mac_len);
    return signature;
}
