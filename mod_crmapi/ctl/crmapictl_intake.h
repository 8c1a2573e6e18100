/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_intake.h: intake tokens, agents, and the origins of their chats */
#ifndef CRMAPICTL_INTAKE_H
#define CRMAPICTL_INTAKE_H

#include "crmapictl.h"

/* The commands. The manual page describes their output. */
crm_error_t *ctl_intake_create(ctl_t *ctl);
crm_error_t *ctl_intake_list(ctl_t *ctl);
crm_error_t *ctl_intake_revoke(ctl_t *ctl);
crm_error_t *ctl_agent_list(ctl_t *ctl);
crm_error_t *ctl_agent_origins(ctl_t *ctl);

#endif /* CRMAPICTL_INTAKE_H */
