/* SPDX-License-Identifier: Apache-2.0 */
/* submission.c: submissions of forms (specification: Submission) */
#include "crm_filters.h"
#include "crm_resources.h"
#include "crm_type_list.h"

static const crm_field_t fields[] = {
    {.name = "id", .type = &crm_type_uuid},
    {.name = "form_id", .type = &crm_type_ref, .flags = CRM_F_REQUIRED,
     .ref = "form"},
    {.name = "contact_id", .type = &crm_type_ref, .flags = CRM_F_NULLABLE,
     .ref = "contact"},
    {.name = "custom_field_responses", .type = &crm_type_object,
     .doc = "answers keyed by field name"},
    {.name = "is_internal", .type = &crm_type_boolean, .initial = "f",
     .doc = "internal (test) submission"},
    {.name = "submitted_at", .type = &crm_type_time},
    {.name = NULL}
};

/* The filter of each list. */
#define INTERNAL \
    {.field = {.name = "include_internal", .type = &crm_type_boolean, \
               .doc = "default false"}, \
     .by = CRM_BY_BOOLEAN, \
     .sql = "", \
     .sql_false = "NOT t.is_internal", \
     .absent = "f"}

static const crm_filter_t list_filters[] = {
    INTERNAL,
    {.field = {.name = NULL}}
};

static const crm_filter_t all_filters[] = {
    {.field = {.name = "form_id", .type = &crm_type_ref,
               .doc = "only submissions of this form"},
     .by = CRM_BY_VALUE,
     .sql = CRM_FILTER_IS("t.form_id")},
    {.field = {.name = "contact_id", .type = &crm_type_ref,
               .doc = "only submissions of this contact"},
     .by = CRM_BY_VALUE,
     .sql = CRM_FILTER_IS("t.contact_id")},
    INTERNAL,
    CRM_FILTER_CREATED("t.submitted_at"),
    {.field = {.name = NULL}}
};

static const crm_sort_t by_submitted_at[] = {
    {.name = NULL, .keys = {"t.submitted_at"}},
    {.name = NULL}
};

static const crm_operation_t operations[] = {
    {.id = "listSubmissions", .method = "GET",
     .path = "/forms/{id}/submissions",
     .kind = CRM_OP_LIST,
     .filters = list_filters,
     .sorts = by_submitted_at,
     .parent = "form",
     .doc = "Those of tests only with include_internal.",
     .summary = "List a form's submissions, latest first"},
    {.id = "listAllSubmissions", .method = "GET", .path = "/submissions",
     .kind = CRM_OP_LIST,
     .filters = all_filters,
     .sorts = by_submitted_at,
     .ordered = 1,
     .doc = "Those of tests only with include_internal.",
     .summary = "List the submissions of all forms, latest first"},
    {.id = "getSubmission", .method = "GET", .path = "/submissions/{id}",
     .kind = CRM_OP_GET,
     .doc = "With the answers by the names of the form's fields.",
     .summary = "Get a submission"},
    {.id = NULL}
};

const crm_resource_t crm_resource_submission = {
    .name = "submission", .title = "Submission", .tag = "Forms",
    .doc = "A filled-in form.",
    .fields = fields,
    .operations = operations,
};
