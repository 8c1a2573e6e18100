/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_intake.c: the directives of channel intake */
#include "mod_crmapi_intake.h"

#include <string.h>

#include "apr_strings.h"

#include "http_config.h"

#include "crm_origin.h"
#include "crm_secret.h"
#include "mod_crmapi_directive.h"

const char *crmapi_set_twilio(cmd_parms *cmd, void *dir, const char *sid,
                              const char *path, const char *workspace)
{
    crmapi_config_t *config = crmapi_config(cmd->server);
    const char *file = ap_server_root_relative(cmd->pool, path);
    crm_twilio_account_t *account;
    const char *token = NULL, *problem;

    (void)dir;
    if (strncmp(sid, "AC", 2) || strlen(sid) != 34
        || strspn(sid + 2, "0123456789abcdef") != 32) {
        return apr_psprintf(cmd->pool, "CrmApiTwilio: \"%s\" is not the SID "
                            "of an account: AC and 32 hexadecimal digits", sid);
    }
    problem = file ? crm_secret_read(&token, file, cmd->pool)
                   : "invalid path";
    if (problem) {
        return apr_psprintf(cmd->pool, "CrmApiTwilio: the token file %s: %s",
                            path, problem);
    }
    if (workspace) {
        problem = crmapi_check_workspace(cmd, "CrmApiTwilio", workspace);
    }
    if (!config->twilio) {
        config->twilio = apr_array_make(cmd->pool, 2, sizeof(*account));
    }
    account = apr_array_push(config->twilio);
    account->sid = sid;
    account->token = token;
    account->workspace = workspace;
    return problem;
}

const char *crmapi_set_intake_url(cmd_parms *cmd, void *dir,
                                  const char *value)
{
    (void)dir;
    if (!crm_origin_is_one(value)) {
        return apr_psprintf(cmd->pool, "CrmApiIntakeUrl must be a scheme and "
                            "a host, such as https://crm.example.com, without "
                            "a path, not \"%s\"", value);
    }
    crmapi_config(cmd->server)->intake_url = value;
    return NULL;
}
