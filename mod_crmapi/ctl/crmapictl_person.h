/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_person.h: what is kept about a person, and erasing it (contract
 * 14.4) */
#ifndef CRMAPICTL_PERSON_H
#define CRMAPICTL_PERSON_H

#include "crmapictl.h"

/* The commands of the same names. */
crm_error_t *ctl_contact_export(ctl_t *ctl);
crm_error_t *ctl_contact_erase(ctl_t *ctl);
crm_error_t *ctl_erasure_list(ctl_t *ctl);
crm_error_t *ctl_erasure_add(ctl_t *ctl);

/* Erase in WORKSPACE, which is held, whom the journal of ORIGIN says to have been
 * erased. Set *COUNT_P to how many contacts and addresses there were. */
crm_error_t *ctl_erase_again(apr_int64_t *count_p, ctl_t *ctl,
                             const char *workspace, const char *origin);

#endif /* CRMAPICTL_PERSON_H */
