/* SPDX-License-Identifier: Apache-2.0 */
/* crm_intake_site.c: the mount of channel intake over HTTP */
#include "crm_intake_site.h"

#include "crm_time.h"
#include "intake_chat.h"
#include "intake_event.h"
#include "intake_form.h"
#include "intake_twilio.h"

crm_mount_t crm_intake_mount = {.other = &crm_access_anybody};

void crm_intake_init(apr_pool_t *pool)
{
    static const crm_route_t *const tables[] = {
        crm_intake_event_routes, crm_intake_twilio_routes,
        crm_intake_form_routes, crm_intake_chat_routes, NULL
    };

    crm_intake_mount.router = crm_router_create(tables, "intake", NULL, pool);
}

crm_error_t *crm_intake_take_all(crm_intake_batch_t *batch, crm_call_t *call)
{
    apr_time_t began;
    crm_error_t *error;
    crm_conn_t *conn;

    CRM_ERR(crm_call_conn(&conn, call));
    call->response->workspace_id = batch->workspace_id;
    began = crm_time_monotonic();
    error = crm_intake(batch, conn, call->pool);
    crm_call_count(call, began);
    return error;
}

crm_error_t *crm_intake_take(crm_intake_result_t *result, crm_call_t *call,
                             const char *workspace_id,
                             crm_intake_event_t *event)
{
    crm_intake_batch_t batch = {.workspace_id = workspace_id, .events = event,
                                .results = result, .count = 1};
    crm_error_t *error = NULL;

    crm_intake_tidy(event, call->pool);
    CRM_ERR(crm_intake_take_all(&batch, call));
    crm_intake_refused(&error, result, call->pool);
    return error;
}

crm_error_t *crm_intake_find_agent(crm_intake_agent_t *agent, crm_call_t *call,
                                   const char *email, const char *phone,
                                   const char *workspace)
{
    apr_time_t began;
    crm_error_t *error;
    crm_conn_t *conn;

    CRM_ERR(crm_call_conn(&conn, call));
    began = crm_time_monotonic();
    error = crm_intake_agent(agent, conn, email, phone,
                             workspace ? workspace
                                       : call->service->settings.workspace,
                             call->pool);
    crm_call_count(call, began);
    return error;
}
