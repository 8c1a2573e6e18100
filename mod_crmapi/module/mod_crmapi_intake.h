/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_intake.h: the directives of channel intake */
#ifndef MOD_CRMAPI_INTAKE_H
#define MOD_CRMAPI_INTAKE_H

#include "mod_crmapi.h"

const char *crmapi_set_twilio(cmd_parms *cmd, void *dir, const char *sid,
                              const char *path, const char *workspace);
const char *crmapi_set_intake_url(cmd_parms *cmd, void *dir,
                                  const char *value);

#endif /* MOD_CRMAPI_INTAKE_H */
