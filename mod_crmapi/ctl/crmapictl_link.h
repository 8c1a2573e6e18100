/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_link.h: the keys that sign a workspace's links */
#ifndef CRMAPICTL_LINK_H
#define CRMAPICTL_LINK_H

#include "crmapictl.h"

/* The commands. The manual page describes their output. */
crm_error_t *ctl_link_key_rotate(ctl_t *ctl);
crm_error_t *ctl_link_key_drop(ctl_t *ctl);

#endif /* CRMAPICTL_LINK_H */
