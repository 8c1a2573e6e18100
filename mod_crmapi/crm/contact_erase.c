/* SPDX-License-Identifier: Apache-2.0 */
/* contact_erase.c: POST /contacts/{id}/erase (contract 14.4) */
#include "crm_json.h"
#include "crm_op_apply.h"
#include "crm_operations.h"
#include "crm_rest.h"

static void add_call(crm_sql_t *sql, const crm_call_t *call, const void *baton)
{
    (void)baton;
    crm_sql_template(sql, "crmapi.contact_erase(" CRM_SQL_WORKSPACE ", ?",
                     crm_rest(call)->path_id, "uuid");
    crm_sql_template(sql, ", ?", call->key.key_id, "uuid");
    crm_sql_template(sql, ", ?)", call->request->address, "text");
}

/* Write {"data": {"id", "status"}}. */
static void write_status(crm_call_t *call, const char *outcome)
{
    json_object *data = json_object_new_object();
    json_object *body = json_object_new_object();

    json_object_object_add(body, "data", data);
    crm_json_add_text(data, "id", crm_rest(call)->path_id);
    crm_json_add_text(data, "status", outcome);
    crm_buf_puts(&call->response->body, crm_json_end(body, call->pool));
}

/* Each outcome of crmapi.contact_erase() is a status. */
static const crm_apply_t apply = {add_call, NULL, write_status};

crm_error_t *crm_contact_erase(crm_call_t *call)
{
    return crm_op_apply(call, &apply, NULL, crm_rest_no_body(call));
}
