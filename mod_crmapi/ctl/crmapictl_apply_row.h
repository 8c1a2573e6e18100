/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_apply_row.h: reading, checking and writing rows that documents name
 * (contract 14.1) */
#ifndef CRMAPICTL_APPLY_ROW_H
#define CRMAPICTL_APPLY_ROW_H

#include "crmapictl_apply.h"

/* Read and check the object of WORK, of KIND, whose row was found. Errors name its
 * place and rule. */
crm_error_t *ctl_apply_read(ctl_apply_t *apply, const ctl_kind_t *kind,
                            ctl_work_t *work);

/* Take from the rows of KIND what only one may have and WORKS (ctl_work_t) or --prune
 * take from it, so that others can get it in any order. */
crm_error_t *ctl_apply_free(ctl_apply_t *apply, const ctl_kind_t *kind,
                            const apr_array_header_t *works);

/* Check that the addresses of the agents in WORKS (ctl_work_t) belong to nobody
 * else. */
crm_error_t *ctl_apply_addresses(ctl_apply_t *apply, const ctl_kind_t *kind,
                                 const apr_array_header_t *works);

/* Write what WORK's object changes, and note it. */
crm_error_t *ctl_apply_write(ctl_apply_t *apply, const ctl_kind_t *kind,
                             ctl_work_t *work);

#endif /* CRMAPICTL_APPLY_ROW_H */
