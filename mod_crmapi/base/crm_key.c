/* SPDX-License-Identifier: Apache-2.0 */
/* crm_key.c: API keys: format, generation, hash */
#include "crm_key.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/rand.h>

#include "apr_escape.h"
#include "apr_lib.h"
#include "apr_strings.h"

#define RANDOM_LEN 24
#define CHECKSUM_LEN 6
#define REST_LEN (RANDOM_LEN + CHECKSUM_LEN)
#define SHOWN 4

static const char base62[] =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/* CRC-32 as in ISO 3309 and zlib. */
static apr_uint32_t crc32_of(const char *text, apr_size_t len)
{
    apr_uint32_t crc = 0xffffffffU;

    for (apr_size_t i = 0; i < len; i++) {
        crc ^= (unsigned char)text[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320U : 0);
        }
    }
    return ~crc;
}

/* Write the checksum of the LEN bytes at TEXT to OUT in base62, zero-padded. */
static void write_checksum(char *out, const char *text, apr_size_t len)
{
    apr_uint32_t crc = crc32_of(text, len);

    for (int i = CHECKSUM_LEN - 1; i >= 0; i--) {
        out[i] = base62[crc % 62];
        crc /= 62;
    }
}

crm_error_t *crm_key_generate(char out[CRM_KEY_SIZE], const char *prefix,
                              apr_pool_t *result_pool)
{
    apr_size_t len = strlen(prefix);
    unsigned char byte;

    memcpy(out, prefix, len);
    for (int i = 0; i < RANDOM_LEN; ) {
        if (RAND_bytes(&byte, 1) != 1) {
            return crm_error_logf(CRM_E_INTERNAL, result_pool,
                                  "the system has no random bytes");
        }
        if (byte < 4 * 62) {    /* others would favour some characters */
            out[len++] = base62[byte % 62];
            i++;
        }
    }
    write_checksum(out + len, out, len);
    out[len + CHECKSUM_LEN] = '\0';
    return NULL;
}

int crm_key_valid(const char *key, apr_size_t len, const char *prefix)
{
    apr_size_t prefix_len = strlen(prefix);

    if ((len != prefix_len + REST_LEN && len != prefix_len + REST_LEN - 1)
        || memcmp(key, prefix, prefix_len)) {
        return 0;
    }
    for (apr_size_t i = prefix_len; i < len; i++) {
        if (!apr_isalnum(key[i]) || (unsigned char)key[i] > 0x7f) {
            return 0;
        }
    }
    return 1;
}

void crm_key_hash(unsigned char hash[CRM_KEY_HASH_LEN], const char *key,
                  apr_size_t len)
{
    if (!EVP_Digest(key, len, hash, NULL, EVP_sha256(), NULL)) {
        abort();
    }
}

void crm_key_hash_hex(char out[2 * CRM_KEY_HASH_LEN + 1],
                      const unsigned char hash[CRM_KEY_HASH_LEN])
{
    apr_escape_hex(out, hash, CRM_KEY_HASH_LEN, 0, NULL);
}

void crm_key_hash_bind(char out[CRM_KEY_BIND_SIZE],
                       const unsigned char hash[CRM_KEY_HASH_LEN])
{
    out[0] = '\\';
    out[1] = 'x';
    crm_key_hash_hex(out + 2, hash);
}

void crm_key_bind(char out[CRM_KEY_BIND_SIZE], const char *key, apr_size_t len)
{
    unsigned char hash[CRM_KEY_HASH_LEN];

    crm_key_hash(hash, key, len);
    crm_key_hash_bind(out, hash);
}

void crm_key_display(char out[CRM_KEY_SIZE], const char *key,
                     const char *prefix)
{
    const char *rest = key + strlen(prefix);

    apr_snprintf(out, CRM_KEY_SIZE, "%s%.*s...%s", prefix, SHOWN, rest,
                 rest + strlen(rest) - SHOWN);
}

int crm_key_from_bearer(const char **key_p, apr_size_t *len_p,
                        const char *header, const char *prefix)
{
    if (strncasecmp(header, "Bearer ", 7)) {
        return 0;
    }
    *key_p = header + 7;
    *len_p = strlen(*key_p);
    return crm_key_valid(*key_p, *len_p, prefix);
}
