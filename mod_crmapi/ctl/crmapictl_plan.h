/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_plan.h: crmapictl plan (contract 3.3) */
#ifndef CRMAPICTL_PLAN_H
#define CRMAPICTL_PLAN_H

#include "crmapictl.h"

/* These run the commands of their names. */
crm_error_t *ctl_plan_create(ctl_t *ctl);
crm_error_t *ctl_plan_list(ctl_t *ctl);
crm_error_t *ctl_plan_set(ctl_t *ctl);

#endif /* CRMAPICTL_PLAN_H */
