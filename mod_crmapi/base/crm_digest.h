/* SPDX-License-Identifier: Apache-2.0 */
/* crm_digest.h: the SHA-256 of data that comes in parts */
#ifndef CRM_DIGEST_H
#define CRM_DIGEST_H

#include "apr_pools.h"

/* The size of a digest in hexadecimal digits, with the NUL. */
#define CRM_DIGEST_SIZE 65

/* A digest in progress. */
typedef struct crm_digest_t crm_digest_t;

/* Return a new digest, which is freed with RESULT_POOL. Aborts when memory is
 * exhausted, as pools do. */
crm_digest_t *crm_digest_create(apr_pool_t *result_pool);

/* Add the LEN bytes at DATA. */
void crm_digest_add(crm_digest_t *digest, const void *data, apr_size_t len);

/* Set HEX to the SHA-256 of everything that was added, in lower case. DIGEST is
 * empty again then. */
void crm_digest_end(char hex[CRM_DIGEST_SIZE], crm_digest_t *digest);

#endif /* CRM_DIGEST_H */
