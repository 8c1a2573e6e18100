/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_intake.c: the directives of channel intake */
#include "mod_crmapi_intake.h"

#include <string.h>

#include "apr_file_io.h"
#include "apr_lib.h"
#include "apr_strings.h"

#include "http_config.h"

#include "mod_crmapi_config.h"

#define SECRET_MAX 256

const char *crmapi_read_secret(const char **secret_p, const char *path,
                               apr_pool_t *p)
{
    char *line = apr_palloc(p, SECRET_MAX);
    apr_finfo_t info;
    apr_file_t *file;
    apr_status_t status = apr_file_open(&file, path, APR_FOPEN_READ,
                                        APR_FPROT_OS_DEFAULT, p);

    if (!status) {
        status = apr_file_info_get(&info, APR_FINFO_PROT | APR_FINFO_TYPE,
                                   file);
        if (!status && info.protection & APR_FPROT_WREAD) {
            apr_file_close(file);
            return "it must not be readable by others: chmod o-r";
        }
        if (!status) {
            status = apr_file_gets(line, SECRET_MAX, file);
        }
        apr_file_close(file);
    }
    if (status) {
        return apr_psprintf(p, "%pm", &status);
    }
    apr_collapse_spaces(line, line);
    *secret_p = line;
    return *line ? NULL : "its first line is empty";
}

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
    problem = file ? crmapi_read_secret(&token, file, cmd->pool)
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
    size_t scheme = !strncmp(value, "https://", 8) ? 8
                    : !strncmp(value, "http://", 7) ? 7 : 0;
    size_t len = strspn(value + scheme, "abcdefghijklmnopqrstuvwxyz"
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]");

    (void)dir;
    if (!scheme || !len || value[scheme + len]) {
        return apr_psprintf(cmd->pool, "CrmApiIntakeUrl must be a scheme and "
                            "a host, such as https://crm.example.com, without "
                            "a path, not \"%s\"", value);
    }
    crmapi_config(cmd->server)->intake_url = value;
    return NULL;
}
