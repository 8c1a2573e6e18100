/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_deliver.h: delivery of a mail from a mail system */
#ifndef CRMAPICTL_DELIVER_H
#define CRMAPICTL_DELIVER_H

#include "crmapictl.h"

/* Before the command: let a fault that a signal tells end the process with
 * EX_TEMPFAIL, as libraries have one without memory. Some mail systems return a mail to
 * its sender if a signal has ended their program. */
void ctl_deliver_prepare(void);

/* The command. The manual page describes its output. */
crm_error_t *ctl_deliver(ctl_t *ctl);

/* Return the exit code (sysexits.h) of the command deliver for ERROR (NULL:
 * none). */
int ctl_deliver_code(const ctl_t *ctl, const crm_error_t *error);

#endif /* CRMAPICTL_DELIVER_H */
