/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_job.c: the worker's jobs */
#include "crmapictl_job.h"

#include <string.h>

#include "crmapictl_options.h"
#include "crmapictl_output.h"
#include "crmapictl_workspace.h"

static const ctl_column_t columns[] = {
    {"id", 'n'}, {"workspace_id", 's'}, {"kind", 's'}, {"state", 's'},
    {"attempts", 'n'}, {"run_at", 't'}, {"leased_by", 's'},
    {"last_error", 's'}, {"payload", 's'}, {NULL, 0}
};

#define FIELDS "id, workspace_id, kind, state, attempts, run_at, leased_by," \
    " last_error, payload"

crm_error_t *ctl_job_list(ctl_t *ctl)
{
    static const char *const states[] = {
        "ready", "leased", "done", "dead", "cancelled", NULL
    };
    const char *named = ctl->options[CTL_WORKSPACE];
    const char *state = ctl->options[CTL_STATUS];
    const char *values[2] = {NULL, state ? state : "dead"};
    PGresult *result;

    CRM_ERR(ctl_known_status(ctl, states));
    if (named) {
        CRM_ERR(ctl_workspace_id(&values[0], ctl, named));
    }
    CRM_ERR(ctl_query(&result, ctl, "SELECT " FIELDS " FROM crmapi.job"
                      " WHERE ($1::uuid IS NULL OR workspace_id = $1::uuid)"
                      " AND state = $2::text"
                      " ORDER BY run_at, id LIMIT 100", 2, values));
    ctl_print(ctl, result, columns, 0);
    return NULL;
}

/* Only webhooks and review mails can be retried. Jobs of sequences end with
 * their enrollment. */
crm_error_t *ctl_job_retry(ctl_t *ctl)
{
    const char *id = ctl->args[0];
    const char *values[2] = {NULL, id};
    PGresult *result;

    if (!*id || strlen(id) > 18 || strspn(id, "0123456789") != strlen(id)) {
        return ctl_misuse(ctl, "ID must be a number, as job list shows it");
    }
    CRM_ERR(ctl_owner(&values[0], ctl, CTL_OWNERS("job"), id));
    CRM_ERR(ctl_query(&result, ctl, "UPDATE crmapi.job SET state = 'ready',"
                      " attempts = 0, run_at = statement_timestamp(),"
                      " finished_at = NULL WHERE workspace_id = $1::uuid"
                      " AND id = $2::bigint AND state = 'dead'"
                      " RETURNING " FIELDS, 2, values));
    if (!PQntuples(result)) {
        return ctl_fault(ctl, "there is no dead job %s", id);
    }
    ctl_print_one(ctl, NULL, result, columns);
    return NULL;
}
