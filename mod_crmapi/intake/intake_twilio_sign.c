/* SPDX-License-Identifier: Apache-2.0 */
/* intake_twilio_sign.c: signatures of Twilio's requests */
#include "intake_twilio_sign.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "apr_strings.h"

#include "crm_buf.h"
#include "crm_query.h"

#define SHA1_LEN 20

static int by_name_and_value(const void *a, const void *b)
{
    const crm_query_param_t *const *one = a, *const *two = b;
    int order = strcmp((*one)->name, (*two)->name);

    if (!order) {
        /* Values end with a NUL, and may have others. */
        apr_size_t len = (*one)->value_len < (*two)->value_len
                         ? (*one)->value_len : (*two)->value_len;

        order = memcmp((*one)->value, (*two)->value, len + 1);
        order = order ? order
                : (*one)->value_len < (*two)->value_len ? -1
                : (*one)->value_len > (*two)->value_len;
    }
    return order;
}

/* Add the names and values of PARAMS to TEXT in Twilio's order. */
static void add_params(crm_buf_t *text, const apr_array_header_t *params,
                       apr_pool_t *pool)
{
    size_t count = (size_t)params->nelts;
    const crm_query_param_t **sorted = apr_palloc(pool, (count + 1)
                                                  * sizeof(*sorted));

    for (size_t i = 0; i < count; i++) {
        sorted[i] = &APR_ARRAY_IDX(params, i, crm_query_param_t);
    }
    qsort(sorted, count, sizeof(*sorted), by_name_and_value);
    for (size_t i = 0; i < count; i++) {
        if (!i || by_name_and_value(&sorted[i - 1], &sorted[i])) {
            crm_buf_puts(text, sorted[i]->name);
            crm_buf_add(text, sorted[i]->value, sorted[i]->value_len);
        }
    }
}

void crm_twilio_sign(char out[CRM_TWILIO_SIGNATURE_SIZE], const char *token,
                     const char *url, const apr_array_header_t *params,
                     apr_pool_t *scratch_pool)
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    crm_buf_t text;

    crm_buf_init(&text, 1024, scratch_pool);
    crm_buf_puts(&text, url);
    add_params(&text, params, scratch_pool);
    if (!HMAC(EVP_sha1(), token, (int)strlen(token),
              (const unsigned char *)text.data, text.len, mac, NULL)) {
        abort();
    }
    EVP_EncodeBlock((unsigned char *)out, mac, SHA1_LEN);
    OPENSSL_cleanse(mac, sizeof(mac));
}

const char *crm_twilio_other_url(const char *url, apr_pool_t *pool)
{
    int secure = !strncasecmp(url, "https://", 8);
    const char *host = url + (secure ? 8 : 7);
    const char *end, *port;

    if (!secure && strncasecmp(url, "http://", 7)) {
        return NULL;
    }
    end = host + strcspn(host, "/?#");
    /* skip the colons of an IPv6 address */
    port = *host == '[' ? memchr(host, ']', (size_t)(end - host)) : host;
    port = port ? memchr(port, ':', (size_t)(end - port)) : NULL;
    if (end == host) {
        return NULL;
    }
    return apr_pstrcat(pool, apr_pstrmemdup(pool, url, (apr_size_t)
                                            ((port ? port : end) - url)),
                       port ? "" : secure ? ":443" : ":80", end, NULL);
}

int crm_twilio_signed(const char *signature, const char *token,
                      const char *url, const apr_array_header_t *params,
                      apr_pool_t *scratch_pool)
{
    const char *urls[2];
    int good = 0;

    if (!signature || strlen(signature) != CRM_TWILIO_SIGNATURE_SIZE - 1) {
        return 0;
    }
    urls[0] = url;
    urls[1] = crm_twilio_other_url(url, scratch_pool);
    for (int i = 0; i < 2 && urls[i]; i++) {
        char expected[CRM_TWILIO_SIGNATURE_SIZE];

        crm_twilio_sign(expected, token, urls[i], params, scratch_pool);
        good |= !CRYPTO_memcmp(expected, signature,
                               CRM_TWILIO_SIGNATURE_SIZE - 1);
    }
    return good;
}
