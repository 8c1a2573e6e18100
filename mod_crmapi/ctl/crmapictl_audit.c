/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_audit.c: who changed what (contract 14.7) */
#include "crmapictl_audit.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apr_strings.h"

#include "crm_json.h"
#include "crm_text.h"
#include "crmapictl_options.h"
#include "crmapictl_output.h"
#include "crmapictl_workspace.h"

/* The options whose values are kept. Of all others only the name is: an address, a
 * name, a reason or a URL may say who a person is, or be a secret. */
#define VALUES (CTL_BIT(CTL_PLAN) | CTL_BIT(CTL_API) | CTL_BIT(CTL_SEQUENCES) \
    | CTL_BIT(CTL_SCOPES) | CTL_BIT(CTL_STATUS) | CTL_BIT(CTL_ORIGINS) \
    | CTL_BIT(CTL_ALL) | CTL_BIT(CTL_READ_LIMIT) | CTL_BIT(CTL_WRITE_LIMIT) \
    | CTL_BIT(CTL_EXPIRES) | CTL_BIT(CTL_ADDRESS) | CTL_BIT(CTL_KEEP_DAYS) \
    | CTL_BIT(CTL_AS) | CTL_BIT(CTL_SKIP_DUE_BEFORE) | CTL_BIT(CTL_CURRENCY) \
    | CTL_BIT(CTL_TIME_ZONE) | CTL_BIT(CTL_SENDER_DOMAINS) \
    | CTL_BIT(CTL_OVERLAP) | CTL_BIT(CTL_SLUG) | CTL_BIT(CTL_EVENTS) \
    | CTL_BIT(CTL_RETENTION_CONVERSATIONS) \
    | CTL_BIT(CTL_RETENTION_SUBMISSIONS) | CTL_BIT(CTL_RETENTION_EVENTS) \
    | CTL_BIT(CTL_CREATE) | CTL_BIT(CTL_PRUNE) | CTL_BIT(CTL_MOVE_TO))

/* Return TEXT if it is UTF-8, else NULL. */
static const char *valid(const char *text)
{
    return text && crm_text_valid_utf8(text, strlen(text)) ? text : NULL;
}

/* Return the system user who runs CTL, and who became that user by sudo. */
static const char *who(ctl_t *ctl)
{
    const struct passwd *entry = getpwuid(getuid());
    const char *sudo = valid(getenv("SUDO_USER"));
    const char *name = entry && valid(entry->pw_name) ? entry->pw_name
                       : apr_psprintf(ctl->pool, "uid %lu",
                                      (unsigned long)getuid());

    return !sudo || !*sudo || !strcmp(sudo, name) ? name
           : apr_pstrcat(ctl->pool, sudo, " as ", name, NULL);
}

/* Return the host that runs CTL, and that of its SSH session. */
static const char *where(ctl_t *ctl)
{
    const char *ssh = valid(getenv("SSH_CONNECTION"));
    char host[256] = "";

    if (gethostname(host, sizeof(host) - 1) || !valid(host)) {
        strcpy(host, "?");
    }
    return !ssh || !*ssh ? apr_pstrdup(ctl->pool, host)
           : apr_pstrcat(ctl->pool, host, " from ",
                         apr_pstrmemdup(ctl->pool, ssh, strcspn(ssh, " ")),
                         NULL);
}

/* Return the options that were given as a JSON object. */
static const char *options_of(ctl_t *ctl)
{
    json_object *object = json_object_new_object();

    for (int i = CTL_VERSION + 1; i < CTL_OPTIONS; i++) {
        const char *value = valid(ctl->options[i]);

        if (i == CTL_WORKSPACE || !ctl->options[i]) {
            continue;
        }
        json_object_object_add(object, ctl_options[i].name,
                               !(VALUES & CTL_BIT(i)) || !value ? NULL
                               : ctl_options[i].value
                               ? json_object_new_string(value)
                               : json_object_new_boolean(1));
    }
    return crm_json_end(object, ctl->pool);
}

/* Return the operand that names the object, NULL if none does: it is a file, or the
 * workspace, whose copies would have the id of another one. */
static const char *operand_of(ctl_t *ctl)
{
    const ctl_command_t *command = ctl->command;

    return !command->operand || !strncmp(command->operand, "FILE", 4) ? NULL
           : !strcmp(command->operand, "W") ? NULL
           : valid(ctl->args[1] ? ctl->args[1] : ctl->args[0]);
}

void ctl_audit_object(ctl_t *ctl, const char *workspace, const char *id)
{
    ctl->workspace = workspace;
    ctl->object = id;
}

crm_error_t *ctl_audit(ctl_t *ctl)
{
    const ctl_command_t *command = ctl->command;
    const char *values[7];
    PGresult *result;

    values[0] = ctl->workspace;
    values[1] = who(ctl);
    values[2] = where(ctl);
    values[3] = command->verb ? apr_pstrcat(ctl->pool, command->group, " ",
                                            command->verb, NULL)
                : command->group;
    values[4] = command->group;
    values[5] = ctl->object ? ctl->object : operand_of(ctl);
    values[6] = options_of(ctl);
    ctl->audited = 1;
    return ctl_query(&result, ctl, "SELECT crmapi.audit_add($1::uuid, 'system',"
                     " $2::text, $3::text, $4::text, $5::text, $6::text,"
                     " $7::jsonb)", 7, values);
}

/* Set *VALUE_P to OPTION, a time, as a value of SQL, NULL if it was not given. */
static crm_error_t *get_time(const char **value_p, ctl_t *ctl,
                             ctl_option_t option)
{
    *value_p = NULL;
    return ctl->options[option] ? ctl_time(value_p, NULL, ctl, option, "")
           : NULL;
}

/* The rows of a workspace are followed by those of the database that are about it:
 * how it was created, restored and deleted. */
crm_error_t *ctl_audit_list(ctl_t *ctl)
{
    static const ctl_column_t columns[] = {
        {"at", 't'}, {"workspace_id", 's'}, {"actor_kind", 's'},
        {"actor", 's'}, {"login", 's'}, {"origin", 's'}, {"action", 's'},
        {"object", 's'}, {"object_id", 's'}, {"details", 'n'}, {NULL, 0}
    };
    const char *values[3];
    PGresult *result;

    CRM_ERR(get_time(&values[1], ctl, CTL_FROM));
    CRM_ERR(get_time(&values[2], ctl, CTL_TO));
    CRM_ERR(ctl_period(ctl));
    values[0] = NULL;
    if (ctl->options[CTL_WORKSPACE]) {
        CRM_ERR(ctl_workspace_id(&values[0], ctl,
                                 ctl->options[CTL_WORKSPACE]));
    }
    CRM_ERR(ctl_query(&result, ctl, "SELECT a.at, nullif(a.workspace_id,"
                      " '00000000-0000-0000-0000-000000000000'), a.actor_kind,"
                      " a.actor, a.login, a.origin, a.action, a.object,"
                      " CASE WHEN a.object_id IS NULL AND a.object IN"
                      " ('workspace', 'link-key') THEN a.workspace_id::text ELSE"
                      " a.object_id END, a.details FROM crmapi.audit a WHERE"
                      " ($1::uuid IS NULL OR a.workspace_id = $1::uuid OR"
                      " a.workspace_id = '00000000-0000-0000-0000-000000000000'"
                      " AND a.object_id = $1::text) AND ($2::timestamptz IS NULL"
                      " OR a.at >= $2::timestamptz) AND ($3::timestamptz IS NULL"
                      " OR a.at <= $3::timestamptz) ORDER BY a.at DESC, a.id DESC",
                      3, values));
    ctl_print(ctl, result, columns, 0);
    return NULL;
}
