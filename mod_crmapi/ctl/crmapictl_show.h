/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_show.h: the document that makes a workspace (contract 14.1) */
#ifndef CRMAPICTL_SHOW_H
#define CRMAPICTL_SHOW_H

#include "crmapictl.h"

/* The command. The manual page describes its output. */
crm_error_t *ctl_show(ctl_t *ctl);

#endif /* CRMAPICTL_SHOW_H */
