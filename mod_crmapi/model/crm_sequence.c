/* SPDX-License-Identifier: Apache-2.0 */
/* crm_sequence.c: changes of enrollments from outside the worker */
#include "crm_sequence.h"

#include <stdlib.h>
#include <string.h>

#include "crm_array.h"
#include "crm_db.h"
#include "crm_sql.h"

/* Statuses of live enrollments (contract 11.7). */
static const char *const live[] = {
    "generating", "pending_approval", "approved", "running"
};

#define PENDING 2u
#define ANY_LIVE 15u

const crm_move_t crm_move_approve = {
    "approved",
    "crmapi.enrollment_approve(" CRM_SQL_WORKSPACE ", ?)", PENDING
};
const crm_move_t crm_move_reject = {
    "rejected",
    "crmapi.enrollment_reject(" CRM_SQL_WORKSPACE ", ?)", PENDING
};
const crm_move_t crm_move_stop = {
    "stopped",
    "crmapi.enrollment_stop(" CRM_SQL_WORKSPACE ", ?, 'stopped by a user')",
    ANY_LIVE
};

int crm_move_allowed(const crm_move_t *move, const char *status)
{
    for (unsigned i = 0; i < CRM_NELTS(live); i++) {
        if (!strcmp(live[i], status)) {
            return (move->from >> i & 1) != 0;
        }
    }
    return 0;
}

crm_error_t *crm_sequence_event(int *changed_p, crm_conn_t *conn,
                                const crm_sequence_event_t *event,
                                apr_pool_t *scratch_pool)
{
    static const char *const calls[] = {
        [CRM_EVENT_REPLY] = "SELECT crmapi.contact_replied($1::uuid,"
            " $2::uuid)",
        [CRM_EVENT_SUPPRESS] = "SELECT crmapi.suppress($1::uuid, $2::text,"
            " $3::text, $4::text)",
        [CRM_EVENT_LIFT] = "SELECT crmapi.suppress_lift($1::uuid, $2::text,"
            " $3::text)",
    };
    static const int counts[] = {2, 4, 3};
    const char *values[4] = {event->workspace_id, event->email,
                             event->phone_number, event->reason};
    crm_stmt_t stmt = {calls[event->event], counts[event->event], values};
    PGresult *result;

    if (event->event == CRM_EVENT_REPLY) {
        values[1] = event->contact_id;
    }
    CRM_ERR(crm_db_query(&result, conn, &stmt, scratch_pool));
    *changed_p = atoi(PQgetvalue(result, 0, 0));
    return NULL;
}
