/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_permit.h: who may switch on the handlers that show the server */
#ifndef MOD_CRMAPI_PERMIT_H
#define MOD_CRMAPI_PERMIT_H

#include "mod_crmapi.h"

/* The create_dir_config and merge_dir_config functions of the module. */
void *crmapi_permit_create(apr_pool_t *p, char *dir);
void *crmapi_permit_merge(apr_pool_t *p, void *base, void *more);

/* The directive CrmApiHtaccessHandlers. */
const char *crmapi_set_permit(cmd_parms *cmd, void *config, int on);

/* Return OK if R is a GET for HANDLER, which shows the whole server and may answer;
 * DECLINED if another one has R; otherwise the status of R's refusal. */
int crmapi_asked(request_rec *r, const char *handler);

#endif /* MOD_CRMAPI_PERMIT_H */
