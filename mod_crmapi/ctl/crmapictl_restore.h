/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_restore.h: making a workspace from a dump (contract 14.2) */
#ifndef CRMAPICTL_RESTORE_H
#define CRMAPICTL_RESTORE_H

#include "crmapictl.h"

/* The command workspace restore. The manual page describes it. */
crm_error_t *ctl_workspace_restore(ctl_t *ctl);

#endif /* CRMAPICTL_RESTORE_H */
