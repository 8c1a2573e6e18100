/* SPDX-License-Identifier: Apache-2.0 */
/* crm_limit_validate.h: whether a block of crm_limit.h is consistent */
#ifndef CRM_LIMIT_VALIDATE_H
#define CRM_LIMIT_VALIDATE_H

#include "crm_limit.h"

/* Check the consistency of BLOCK: chains, free lists, counts, windows. Return
 * NULL, or the first inconsistency as a constant string. Slow; for tests. */
const char *crm_limit_validate(crm_limit_t *block);

#endif /* CRM_LIMIT_VALIDATE_H */
