/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_init.h: a workspace that can be used at once */
#ifndef CRMAPICTL_INIT_H
#define CRMAPICTL_INIT_H

#include "crmapictl.h"

/* The command. The manual page describes its output. */
crm_error_t *ctl_init(ctl_t *ctl);

#endif /* CRMAPICTL_INIT_H */
