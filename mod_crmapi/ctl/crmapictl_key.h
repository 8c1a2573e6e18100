/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_key.h: API keys; only their hashes are stored (contract 1.2) */
#ifndef CRMAPICTL_KEY_H
#define CRMAPICTL_KEY_H

#include "crmapictl.h"

/* The commands. The manual page describes their output. */
crm_error_t *ctl_key_create(ctl_t *ctl);
crm_error_t *ctl_key_import(ctl_t *ctl);
crm_error_t *ctl_key_list(ctl_t *ctl);
crm_error_t *ctl_key_set(ctl_t *ctl);
crm_error_t *ctl_key_revoke(ctl_t *ctl);

#endif /* CRMAPICTL_KEY_H */
