/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_role.h: logins for httpd and crmapid */
#ifndef CRMAPICTL_ROLE_H
#define CRMAPICTL_ROLE_H

#include "crmapictl.h"

/* "role create KIND NAME": make the login NAME with the rights of crmapi_api or
 * crmapi_worker, and with the session settings that their statements need. So
 * each session has them, even one that a pooler opens. A login that exists gets
 * the same rights and settings. Errors: CRM_E_CONFLICT for a role that may do
 * more than that. */
crm_error_t *ctl_role_create(ctl_t *ctl);

/* Print a warning to stderr for each kind of logins of which none has these
 * settings in this database, as after a restore into another one, and for each
 * other login with a session here that lacks some. */
crm_error_t *ctl_role_tell(ctl_t *ctl);

#endif /* CRMAPICTL_ROLE_H */
