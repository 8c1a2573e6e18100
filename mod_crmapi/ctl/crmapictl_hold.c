/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_hold.c: holding what sends, and releasing it (contract 14.2) */
#include "crmapictl_hold.h"

#include <string.h>

#include "crmapictl_audit.h"
#include "crmapictl_options.h"
#include "crmapictl_output.h"
#include "crmapictl_person.h"
#include "crmapictl_workspace.h"

#define DEFAULT_REASON "held by an operator"

/* Hold the workspace ID, or the database if it is NULL. Print since when, why,
 * and how many messages are being sent now. */
static crm_error_t *hold(ctl_t *ctl, const char *id)
{
    static const ctl_column_t columns[] = {
        {"held_at", 't'}, {"held_reason", 's'}, {"being_sent", 'n'},
        {NULL, 0}
    };
    const char *values[2] = {id, NULL};
    PGresult *result;

    CRM_ERR(ctl_reason(&values[1], ctl, DEFAULT_REASON));
    CRM_ERR(ctl_query(&result, ctl, "SELECT crmapi.hold($1::uuid, $2::text)",
                      2, values));
    values[1] = PQgetvalue(result, 0, 0);
    CRM_ERR(ctl_query(&result, ctl, "SELECT h.held_at, h.reason, $2::bigint"
                      " FROM (SELECT h.held_at, h.reason FROM"
                      "  crmapi.workspace_hold h WHERE h.workspace_id ="
                      "  $1::uuid UNION ALL SELECT i.held_at, i.held_reason"
                      "  FROM crmapi.instance i WHERE $1::uuid IS NULL) h", 2,
                      values));
    ctl_print(ctl, result, columns, 1);
    return NULL;
}

/* Set *VALUE_P to --skip-due-before as a value of SQL, NULL if it is not given. */
static crm_error_t *get_bound(const char **value_p, ctl_t *ctl)
{
    PGresult *result;

    *value_p = NULL;
    if (!ctl->options[CTL_SKIP_DUE_BEFORE]) {
        return NULL;
    }
    CRM_ERR(ctl_time(value_p, NULL, ctl, CTL_SKIP_DUE_BEFORE, ""));
    CRM_ERR(ctl_query(&result, ctl, "SELECT $1::timestamptz > now()", 1,
                      value_p));
    return *PQgetvalue(result, 0, 0) != 't' ? NULL
           : ctl_fault(ctl, "--skip-due-before must not be in the future");
}

/* Erase in the workspace ID, or in all if it is NULL, whom the journal says to have
 * been erased: a backup may have brought them back. */
static crm_error_t *erase_again(ctl_t *ctl, const char *id)
{
    apr_int64_t erased;
    PGresult *result;

    CRM_ERR(ctl_query(&result, ctl, "SELECT w.id FROM crmapi.workspace w"
                      " WHERE ($1::uuid IS NULL OR w.id = $1::uuid) AND EXISTS"
                      " (SELECT FROM crmapi.erasure e WHERE e.workspace_id ="
                      " w.id) ORDER BY w.id", 1, &id));
    for (int i = 0; i < PQntuples(result); i++) {
        const char *workspace = PQgetvalue(result, i, 0);

        CRM_ERR(ctl_erase_again(&erased, ctl, workspace, workspace));
    }
    return NULL;
}

/* Release the workspace ID, or the database if it is NULL, and if ALL every
 * workspace as well. Print how many holds have ended. */
static crm_error_t *release(ctl_t *ctl, const char *id, int all)
{
    static const ctl_column_t columns[] = {{"released", 'n'}, {NULL, 0}};
    const char *values[3] = {id, all ? "t" : "f"};
    crm_error_t *error;
    PGresult *result;

    CRM_ERR(get_bound(&values[2], ctl));
    CRM_ERR(erase_again(ctl, id));
    error = values[2]
            ? ctl_query(&result, ctl, "SELECT crmapi.release($1::uuid,"
                        " $2::boolean, $3::timestamptz)", 3, values)
            : ctl_query(&result, ctl, "SELECT crmapi.release($1::uuid,"
                        " $2::boolean)", 2, values);
    if (crm_error_is(error, "23505")) {
        return ctl_fault(ctl, "%s: hold that one, or delete one of the two",
                         error->log);
    }
    CRM_ERR(error);
    ctl_print(ctl, result, columns, 1);
    return NULL;
}

crm_error_t *ctl_hold(ctl_t *ctl)
{
    return hold(ctl, NULL);
}

crm_error_t *ctl_release(ctl_t *ctl)
{
    return release(ctl, NULL, ctl->options[CTL_ALL] != NULL);
}

/* Set *CLOSED_P to what --api says: "t" for off, "f" for on, NULL without it. */
static crm_error_t *get_closed(const char **closed_p, ctl_t *ctl)
{
    const char *api = ctl->options[CTL_API];

    *closed_p = !api ? NULL : !strcmp(api, "off") ? "t" : "f";
    return !api || !strcmp(api, "on") || !strcmp(api, "off") ? NULL
           : ctl_misuse(ctl, "--api must be on or off");
}

/* Close the API of the workspace ID, or open it, as CLOSED, a boolean of SQL, says. */
static crm_error_t *set_closed(ctl_t *ctl, const char *id, const char *closed)
{
    const char *values[2] = {id, closed};
    PGresult *result;

    return ctl_query(&result, ctl, "SELECT crmapi.hold_close($1::uuid,"
                     " $2::boolean)", 2, values);
}

/* Close the API of the workspace ID, if it is held itself. */
static crm_error_t *close_held(ctl_t *ctl, const char *id)
{
    PGresult *result;

    CRM_ERR(ctl_query(&result, ctl, "SELECT FROM crmapi.workspace_hold h WHERE"
                      " h.workspace_id = $1::uuid FOR UPDATE", 1, &id));
    return PQntuples(result) ? set_closed(ctl, id, "t")
           : ctl_fault(ctl, "the workspace is not held: hold it first, so that"
                       " nothing is sent from here any more: crmapictl workspace"
                       " hold");
}

crm_error_t *ctl_hold_close(ctl_t *ctl, const char *id)
{
    crm_error_t *error;

    ctl_audit_object(ctl, NULL, id);
    CRM_ERR(ctl_begin(ctl));
    error = close_held(ctl, id);
    CRM_ERR(ctl_end(ctl, error ? error : ctl_audit(ctl)));
    return ctl_events_wait(ctl, id);
}

crm_error_t *ctl_workspace_hold(ctl_t *ctl)
{
    const char *values[2];
    crm_error_t *error;

    CRM_ERR(get_closed(&values[1], ctl));
    CRM_ERR(ctl_workspace_id(&values[0], ctl, ctl->args[0]));
    ctl_audit_object(ctl, NULL, values[0]);
    CRM_ERR(ctl_begin(ctl));
    error = hold(ctl, values[0]);
    if (!error && values[1]) {
        error = set_closed(ctl, values[0], values[1]);
    }
    CRM_ERR(ctl_end(ctl, error ? error : ctl_audit(ctl)));
    /* for those who may write without seeing that */
    return values[1] && *values[1] == 't' ? ctl_events_wait(ctl, values[0])
           : NULL;
}

crm_error_t *ctl_workspace_release(ctl_t *ctl)
{
    const char *id;

    CRM_ERR(ctl_workspace_id(&id, ctl, ctl->args[0]));
    ctl_audit_object(ctl, NULL, id);
    return release(ctl, id, 0);
}
