/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_audit.h: who changed what (contract 14.7) */
#ifndef CRMAPICTL_AUDIT_H
#define CRMAPICTL_AUDIT_H

#include "crmapictl.h"

/* Add the row of CTL's command to crmapi.audit, in the transaction that is under
 * way, if there is one. It says which system user ran it, where, with which options,
 * and on what; of a value only if it can neither be a secret nor say who a contact
 * is. The run of a command calls it once: see CTL_CHANGES. */
crm_error_t *ctl_audit(ctl_t *ctl);

/* Have CTL's row name the object ID (kept, not copied), which its operand does not
 * name, of WORKSPACE (kept; NULL: none). */
void ctl_audit_object(ctl_t *ctl, const char *workspace, const char *id);

/* audit list: print rows, newest first. */
crm_error_t *ctl_audit_list(ctl_t *ctl);

#endif /* CRMAPICTL_AUDIT_H */
