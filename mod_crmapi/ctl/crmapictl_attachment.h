/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_attachment.h: attachments of messages */
#ifndef CRMAPICTL_ATTACHMENT_H
#define CRMAPICTL_ATTACHMENT_H

#include "crmapictl.h"

/* The commands. The manual page describes their output. */
crm_error_t *ctl_attachment_list(ctl_t *ctl);
crm_error_t *ctl_attachment_get(ctl_t *ctl);

#endif /* CRMAPICTL_ATTACHMENT_H */
