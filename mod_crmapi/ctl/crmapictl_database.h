/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_database.h: migrate and status */
#ifndef CRMAPICTL_DATABASE_H
#define CRMAPICTL_DATABASE_H

#include "crmapictl.h"

/* The commands. The manual page describes their output. */
crm_error_t *ctl_migrate(ctl_t *ctl);
crm_error_t *ctl_status(ctl_t *ctl);
crm_error_t *ctl_worker_list(ctl_t *ctl);

#endif /* CRMAPICTL_DATABASE_H */
