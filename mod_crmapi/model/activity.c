/* SPDX-License-Identifier: Apache-2.0 */
/* activity.c: activities (specification: Activity) */
#include "crm_filters.h"
#include "crm_resources.h"
#include "crm_type_list.h"

static const char *const activity_types[] = {
    "note", "call", "meeting", "video_call", "task", "todo", "reminder", NULL
};

static const crm_field_t fields[] = {
    {.name = "id", .type = &crm_type_uuid},
    {.name = "contact_id", .type = &crm_type_ref,
     .flags = CRM_F_NULLABLE | CRM_F_CREATE | CRM_F_FIXED, .ref = "contact",
     .doc = "this or company_id is set"},
    {.name = "company_id", .type = &crm_type_ref,
     .flags = CRM_F_NULLABLE | CRM_F_CREATE | CRM_F_FIXED, .ref = "company"},
    {.name = "activity_type", .type = &crm_type_enum,
     .flags = CRM_F_REQUIRED | CRM_F_CREATE | CRM_F_FIXED,
     .values = activity_types},
    {.name = "title", .type = &crm_type_text, .flags = CRM_F_OPTIONAL},
    {.name = "description", .type = &crm_type_text,
     .flags = CRM_F_OPTIONAL, .max = 65536},
    {.name = "due_date", .type = &crm_type_time, .flags = CRM_F_OPTIONAL,
     .doc = "used for task, todo, reminder"},
    {.name = "duration_minutes", .type = &crm_type_number,
     .flags = CRM_F_OPTIONAL, .doc = "useful for call, meeting, video_call"},
    {.name = "completed_at", .type = &crm_type_time, .flags = CRM_F_OPTIONAL,
     .doc = "marks the activity done"},
    {.name = "metadata", .type = &crm_type_object, .flags = CRM_F_WRITABLE,
     .doc = "free-form JSON"},
    {.name = "created_at", .type = &crm_type_time},
    {.name = "updated_at", .type = &crm_type_time},
    {.name = NULL}
};

/* The filters that lists below a contact or company have, too. */
#define FILTERS \
    {.field = {.name = "activity_type", .type = &crm_type_enum, \
               .values = activity_types, .doc = "only this type"}, \
     .by = CRM_BY_VALUE, \
     .sql = CRM_FILTER_IS("t.activity_type"), .order = "t.created_at"}, \
    {.field = {.name = "completed", .type = &crm_type_boolean, \
               .doc = "whether it has completed_at"}, \
     .by = CRM_BY_BOOLEAN, \
     .sql = "t.completed_at IS NOT NULL", \
     .sql_false = "t.completed_at IS NULL"}, \
    {.field = {.name = "due_after", .type = &crm_type_time, \
               .doc = "inclusive"}, \
     .by = CRM_BY_VALUE, \
     .sql = "t.due_date >= ?", .order = "t.due_date"}, \
    {.field = {.name = "due_before", .type = &crm_type_time, \
               .doc = "inclusive"}, \
     .by = CRM_BY_VALUE, \
     .sql = "t.due_date <= ?", .order = "t.due_date"}, \
    CRM_FILTER_CREATED("t.created_at"), \
    CRM_FILTER_UPDATED

static const crm_filter_t list_filters[] = {
    {.field = {.name = "contact_id", .type = &crm_type_ref,
               .doc = "only activities of this contact"},
     .by = CRM_BY_VALUE,
     .sql = CRM_FILTER_IS("t.contact_id"), .order = "t.created_at"},
    {.field = {.name = "company_id", .type = &crm_type_ref,
               .doc = "only activities of this company"},
     .by = CRM_BY_VALUE,
     .sql = CRM_FILTER_IS("t.company_id"), .order = "t.created_at"},
    FILTERS,
    {.field = {.name = NULL}}
};

static const crm_filter_t filters_below[] = {
    FILTERS,
    {.field = {.name = NULL}}
};

static const crm_sort_t orders[] = {
    {.name = "created_at", .keys = {"t.created_at"}},
    {.name = "due_date", .keys = {"t.due_date"}, .ascending = 1,
     .nulls_last = 1},
    {.name = "updated_at", .keys = {"t.updated_at"}, .ascending = 1},
    {.name = NULL}
};

static const crm_operation_t operations[] = {
    {.id = "listActivities", .method = "GET", .path = "/activities",
     .kind = CRM_OP_LIST,
     .filters = list_filters,
     .sorts = orders,
     .ordered = 1,
     .doc = "Notes, calls, meetings and tasks of all contacts and companies. "
            "Open tasks: activity_type=task and completed=false, by "
            "sort=due_date.",
     .summary = "List activities, latest first"},
    {.id = "listContactActivities", .method = "GET",
     .path = "/contacts/{id}/activities",
     .kind = CRM_OP_LIST,
     .filters = filters_below,
     .sorts = orders,
     .ordered = 1,
     .parent = "contact",
     .doc = "The same for one contact.",
     .summary = "List a contact's activities, latest first"},
    {.id = "listCompanyActivities", .method = "GET",
     .path = "/companies/{id}/activities",
     .kind = CRM_OP_LIST,
     .filters = filters_below,
     .sorts = orders,
     .ordered = 1,
     .parent = "company",
     .doc = "Those that name the company itself, not those of its contacts.",
     .summary = "List a company's activities, latest first"},
    {.id = "createActivity", .method = "POST", .path = "/activities",
     .kind = CRM_OP_CREATE,
     .location = 1,
     .example = "{'activity_type':'task','contact_id':"
                "'01939f2c-6d1e-7a40-8b5c-2f9e1d3a7c64','title':'Call back',"
                "'due_date':'2026-12-01T09:00:00Z'}",
     .doc = "Of a contact, a company, or both. A completed_at marks it as "
            "done.",
     .summary = "Create an activity"},
    {.id = "getActivity", .method = "GET", .path = "/activities/{id}",
     .kind = CRM_OP_GET,
     .doc = "Shows it as it is now.",
     .summary = "Get an activity"},
    {.id = "updateActivity", .method = "PATCH", .path = "/activities/{id}",
     .kind = CRM_OP_UPDATE,
     .example = "{'completed_at':'2026-12-01T09:30:00.000Z'}",
     .doc = "Completes a task by completed_at, or opens it again by null. "
            "Contact, company and type stay.",
     .summary = "Change an activity"},
    {.id = "deleteActivity", .method = "DELETE", .path = "/activities/{id}",
     .kind = CRM_OP_DELETE,
     .doc = "There is no way back.",
     .summary = "Delete an activity permanently"},
    {.id = NULL}
};

/* Require contact_id or company_id (specification). */
static void check(crm_input_t *input, const crm_resource_t *resource,
                  const char *const *binds, const unsigned char *sent)
{
    long contact = crm_resource_field(resource, "contact_id")
                   - resource->fields;
    long company = crm_resource_field(resource, "company_id")
                   - resource->fields;

    if (!sent[contact] && !sent[company]) {
        crm_input_error(input, "contact_id",
                        "is required, unless company_id is given");
    }
    (void)binds;
}

const crm_resource_t crm_resource_activity = {
    .name = "activity", .title = "Activity", .tag = "Activities",
    .doc = "A past or planned activity with a contact or company.",
    .fields = fields,
    .operations = operations,
    .check = check,
    .check_schema = "'not':{'properties':{'contact_id':{'type':'null'},"
                    "'company_id':{'type':'null'}}}",
};
