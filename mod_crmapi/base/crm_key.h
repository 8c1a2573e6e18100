/* SPDX-License-Identifier: Apache-2.0 */
/* crm_key.h: API keys: format, generation, hash (contract 1.2) */
#ifndef CRM_KEY_H
#define CRM_KEY_H

#include "crm_error.h"

/* The default prefix, and the maximum length of a prefix. */
#define CRM_KEY_PREFIX "svc_live_"
#define CRM_KEY_PREFIX_MAX 32

/* The prefix of intake tokens, which have the same form. */
#define CRM_KEY_INTAKE_PREFIX "svc_in_"

/* The size of a buffer for a key or its display form, with the NUL. */
#define CRM_KEY_SIZE (CRM_KEY_PREFIX_MAX + 30 + 1)
#define CRM_KEY_HASH_LEN 32

/* Write a new key to OUT: PREFIX, 24 random base62 characters, and the CRC32 of
 * both as 6 base62 characters. Errors, in RESULT_POOL: the system has no random
 * bytes. */
crm_error_t *crm_key_generate(char out[CRM_KEY_SIZE], const char *prefix,
                              apr_pool_t *result_pool);

/* Return whether the LEN bytes at KEY are PREFIX followed by 29 or 30
 * characters of [A-Za-z0-9]. */
int crm_key_valid(const char *key, apr_size_t len, const char *prefix);

/* Write the SHA-256 of the LEN bytes at KEY to HASH. */
void crm_key_hash(unsigned char hash[CRM_KEY_HASH_LEN], const char *key,
                  apr_size_t len);

/* Write HASH to OUT as 64 hexadecimal digits and a NUL. */
void crm_key_hash_hex(char out[2 * CRM_KEY_HASH_LEN + 1],
                      const unsigned char hash[CRM_KEY_HASH_LEN]);

/* The size of a buffer for a hash as a bind, with the NUL. */
#define CRM_KEY_BIND_SIZE (2 + 2 * CRM_KEY_HASH_LEN + 1)

/* Write HASH to OUT as a bind for bytea: "\\x" and its hexadecimal digits. */
void crm_key_hash_bind(char out[CRM_KEY_BIND_SIZE],
                       const unsigned char hash[CRM_KEY_HASH_LEN]);

/* Write the SHA-256 of the LEN bytes at KEY to OUT, as such a bind. */
void crm_key_bind(char out[CRM_KEY_BIND_SIZE], const char *key, apr_size_t len);

/* Write the displayable form of KEY, a valid key, to OUT: PREFIX, then the
 * first and the last four characters of the rest with "..." between them. */
void crm_key_display(char out[CRM_KEY_SIZE], const char *key,
                     const char *prefix);

/* Set *KEY_P and *LEN_P to the key in HEADER, the value of an Authorization
 * header: "Bearer" in any case, one space, a valid key, and nothing else
 * (contract 3.1). Return 0 if HEADER is anything else. */
int crm_key_from_bearer(const char **key_p, apr_size_t *len_p,
                        const char *header, const char *prefix);

#endif /* CRM_KEY_H */
