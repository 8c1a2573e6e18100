/* SPDX-License-Identifier: Apache-2.0 */
/* crm_digest.c: the SHA-256 of data that comes in parts */
#include "crm_digest.h"

#include <stdlib.h>

#include <openssl/evp.h>

#include "apr_escape.h"

struct crm_digest_t {
    EVP_MD_CTX *context;
};

/* Pool cleanup. */
static apr_status_t digest_free(void *data)
{
    crm_digest_t *digest = data;

    EVP_MD_CTX_free(digest->context);
    return APR_SUCCESS;
}

static void begin(crm_digest_t *digest)
{
    if (!digest->context
        || !EVP_DigestInit_ex(digest->context, EVP_sha256(), NULL)) {
        abort();                /* out of memory */
    }
}

crm_digest_t *crm_digest_create(apr_pool_t *result_pool)
{
    crm_digest_t *digest = apr_palloc(result_pool, sizeof(*digest));

    digest->context = EVP_MD_CTX_new();
    apr_pool_cleanup_register(result_pool, digest, digest_free,
                              apr_pool_cleanup_null);
    begin(digest);
    return digest;
}

void crm_digest_add(crm_digest_t *digest, const void *data, apr_size_t len)
{
    if (!EVP_DigestUpdate(digest->context, data, len)) {
        abort();
    }
}

void crm_digest_end(char hex[CRM_DIGEST_SIZE], crm_digest_t *digest)
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned size;

    if (!EVP_DigestFinal_ex(digest->context, hash, &size)) {
        abort();
    }
    apr_escape_hex(hex, hash, size, 0, NULL);
    begin(digest);
}
