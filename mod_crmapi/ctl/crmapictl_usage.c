/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_usage.c: what a workspace has used (contract 14.7) */
#include "crmapictl_usage.h"

#include <string.h>

#include "crmapictl_options.h"
#include "crmapictl_output.h"
#include "crmapictl_workspace.h"

/* Set *DAY_P to OPTION, a date, NULL if it was not given. */
static crm_error_t *get_day(const char **day_p, ctl_t *ctl, ctl_option_t option)
{
    const char *given = ctl->options[option], *time;

    *day_p = given;
    if (given && (strlen(given) != strlen("2027-01-31")
                  || ctl_time(&time, NULL, ctl, option, ""))) {
        return ctl_misuse(ctl, "--%s must be a date like 2027-01-31",
                          ctl_options[option].name);
    }
    return NULL;
}

crm_error_t *ctl_usage(ctl_t *ctl)
{
    static const ctl_column_t columns[] = {
        {"day", 's'}, {"requests", 'n'}, {"limited", 'n'},
        {"messages_in", 'n'}, {"messages_out", 'n'}, {"webhooks", 'n'},
        {"storage", 'n'}, {NULL, 0}
    };
    const char *values[3];
    PGresult *result;

    CRM_ERR(get_day(&values[1], ctl, CTL_FROM));
    CRM_ERR(get_day(&values[2], ctl, CTL_TO));
    CRM_ERR(ctl_period(ctl));
    CRM_ERR(ctl_workspace_id(&values[0], ctl, ctl->args[0]));
    CRM_ERR(ctl_query(&result, ctl, "SELECT u.day, u.requests, u.limited,"
                      " u.messages_in, u.messages_out, u.webhooks, u.storage FROM"
                      " crmapi.usage_list($1::uuid, coalesce($2::date,"
                      " coalesce($3::date, current_date) - 30),"
                      " coalesce($3::date, current_date)) u", 3, values));
    ctl_print(ctl, result, columns, 0);
    return NULL;
}
