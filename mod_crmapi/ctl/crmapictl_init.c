/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_init.c: a workspace that can be used at once */
#include "crmapictl_init.h"

#include <stdio.h>
#include <string.h>

#include <openssl/crypto.h>

#include "crm_uuid.h"
#include "crmapictl_audit.h"
#include "crmapictl_key.h"
#include "crmapictl_workspace.h"

/* What the command makes. */
typedef struct made_t {
    const char *workspace;
    char agent[CRM_UUID_LEN + 1];
    char key[CRM_KEY_SIZE];
    PGresult *key_row;
} made_t;

/* Insert the agent --agent into the workspace of MADE. Its chat may be shown on
 * public sites, as those of agents that people try first. */
static crm_error_t *make_agent(made_t *made, ctl_t *ctl)
{
    const char *values[3] = {made->workspace, made->agent,
                             ctl->options[CTL_AGENT]};
    PGresult *result;

    crm_uuid_v7(made->agent);
    return ctl_query(&result, ctl, "INSERT INTO crmapi.agent (workspace_id, id,"
                     " name, public) VALUES ($1::uuid, $2::uuid, $3::text,"
                     " true)", 3, values);
}

/* Make workspace, agent and key. */
static crm_error_t *make_all(made_t *made, ctl_t *ctl)
{
    PGresult *result;

    CRM_ERR(ctl_workspace_make(&result, ctl));
    made->workspace = PQgetvalue(result, 0, 0);
    CRM_ERR(make_agent(made, ctl));
    ctl->options[CTL_WORKSPACE] = made->workspace;
    ctl->options[CTL_NAME] = "backend";
    ctl->options[CTL_SCOPES] = "read,write";
    CRM_ERR(ctl_key_make(&made->key_row, made->key, ctl));
    ctl_audit_object(ctl, NULL, made->workspace);
    return NULL;
}

/* Refuse a second workspace of the same name, unless --slug says that another one is
 * meant: who runs the command again would have two of them. */
static crm_error_t *check_second(ctl_t *ctl)
{
    const char *name = ctl->options[CTL_NAME];
    PGresult *result;

    if (ctl->options[CTL_SLUG]) {
        return NULL;
    }
    CRM_ERR(ctl_query(&result, ctl, "SELECT slug FROM crmapi.workspace"
                      " WHERE lower(name) = lower($1::text)"
                      " ORDER BY created_at, id LIMIT 1", 1, &name));
    return PQntuples(result)
           ? ctl_fault(ctl, "there is a workspace \"%s\" already, with the slug"
                       " \"%s\"; give --slug to make another one", name,
                       PQgetvalue(result, 0, 0)) : NULL;
}

crm_error_t *ctl_init(ctl_t *ctl)
{
    crm_error_t *error;
    made_t made;

    CRM_ERR(ctl_check_name(ctl, CTL_AGENT));
    CRM_ERR(check_second(ctl));
    error = make_all(&made, ctl);
    if (!error) {
        printf(ctl->options[CTL_JSON]
               ? "{\"workspace_id\":\"%s\",\"agent_id\":\"%s\","
                 "\"key\":\"%s\"}\n"
               : "W=%s\nAGENT=%s\nKEY=%s\n", made.workspace, made.agent,
               made.key);
        error = ctl_key_warn(ctl, made.key_row);
    }
    OPENSSL_cleanse(made.key, sizeof(made.key));
    return error;
}
