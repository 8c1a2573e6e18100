/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_intake.h: the directives of channel intake */
#ifndef MOD_CRMAPI_INTAKE_H
#define MOD_CRMAPI_INTAKE_H

#include "mod_crmapi.h"

/* CrmApiTwilio SID PATH [WORKSPACE]: add an account, whose token is in the file
 * PATH. Return NULL or an error, as does the next function. */
const char *crmapi_set_twilio(cmd_parms *cmd, void *dir, const char *sid,
                              const char *path, const char *workspace);

/* CrmApiIntakeUrl VALUE */
const char *crmapi_set_intake_url(cmd_parms *cmd, void *dir,
                                  const char *value);

#endif /* MOD_CRMAPI_INTAKE_H */
