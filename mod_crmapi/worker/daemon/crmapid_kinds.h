/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_kinds.h: the kinds of jobs */
#ifndef CRMAPID_KINDS_H
#define CRMAPID_KINDS_H

#include "crmapid_job.h"

/* All kinds of jobs with their handlers; the last has no name. */
extern const crmd_kind_t crmd_kinds[];

#endif /* CRMAPID_KINDS_H */
