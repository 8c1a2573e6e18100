/* SPDX-License-Identifier: Apache-2.0 */
/* contact_merge.c: POST /contacts/{id}/merge (contract 20.5) */
#include <string.h>

#include "apr_strings.h"

#include "crm_op_apply.h"
#include "crm_operations.h"
#include "crm_rest.h"

static const crm_field_t from_field = {
    .name = "from", .type = &crm_type_ref, .ref = "contact",
};

/* Set *FROM_P to the contact that BODY names. Errors are added to INPUT. */
static void read_from(const char **from_p, crm_input_t *input,
                      json_object *body)
{
    json_object *from = json_object_object_get(body, from_field.name);

    crm_rest_unknown(input, body, from_field.name);
    if (from) {
        crm_type_parse(from_p, input, &from_field, from_field.name, from);
    }
    else {
        crm_input_error(input, from_field.name, "is required");
    }
}

/* Add the call that merges the contact FROM into CALL's. */
static void add_call(crm_sql_t *sql, const crm_call_t *call, const void *from)
{
    crm_sql_template(sql, "crmapi.contact_merge(" CRM_SQL_WORKSPACE ", ?",
                     crm_rest(call)->path_id, "uuid");
    crm_sql_template(sql, ", ?)", from, "uuid");
}

/* Return the error of OUTCOME, what crmapi.contact_merge() returned, or NULL. */
static crm_error_t *check_outcome(crm_call_t *call, const char *outcome,
                                  const void *from)
{
    crm_error_t *error = NULL;
    const char *rule;

    (void)from;
    if (!strcmp(outcome, "merged") || !strcmp(outcome, "done")) {
        return NULL;
    }
    rule = !strcmp(outcome, "unknown") ? crm_ref_rule("contact", call->pool)
           : !strcmp(outcome, "elsewhere") ? "was merged into another contact"
           : apr_psprintf(call->pool, "has too many %s for both", outcome);
    crm_error_detail(&error, from_field.name, rule, call->pool);
    return error;
}

static const crm_apply_t apply = {add_call, check_outcome, NULL};

crm_error_t *crm_contact_merge(crm_call_t *call)
{
    const char *from = NULL;
    json_object *body;
    crm_input_t input;
    crm_error_t *error = crm_rest_body(&body, &input, call);

    if (!error) {
        read_from(&from, &input, body);
        if (from && crm_rest(call)->path_id
            && !strcmp(from, crm_rest(call)->path_id)) {
            crm_input_error(&input, from_field.name,
                            "must be another contact");
        }
        error = input.error;
    }
    return crm_op_apply(call, &apply, from, error);
}
