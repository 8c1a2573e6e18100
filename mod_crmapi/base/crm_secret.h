/* SPDX-License-Identifier: Apache-2.0 */
/* crm_secret.h: passwords and tokens in files */
#ifndef CRM_SECRET_H
#define CRM_SECRET_H

#include "apr_pools.h"

/* The maximum length of a secret. */
#define CRM_SECRET_MAX 1000

/* Set *SECRET_P, in POOL, to the first line of the file PATH without the white
 * space at both ends. Other users must have no rights to the file. Return NULL,
 * or the reason why it cannot be used, which never quotes the secret. */
const char *crm_secret_read(const char **secret_p, const char *path,
                            apr_pool_t *pool);

#endif /* CRM_SECRET_H */
