/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_erase.c: erasures that the API has begun (contract 14.4) */
#include "crmapid_erase.h"

#include <string.h>

#include "crmapid_outbox.h"

/* The time between two attempts while something is being sent to the person. */
#define WAIT apr_time_from_sec(1)

/* Return the only entry of the member "contact_ids" of WORK's payload; NULL if there
 * is none. An array, because a payload that has the id as a text is a job of the
 * person. */
static const char *contact_of(const crmd_work_t *work)
{
    json_object *ids = json_object_object_get(work->job->payload,
                                              "contact_ids");

    return json_object_is_type(ids, json_type_array)
           ? json_object_get_string(json_object_array_get_idx(ids, 0)) : NULL;
}

crm_error_t *crmd_erase_contact(crmd_work_t *work)
{
    const char *values[2] = {work->job->workspace_id, contact_of(work)};
    apr_int64_t count;
    PGresult *result;

    CRM_ERR(crmd_query(&result, work, "SELECT crmapi.contact_erase($1::uuid,"
                       " $2::uuid, NULL, NULL)", 2, values));
    if (!strcmp(PQgetvalue(result, 0, 0), "busy")) {
        crmd_work_retry(work, WAIT, "something is being sent to the person");
        return NULL;
    }
    return crmd_outbox_forget(&count, work->config->maildir, work->conn,
                              work->pool);
}
