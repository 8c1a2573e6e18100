/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_job.h: the worker's jobs */
#ifndef CRMAPICTL_JOB_H
#define CRMAPICTL_JOB_H

#include "crmapictl.h"

/* The commands. The manual page describes their output. */
crm_error_t *ctl_job_list(ctl_t *ctl);
crm_error_t *ctl_job_retry(ctl_t *ctl);

#endif /* CRMAPICTL_JOB_H */
