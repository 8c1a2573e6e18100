/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_rights.c: what the key of a call may do */
#include "mcp_rights.h"

#include "crm_access.h"
#include "crm_rest.h"

/* Return whether COLUMN of the first of ROWS is true. */
static int is_true(const crm_rows_t *rows, int column)
{
    const char *value = crm_db_value(rows->result, rows->first, column);

    return value && *value == 't';
}

crm_error_t *mcp_rights_read(mcp_rights_t *rights, crm_call_t *call)
{
    crm_error_t *error = NULL;
    crm_rows_t rows;
    crm_sql_t sql;

    CRM_ERR(crm_call_dialect(call));
    crm_rest_sql(&sql, call);
    crm_sql_add(&sql, "SELECT k.plan_api, k.write, k.plan_sequences, k.closed"
                " FROM" CRM_PERMIT_ROW);
    CRM_ERR(crm_call_read(&rows, call, &sql, 1));
    if (!rows.count) {
        return crm_access_check(call);
    }
    if (is_true(&rows, 3)) {
        error = crm_rest_closed(call);
    }
    else if (!is_true(&rows, 0)) {
        error = crm_error_create(CRM_E_FORBIDDEN, "The workspace's plan does"
                                 " not include the API", call->pool);
    }
    rights->write = is_true(&rows, 1);
    rights->sequences = is_true(&rows, 2);
    crm_rows_drop(&rows);
    return error;
}

crm_error_t *mcp_rights_check(crm_call_t *call, const mcp_tool_t *tool)
{
    crm_rest_t rest = {.endpoint = tool->route->data};
    void *state = call->state;
    crm_error_t *error;

    CRM_ERR(crm_call_dialect(call));
    call->state = &rest;
    error = crm_rest_refuse(call, NULL, NULL);
    call->state = state;
    return error;
}
