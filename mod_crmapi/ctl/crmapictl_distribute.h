/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_distribute.h: distribute */
#ifndef CRMAPICTL_DISTRIBUTE_H
#define CRMAPICTL_DISTRIBUTE_H

#include "crmapictl.h"

/* The command. The manual page describes its output. */
crm_error_t *ctl_distribute(ctl_t *ctl);

#endif /* CRMAPICTL_DISTRIBUTE_H */
