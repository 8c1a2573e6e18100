/* SPDX-License-Identifier: Apache-2.0 */
/* test_registry.c: the tables say what the specification's tables say */
#include "crm_check.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_resources.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof(*(table))))

/* Return the operation whose method and path are NAME, "GET /agents". */
static const crm_operation_t *operation_of(const char *name)
{
    for (int i = 0; crm_registry[i]; i++) {
        const crm_operation_t *operation = crm_registry[i]->operations;

        for (; operation && operation->id; operation++) {
            if (!strcmp(name, apr_pstrcat(crm_check_pool(), operation->method,
                                          " ", operation->path, NULL))) {
                return operation;
            }
        }
    }
    return NULL;
}

START_TEST(resources_and_fields_are_found_by_name)
{
    for (int i = 0; crm_registry[i]; i++) {
        const crm_resource_t *resource = crm_registry[i];
        int count = crm_resource_fields(resource);

        ck_assert_ptr_eq(crm_resource_find(resource->name), resource);
        ck_assert_int_gt(count, 0);
        ck_assert_ptr_null(resource->fields[count].name);
        for (int j = 0; j < count; j++) {
            ck_assert_ptr_eq(crm_resource_field(resource,
                                                resource->fields[j].name),
                             &resource->fields[j]);
        }
        ck_assert_ptr_null(crm_resource_field(resource, "nothing"));
        ck_assert_ptr_null(crm_resource_field(resource, ""));
    }
    ck_assert_ptr_null(crm_resource_find("contacts"));
    ck_assert_ptr_null(crm_resource_find("Contact"));
    ck_assert_ptr_null(crm_resource_find(""));
}
END_TEST

/* The registry's order is that of imports and exports. */
START_TEST(each_comes_after_those_it_refers_to)
{
    for (int i = 0; crm_registry[i]; i++) {
        const crm_field_t *field = crm_registry[i]->fields;

        for (; field->name; field++) {
            int known = 0;

            if (field->type != &crm_type_ref) {
                continue;
            }
            for (int j = 0; j < i; j++) {
                known |= !strcmp(crm_registry[j]->name, field->ref);
            }
            ck_assert_msg(known, "%s.%s refers to %s, which comes later",
                          crm_registry[i]->name, field->name, field->ref);
        }
    }
}
END_TEST

/* --- bodies ----------------------------------------------------------------- */

#define ADDRESS \
    "address_line1 address_line2 city state postal_code country "

/* The fields with a flag, in the order of the tables. */
static const struct {
    const char *resource;
    unsigned flag;
    const char *what;
    const char *fields;
} flagged[] = {
    {"contact", CRM_F_REQUIRED, "required", "bot_id"},
    {"contact", CRM_F_CREATE, "taken by a create",
     "bot_id first_name last_name emails phone_numbers company company_id "
     "job_title lead_source tags deal_value pipeline_stage_id contact_type "
     ADDRESS "linkedin_url notes custom_fields"},
    {"contact", CRM_F_UPDATE, "taken by a PATCH",
     "first_name last_name emails phone_numbers company company_id job_title "
     "lead_source tags deal_value pipeline_stage_id contact_type " ADDRESS
     "linkedin_url notes custom_fields"},
    {"contact", CRM_F_FIXED, "fixed (contract 6.7)", "bot_id"},
    {"contact", CRM_F_NULLABLE, "or null",
     "first_name last_name company company_id job_title lead_source "
     "deal_value pipeline_stage_id contact_type " ADDRESS
     "linkedin_url notes last_contacted_at"},
    {"company", CRM_F_REQUIRED, "required", "bot_id name"},
    {"company", CRM_F_CREATE, "taken by a create",
     "bot_id name domain website industry company_size company_type "
     "employee_count annual_revenue description emails phone_numbers tags "
     "pipeline_stage_id " ADDRESS "linkedin_url notes custom_fields"},
    {"company", CRM_F_UPDATE, "taken by a PATCH",
     "name domain website industry company_size company_type employee_count "
     "annual_revenue description emails phone_numbers tags pipeline_stage_id "
     ADDRESS "linkedin_url notes custom_fields"},
    {"company", CRM_F_FIXED, "fixed (contract 6.7)", "bot_id"},
    {"company", CRM_F_NULLABLE, "or null",
     "domain website industry company_size company_type employee_count "
     "annual_revenue description total_deal_value pipeline_stage_id " ADDRESS
     "linkedin_url notes last_activity_at"},
    {"pipeline_card", CRM_F_REQUIRED, "required", "pipeline_stage_id title"},
    {"pipeline_card", CRM_F_CREATE, "taken by a create",
     "pipeline_stage_id contact_id title description tags order_index"},
    {"pipeline_card", CRM_F_UPDATE, "taken by a PATCH",
     "pipeline_stage_id contact_id title description tags order_index "
     "archived_at"},
    {"pipeline_card", CRM_F_NULLABLE, "or null",
     "contact_id description archived_at"},
    {"activity", CRM_F_REQUIRED, "required", "activity_type"},
    {"activity", CRM_F_CREATE, "taken by a create",
     "contact_id company_id activity_type title description due_date "
     "duration_minutes completed_at metadata"},
    {"activity", CRM_F_UPDATE, "taken by a PATCH", ""},
    {"activity", CRM_F_NULLABLE, "or null",
     "contact_id company_id title description due_date duration_minutes "
     "completed_at"},
    {"conversation", CRM_F_CREATE, "taken by a create", ""},
    {"conversation", CRM_F_UPDATE, "taken by a PATCH",
     "human_takeover assigned_to active archived internal_notes"},
    {"conversation", CRM_F_REFUSED, "refused (contract 6.7)", "deleted"},
    {"conversation", CRM_F_NULLABLE, "or null",
     "contact_id email phone_number human assigned_to assigned_at archived "
     "archived_at deleted deleted_at internal_notes last_message "
     "last_message_at last_active_at sentiment_positive sentiment_score "
     "sentiment_summary audio_url minutes visitor_id"},
    {"message", CRM_F_NULLABLE, "or null",
     "content_type status tool_used tool_arguments"},
    {"form", CRM_F_NULLABLE, "or null", "description"},
    {"submission", CRM_F_NULLABLE, "or null", "contact_id"},
    {"pipeline", CRM_F_NULLABLE, "or null", ""},
    {"pipeline_stage", CRM_F_NULLABLE, "or null", ""},
    {"agent", CRM_F_NULLABLE, "or null",
     "name slug summary agent_role agent_type agent_status agent_color "
     "agent_email agent_phone chat_greeting chat_avatar_intro "
     "chat_avatar_image_url phone_greeting phone_voice_id text_greeting "
     "email_inbound email_outbound_autoreply email_outbound_email "
     "email_outbound_name booking_provider enabled_event_type_ids "
     "popular_topics"},
    {"enrollment", CRM_F_NULLABLE, "or null",
     "generation_error approved_at stop_reason"},
};

START_TEST(the_specifications_notes_on_fields)
{
    const crm_resource_t *resource = crm_resource_find(flagged[_i].resource);
    const char *names = "";

    ck_assert_ptr_nonnull(resource);
    for (const crm_field_t *field = resource->fields; field->name; field++) {
        if (field->flags & flagged[_i].flag
            && !(field->flags & CRM_F_HIDDEN)) {
            names = apr_pstrcat(crm_check_pool(), names, *names ? " " : "",
                                field->name, NULL);
        }
    }
    ck_assert_msg(!strcmp(names, flagged[_i].fields), "%s, %s: %s",
                  resource->name, flagged[_i].what, names);
}
END_TEST

/* Nobody may write what the service itself keeps. */
START_TEST(contract_6_2_read_only_fields)
{
    static const char *const names[] = {
        "id", "workspace_id", "created_at", "updated_at", "last_contacted_at",
        "last_activity_at", "total_deal_value", "assigned_at", "deleted_at",
    };

    for (int i = 0; crm_registry[i]; i++) {
        for (int j = 0; j < COUNT(names); j++) {
            const crm_field_t *field = crm_resource_field(crm_registry[i],
                                                          names[j]);

            ck_assert_msg(!field || !(field->flags & (CRM_F_CREATE
                                                      | CRM_F_UPDATE)),
                          "%s.%s can be written", crm_registry[i]->name,
                          names[j]);
        }
    }
}
END_TEST

/* --- enumerations and limits ------------------------------------------------ */

static const struct {
    const char *resource, *field, *values;
} enumerations[] = {
    {"agent", "agent_type", "internal external both"},
    {"activity", "activity_type",
     "note call meeting video_call task todo reminder"},
    {"enrollment", "status",
     "generating pending_approval approved running stopped_reply "
     "stopped_unsubscribed stopped_user completed failed"},
};

START_TEST(the_specifications_values)
{
    const crm_field_t *field = crm_resource_field(
        crm_resource_find(enumerations[_i].resource), enumerations[_i].field);
    const char *values = "";

    ck_assert_ptr_nonnull(field);
    ck_assert_ptr_eq(field->type, &crm_type_enum);
    for (int i = 0; field->values[i]; i++) {
        values = apr_pstrcat(crm_check_pool(), values, i ? " " : "",
                             field->values[i], NULL);
    }
    ck_assert_str_eq(values, enumerations[_i].values);
}
END_TEST

static const struct {
    const char *resource, *field;
    apr_size_t max;
} limits[] = {
    {"contact", "notes", 65536}, {"company", "notes", 65536},
    {"company", "description", 65536}, {"pipeline_card", "description", 65536},
    {"activity", "description", 65536}, {"message", "content", 65536},
    {"conversation", "internal_notes", 65536},
    {"contact", "linkedin_url", 2048}, {"company", "linkedin_url", 2048},
    {"company", "website", 2048}, {"conversation", "assigned_to", 255},
};

START_TEST(contract_6_3_limits)
{
    const crm_field_t *field = crm_resource_field(
        crm_resource_find(limits[_i].resource), limits[_i].field);

    ck_assert_ptr_nonnull(field);
    ck_assert_msg(field->max == limits[_i].max, "%s.%s has at most %d",
                  limits[_i].resource, limits[_i].field, (int)field->max);
}
END_TEST

/* --- queries ---------------------------------------------------------------- */

#define CONVERSATIONS \
    "visitor_id assigned_to type active archived human_takeover " \
    "include_deleted created_after created_before last_message_after " \
    "last_message_before search"

/* The filters of each list, in any order, the contract's extensions included;
 * page, page_size, sort and order are not filters. */
static const struct {
    const char *operation, *filters;
} queries[] = {
    {"GET /agents", "search slug is_agent enabled agent_type"},
    {"GET /contacts",
     "search tags tags_match lead_source pipeline_stage_id bot_id "
     "created_after created_before updated_after"},
    {"GET /contacts/by-email", "email"},
    {"GET /contacts/{id}/activities", "activity_type"},
    {"GET /contacts/{id}/conversations", "bot_id contact_id " CONVERSATIONS},
    {"GET /companies", "search tags tags_match industry domain bot_id"},
    {"GET /pipelines", "bot_id"},
    {"GET /pipelines/{id}/stages", ""},
    {"GET /pipeline-cards",
     "pipeline_id pipeline_stage_id bot_id contact_id include_archived"},
    {"GET /conversations", "bot_id contact_id " CONVERSATIONS},
    {"GET /conversations/{id}/messages",
     "role created_after created_before include"},
    {"GET /forms", "bot_id"},
    {"GET /forms/{id}/submissions", "include_internal"},
};

/* Return whether NAME is one of the words of LIST. */
static int is_listed(const char *list, const char *name)
{
    return strstr(apr_pstrcat(crm_check_pool(), " ", list, " ", NULL),
                  apr_pstrcat(crm_check_pool(), " ", name, " ", NULL))
           != NULL;
}

START_TEST(the_specifications_query_parameters)
{
    const crm_operation_t *operation = operation_of(queries[_i].operation);
    const crm_filter_t *filter;
    const char *have = "";
    char *last;

    ck_assert_msg(operation != NULL, "no %s", queries[_i].operation);
    for (filter = operation->filters; filter && filter->field.name; filter++) {
        ck_assert_msg(is_listed(queries[_i].filters, filter->field.name),
                      "%s has %s", queries[_i].operation, filter->field.name);
        ck_assert_msg(!is_listed(have, filter->field.name),
                      "%s has %s twice", queries[_i].operation,
                      filter->field.name);
        ck_assert_msg(filter->field.type->parse_query != NULL,
                      "%s cannot read %s", queries[_i].operation,
                      filter->field.name);
        have = apr_pstrcat(crm_check_pool(), have, " ", filter->field.name,
                           NULL);
    }
    for (char *name = apr_strtok(apr_pstrdup(crm_check_pool(),
                                             queries[_i].filters), " ", &last);
         name; name = apr_strtok(NULL, " ", &last)) {
        ck_assert_msg(is_listed(have, name), "%s lacks %s",
                      queries[_i].operation, name);
    }
}
END_TEST

START_TEST(contract_7_orders)
{
    const crm_operation_t *list = operation_of("GET /conversations");

    ck_assert(list->ordered && !list->ascending);
    ck_assert_str_eq(list->sorts[0].name, "created_at");
    ck_assert_str_eq(list->sorts[1].name, "last_message_at");
    ck_assert_msg(list->sorts[1].nulls_last, "contract 7.10");
    ck_assert_ptr_null(list->sorts[2].keys[0]);
    list = operation_of("GET /conversations/{id}/messages");
    ck_assert(list->ordered && list->ascending);
    ck_assert(operation_of("GET /pipelines/{id}/stages")->whole);
    ck_assert(operation_of("GET /pipelines/{id}/stages")->ascending);
    list = operation_of("GET /agents");
    ck_assert(!list->ordered && !list->ascending && !list->whole);
}
END_TEST

/* --- statuses --------------------------------------------------------------- */

static const struct {
    const char *operation;
    int status, location, sequences;
} statuses[] = {
    {"POST /contacts", 201, 1, 0}, {"POST /companies", 201, 1, 0},
    {"POST /pipeline-cards", 201, 1, 0}, {"POST /activities", 201, 0, 0},
    {"POST /contacts/upsert", 200, 0, 0},
    {"POST /sequences/start", 202, 0, 1},
    {"GET /sequences/enrollments/{id}", 200, 0, 1},
    {"POST /sequences/enrollments/{id}/approve", 200, 0, 1},
    {"POST /sequences/enrollments/{id}/stop", 200, 0, 1},
    {"GET /contacts", 200, 0, 0}, {"GET /contacts/{id}", 200, 0, 0},
    {"PATCH /contacts/{id}", 200, 0, 0}, {"PATCH /companies/{id}", 200, 0, 0},
    {"PATCH /pipeline-cards/{id}", 200, 0, 0},
    {"PATCH /conversations/{id}", 200, 0, 0},
    {"DELETE /contacts/{id}", 204, 0, 0},
    {"DELETE /companies/{id}", 204, 0, 0},
    {"DELETE /pipeline-cards/{id}", 204, 0, 0},
    {"DELETE /conversations/{id}", 204, 0, 0},
};

START_TEST(contract_8_statuses_5_4_locations_3_3_plans)
{
    const crm_operation_t *operation = operation_of(statuses[_i].operation);

    ck_assert_msg(operation != NULL, "no %s", statuses[_i].operation);
    ck_assert_msg(operation->kind->status == statuses[_i].status,
                  "%s answers %d", statuses[_i].operation,
                  operation->kind->status);
    ck_assert_msg(!operation->location == !statuses[_i].location,
                  "Location of %s", statuses[_i].operation);
    ck_assert_msg(!operation->sequences == !statuses[_i].sequences,
                  "plan of %s", statuses[_i].operation);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("registry");
    TCase *tables = tcase_create("tables"), *fields = tcase_create("fields");
    TCase *operations = tcase_create("operations");

    tcase_add_test(tables, resources_and_fields_are_found_by_name);
    tcase_add_test(tables, each_comes_after_those_it_refers_to);
    tcase_add_loop_test(fields, the_specifications_notes_on_fields, 0,
                        COUNT(flagged));
    tcase_add_test(fields, contract_6_2_read_only_fields);
    tcase_add_loop_test(fields, the_specifications_values, 0,
                        COUNT(enumerations));
    tcase_add_loop_test(fields, contract_6_3_limits, 0, COUNT(limits));
    tcase_add_loop_test(operations, the_specifications_query_parameters, 0,
                        COUNT(queries));
    tcase_add_test(operations, contract_7_orders);
    tcase_add_loop_test(operations,
                        contract_8_statuses_5_4_locations_3_3_plans, 0,
                        COUNT(statuses));
    suite_add_tcase(suite, tables);
    suite_add_tcase(suite, fields);
    suite_add_tcase(suite, operations);
    return crm_check_main(suite);
}
