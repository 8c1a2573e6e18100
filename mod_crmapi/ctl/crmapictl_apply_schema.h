/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_apply_schema.h: the JSON Schema of documents (contract 14.1) */
#ifndef CRMAPICTL_APPLY_SCHEMA_H
#define CRMAPICTL_APPLY_SCHEMA_H

#include "apr_pools.h"

/* Print the JSON Schema of apply's documents. It is made of the tables that check
 * them, and allows what they do; some rules only apply knows. */
void ctl_apply_schema(apr_pool_t *scratch_pool);

#endif /* CRMAPICTL_APPLY_SCHEMA_H */
