/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_sequence.h: admins, enrollments, suppression, replies */
#ifndef CRMAPICTL_SEQUENCE_H
#define CRMAPICTL_SEQUENCE_H

#include "crmapictl.h"

/* The commands. The manual page describes their output. */
crm_error_t *ctl_admin_add(ctl_t *ctl);
crm_error_t *ctl_admin_list(ctl_t *ctl);
crm_error_t *ctl_admin_remove(ctl_t *ctl);
crm_error_t *ctl_enrollment_approve(ctl_t *ctl);
crm_error_t *ctl_enrollment_reject(ctl_t *ctl);
crm_error_t *ctl_enrollment_stop(ctl_t *ctl);
crm_error_t *ctl_enrollment_list(ctl_t *ctl);
crm_error_t *ctl_enrollment_show(ctl_t *ctl);
crm_error_t *ctl_suppress_add(ctl_t *ctl);
crm_error_t *ctl_suppress_remove(ctl_t *ctl);
crm_error_t *ctl_suppress_list(ctl_t *ctl);
crm_error_t *ctl_reply(ctl_t *ctl);

#endif /* CRMAPICTL_SEQUENCE_H */
