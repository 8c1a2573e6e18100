/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_data.h: the commands import and export */
#ifndef CRMAPICTL_DATA_H
#define CRMAPICTL_DATA_H

#include "crmapictl.h"

/* The commands. The manual page describes their output. */
crm_error_t *ctl_import(ctl_t *ctl);
crm_error_t *ctl_export(ctl_t *ctl);

#endif /* CRMAPICTL_DATA_H */
