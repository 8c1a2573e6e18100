/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_link.c: the keys that sign a workspace's links; they never leave the
 * database */
#include "crmapictl_link.h"

#include "apr_strings.h"

#include "crm_db.h"
#include "crmapictl_options.h"
#include "crmapictl_output.h"
#include "crmapictl_workspace.h"

/* The maximum of --keep-days: ten years. */
#define KEEP_MAX 3650

static const ctl_column_t columns[] = {
    {"workspace_id", 's'}, {"old_key_until", 't'}, {NULL, 0}
};

/* Print the state of the keys of the workspace ID. For an old key that does not
 * expire, print "infinity". */
static crm_error_t *print(ctl_t *ctl, const char *id)
{
    PGresult *result;

    CRM_ERR(ctl_query(&result, ctl, "SELECT workspace_id, old_key_until"
                      " FROM crmapi.link_key WHERE workspace_id = $1::uuid", 1,
                      &id));
    ctl_print_one(ctl, NULL, result, columns);
    return NULL;
}

crm_error_t *ctl_link_key_rotate(ctl_t *ctl)
{
    const char *values[2] = {NULL, NULL};
    PGresult *result;
    long days = 0;

    CRM_ERR(ctl_number(&days, ctl, CTL_KEEP_DAYS, KEEP_MAX));
    if (ctl->options[CTL_KEEP_DAYS]) {
        values[1] = apr_psprintf(ctl->pool, "%ld", days);
    }
    CRM_ERR(ctl_workspace_id(&values[0], ctl, ctl->args[0]));
    CRM_ERR(ctl_query(&result, ctl, "SELECT crmapi.link_key_rotate($1::uuid,"
                      " coalesce(now() + make_interval(days => $2::integer),"
                      " 'infinity'))", 2, values));
    if (*PQgetvalue(result, 0, 0) != 't') {
        return ctl_fault(ctl, "links signed with the old key are still valid:"
                         " run crmapictl link-key drop %s first, or wait"
                         " until they expire", ctl->args[0]);
    }
    return print(ctl, values[0]);
}

crm_error_t *ctl_link_key_drop(ctl_t *ctl)
{
    PGresult *result;
    const char *id;

    CRM_ERR(ctl_workspace_id(&id, ctl, ctl->args[0]));
    CRM_ERR(ctl_query(&result, ctl, "SELECT crmapi.link_key_drop($1::uuid)", 1,
                      &id));
    return print(ctl, id);
}
