/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_intake.c: intake tokens, agents, and the origins of their chats */
#include "crmapictl_intake.h"

#include <string.h>

#include <openssl/crypto.h>

#include "apr_strings.h"

#include "crm_key.h"
#include "crm_origin.h"
#include "crm_sql.h"
#include "crm_type_list.h"
#include "crm_uuid.h"
#include "crmapictl_audit.h"
#include "crmapictl_options.h"
#include "crmapictl_output.h"
#include "crmapictl_workspace.h"

#define FIELDS "id, name, display, created_at, last_used_at, revoked_at"
#define COLUMNS {"id", 's'}, {"name", 's'}, {"display", 's'}, \
    {"created_at", 't'}, {"last_used_at", 't'}, {"revoked_at", 't'}
static const ctl_column_t columns[] = {COLUMNS, {NULL, 0}};

/* The same with the token, for the command that creates it. */
static const ctl_column_t new_columns[] = {COLUMNS, {"token", 's'}, {NULL, 0}};
#define TOKEN_COLUMN 6

/* Store TOKEN's hash and set *RESULT_P to its row. The token itself is not sent
 * to the database. */
static crm_error_t *store(PGresult **result_p, ctl_t *ctl, const char *token)
{
    char bytea[CRM_KEY_BIND_SIZE];
    char id[CRM_UUID_LEN + 1];
    char display[CRM_KEY_SIZE];
    const char *values[5] = {id, NULL, ctl->options[CTL_NAME], bytea,
                             display};

    CRM_ERR(ctl_check_name(ctl, CTL_NAME));
    CRM_ERR(ctl_workspace_id(&values[1], ctl, ctl->options[CTL_WORKSPACE]));
    crm_uuid_v7(id);
    crm_key_bind(bytea, token, strlen(token));
    crm_key_display(display, token, CRM_KEY_INTAKE_PREFIX);
    ctl_audit_object(ctl, values[1], apr_pstrdup(ctl->pool, id));
    return ctl_keep_key(result_p, ctl, "INSERT INTO crmapi.intake_key (id,"
                        " workspace_id, name, key_hash, display) VALUES"
                        " ($1::uuid, $2::uuid, $3::text, $4::bytea, $5::text)"
                        " RETURNING " FIELDS ", NULL::text", 5, values);
}

crm_error_t *ctl_intake_create(ctl_t *ctl)
{
    char token[CRM_KEY_SIZE];
    PGresult *result;

    CRM_ERR(crm_key_generate(token, CRM_KEY_INTAKE_PREFIX, ctl->pool));
    CRM_ERR(store(&result, ctl, token));
    PQsetvalue(result, 0, TOKEN_COLUMN, token, (int)strlen(token));
    ctl_print_one(ctl, token, result, new_columns);
    OPENSSL_cleanse(token, sizeof(token));
    return NULL;
}

crm_error_t *ctl_intake_list(ctl_t *ctl)
{
    return ctl_workspace_rows(ctl, "SELECT " FIELDS " FROM crmapi.intake_key"
                              " WHERE workspace_id = $1::uuid"
                              " ORDER BY created_at, id", columns);
}

crm_error_t *ctl_intake_revoke(ctl_t *ctl)
{
    const char *given = ctl->args[0];
    char id[CRM_UUID_LEN + 1];
    const char *values[2] = {NULL, id};
    PGresult *result;

    if (!crm_uuid_parse(id, given, strlen(given))) {
        /* Do not quote it: it may be the token, given by mistake. */
        return ctl_misuse(ctl, "TOKEN_ID must be an id, as intake list shows "
                          "it");
    }
    CRM_ERR(ctl_owner(&values[0], ctl, CTL_OWNERS("intake_key"), id));
    CRM_ERR(ctl_query(&result, ctl, "UPDATE crmapi.intake_key SET revoked_at ="
                      " crmapi.now_ms() WHERE workspace_id = $1::uuid"
                      " AND id = $2::uuid AND revoked_at IS NULL", 2, values));
    CRM_ERR(ctl_query(&result, ctl, "SELECT " FIELDS " FROM crmapi.intake_key"
                      " WHERE workspace_id = $1::uuid AND id = $2::uuid", 2,
                      values));
    if (!PQntuples(result)) {
        return ctl_fault(ctl, "there is no intake token %s", id);
    }
    ctl_print_one(ctl, NULL, result, columns);
    return NULL;
}

/* ---- agents, and origins of their chats ---------------------------------- */

/* Set *ARRAY_P to the origins in LIST, separated by commas, as a text[]. */
static crm_error_t *read_origins(const char **array_p, ctl_t *ctl,
                                 const char *list)
{
    apr_array_header_t *origins = crm_type_parts(list, ctl->pool);

    for (int i = 0; i < origins->nelts; i++) {
        const char *one = APR_ARRAY_IDX(origins, i, const char *);
        const char *rule = strcmp(one, "*") ? crm_origin_rule(one) : NULL;

        if (rule) {
            return ctl_misuse(ctl, "--origins: \"%s\" %s (or be *)", one, rule);
        }
    }
    *array_p = crm_sql_array(origins, ctl->pool);
    return NULL;
}

/* Give an agent other origins, if there is one. VALUES: workspace, id, origins. */
static crm_error_t *set_origins(ctl_t *ctl, const char *const values[3])
{
    PGresult *result;
    crm_error_t *error;

    CRM_ERR(ctl_begin(ctl));
    error = ctl_query(&result, ctl, "UPDATE crmapi.agent SET chat_origins ="
                      " $3::text[] WHERE workspace_id = $1::uuid"
                      " AND id = $2::uuid RETURNING 1", 3, values);
    if (!error && PQntuples(result)) {
        error = ctl_audit(ctl);
    }
    return ctl_end(ctl, error);
}

crm_error_t *ctl_agent_list(ctl_t *ctl)
{
    static const ctl_column_t shown[] = {
        {"id", 's'}, {"name", 's'}, {"slug", 's'}, {"enabled", 'n'},
        {"public", 'n'}, {"agent_email", 's'}, {"agent_phone", 's'}, {NULL, 0}
    };

    return ctl_workspace_rows(ctl, "SELECT id, name, slug, to_json(enabled),"
                              " to_json(public), agent_email, agent_phone"
                              " FROM crmapi.agent WHERE workspace_id = $1::uuid"
                              " ORDER BY created_at, id", shown);
}

crm_error_t *ctl_agent_origins(ctl_t *ctl)
{
    static const ctl_column_t shown[] = {
        {"id", 's'}, {"name", 's'}, {"origins", 'a'}, {NULL, 0}
    };
    const char *list = ctl->options[CTL_ORIGINS];
    char id[CRM_UUID_LEN + 1];
    const char *values[3] = {NULL, id, NULL};
    PGresult *result;

    CRM_ERR(ctl_uuid(id, ctl, "AGENT_ID", ctl->args[0]));
    ctl->reads = !list;
    if (list) {
        CRM_ERR(read_origins(&values[2], ctl, list));
    }
    CRM_ERR(ctl_owner(&values[0], ctl, CTL_OWNERS("agent"), id));
    if (list) {
        CRM_ERR(set_origins(ctl, values));
    }
    CRM_ERR(ctl_query(&result, ctl, "SELECT id, name, to_json(chat_origins)"
                      " FROM crmapi.agent WHERE workspace_id = $1::uuid"
                      " AND id = $2::uuid", 2, values));
    if (!PQntuples(result)) {
        return ctl_fault(ctl, "there is no agent %s", id);
    }
    ctl_print(ctl, result, shown, 1);
    return NULL;
}
