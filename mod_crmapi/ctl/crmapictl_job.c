/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_job.c: the worker's jobs, for whoever looks after them */
#include <string.h>

#include "crmapictl.h"

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
    const char *state = ctl->options[CTL_STATUS];
    const char *const *known = states;
    PGresult *result;

    state = state ? state : "dead";
    while (*known && strcmp(*known, state)) {
        known++;
    }
    if (!*known) {
        return ctl_fault(ctl, "--status must be ready, leased, done, dead or"
                         " cancelled");
    }
    CRM_ERR(ctl_query(&result, ctl, "SELECT " FIELDS " FROM crmapi.job"
                      " WHERE state = $1::text"
                      " ORDER BY run_at, id LIMIT 100", 1, &state));
    ctl_print(ctl, result, columns, 0);
    return NULL;
}

/* A dead webhook or review mail: sequences end with their enrollment, and
 * have nothing to be tried again. */
crm_error_t *ctl_job_retry(ctl_t *ctl)
{
    const char *id = ctl->args[0];
    PGresult *result;

    if (!*id || strlen(id) > 18 || strspn(id, "0123456789") != strlen(id)) {
        return ctl_fault(ctl, "ID must be a number, as job list shows it");
    }
    CRM_ERR(ctl_query(&result, ctl, "UPDATE crmapi.job SET state = 'ready',"
                      " attempts = 0, run_at = statement_timestamp(),"
                      " finished_at = NULL WHERE id = $1::bigint"
                      " AND state = 'dead' RETURNING " FIELDS, 1, &id));
    if (!PQntuples(result)) {
        return ctl_fault(ctl, "there is no dead job %s", id);
    }
    ctl_print_one(ctl, NULL, result, columns);
    return NULL;
}
