/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_key.h: API keys; only their hashes are stored (contract 1.2) */
#ifndef CRMAPICTL_KEY_H
#define CRMAPICTL_KEY_H

#include "crm_key.h"
#include "crmapictl.h"

/* Make a new key as the options of key create say. KEY is the key, which is
 * stored nowhere: clear it after use. *RESULT_P is its row. Errors: a value of
 * the options. */
crm_error_t *ctl_key_make(PGresult **result_p, char key[CRM_KEY_SIZE],
                          ctl_t *ctl);

/* Warn on stderr if the plan of the workspace of RESULT, the row of a new key,
 * does not include the API. */
crm_error_t *ctl_key_warn(ctl_t *ctl, const PGresult *result);

/* The commands. The manual page describes their output. */
crm_error_t *ctl_key_create(ctl_t *ctl);
crm_error_t *ctl_key_import(ctl_t *ctl);
crm_error_t *ctl_key_list(ctl_t *ctl);
crm_error_t *ctl_key_set(ctl_t *ctl);
crm_error_t *ctl_key_revoke(ctl_t *ctl);
crm_error_t *ctl_key_rotate(ctl_t *ctl);

#endif /* CRMAPICTL_KEY_H */
