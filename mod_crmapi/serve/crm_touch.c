/* SPDX-License-Identifier: Apache-2.0 */
/* crm_touch.c: recording when an API key was last used */
#include "crm_touch.h"

#include "crm_call.h"

/* Set SQL to the statement. Its commit does not wait for the disk. Citus takes no
 * function in RETURNING: there the commit waits. */
static void make_sql(crm_sql_t *sql, const crm_call_t *call,
                     const char *workspace_id, const char *key_id)
{
    crm_call_sql(sql, call);
    crm_sql_add(sql, "UPDATE crmapi.api_key t SET last_used_at ="
                " crmapi.now_ms()");
    crm_sql_clause(sql, CRM_SQL_WHERE);
    crm_sql_template(sql, " WHERE t.workspace_id = ?", workspace_id, "uuid");
    crm_sql_template(sql, " AND t.id = ?", key_id, "uuid");
    crm_sql_clause(sql, CRM_SQL_RETURNING);
    crm_sql_add(sql, CRM_SQL_PLAIN " RETURNING"
                " set_config('synchronous_commit', 'off', true)" CRM_SQL_BOTH);
    crm_sql_write(sql, 2, "api_key");
}

void crm_touch(const crm_service_t *service, void *baton,
               const crm_response_t *touched, const char *request_id,
               apr_pool_t *pool)
{
    const crm_request_t request = {.pool = pool, .baton = baton,
                                   .method = "POST",
                                   .request_id = request_id};
    crm_response_t response = {.touch = 0};
    crm_call_t call = {.service = service, .request = &request,
                       .response = &response, .pool = pool};
    crm_rows_t rows;
    crm_sql_t sql;

    if (!crm_call_dialect(&call)) {
        make_sql(&sql, &call, touched->workspace_id, touched->key_id);
        if (!crm_call_write(&rows, &call, &sql)) {
            crm_rows_drop(&rows);
        }
    }
    crm_call_release(&call);
}
