/* SPDX-License-Identifier: Apache-2.0 */
/* enrollment.c: sequence enrollments (specification: Sequence enrollment) */
#include "crm_filters.h"
#include "crm_resources.h"
#include "crm_sql.h"

static const char *const statuses[] = {
    "generating", "pending_approval", "approved", "running", "stopped_reply",
    "stopped_unsubscribed", "stopped_user", "completed", "failed", NULL
};

/* Types of the members that come from other tables. The database produces their JSON;
 * they are never read. */
static const crm_type_t type_sequence = {
    .name = "sequence", .cast = "json", .write = crm_buf_json_compact,
    .fixed_schema = "\"$ref\":\"#/components/schemas/Sequence\"",
};

static const crm_type_t type_steps = {
    .name = "steps", .cast = "json", .write = crm_buf_json_compact,
    .fixed_schema = "\"type\":\"array\","
                    "\"items\":{\"$ref\":\"#/components/schemas/Step\"}",
};

static const crm_type_t type_waiting = {
    .name = "waiting", .cast = "json", .write = crm_buf_json_compact,
    .fixed_schema = "\"$ref\":\"#/components/schemas/Waiting\"",
};

/* A time in the format of contract 9.1. */
#define TIME(column) \
    "to_char(" column " AT TIME ZONE 'UTC'," \
    " 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"

/* Members of every step. */
#define STEP \
    "'id', s.id, 'sort_order', s.sort_order, 'channel', s.channel," \
    " 'status', s.status, 'scheduled_for', " TIME("s.scheduled_for") "," \
    " 'sent_at', " TIME("s.sent_at") ", 'to_identifier', s.to_identifier"

#define SEQUENCE_SQL \
    "SELECT json_build_object('id', q.id, 'name', q.name, 'status'," \
    " q.status, 'bot_id', q.bot_id, 'template_id', q.template_id)" \
    " FROM crmapi.sequence q WHERE " CRM_SQL_OWN("q") \
    " AND q.id = t.sequence_id"

#define STEPS_SQL \
    "SELECT coalesce(json_agg(CASE s.channel" \
    " WHEN 'voice' THEN json_build_object(" STEP ", 'voice_objective'," \
    " s.voice_objective, 'voice_script', s.voice_script)" \
    " WHEN 'sms' THEN json_build_object(" STEP ", 'sms_body', s.sms_body)" \
    " ELSE json_build_object(" STEP ", 'email_subject', s.email_subject," \
    " 'email_body', s.email_body) END ORDER BY s.sort_order), '[]')" \
    " FROM crmapi.enrollment_step s WHERE " CRM_SQL_OWN("s") \
    " AND s.enrollment_id = t.id"

/* The states in which crmapid has something to do. */
#define WORKED_ON "('generating', 'approved', 'running')"

/* What waits for nobody else waits for its next job. Why that failed is the operator's
 * business: it may name hosts and tables. */
#define WAITING_SQL \
    "SELECT json_build_object('for', CASE" \
    " WHEN t.status = 'pending_approval' THEN 'approval'" \
    " WHEN t.status NOT IN " WORKED_ON " THEN NULL" \
    " WHEN EXISTS (SELECT FROM crmapi.workspace_hold h WHERE " CRM_SQL_OWN("h") ")" \
    " OR (SELECT i.held_at IS NOT NULL FROM crmapi.instance i) THEN 'release'" \
    " WHEN j.is_later AND j.last_error IS NOT NULL THEN 'retry'" \
    " WHEN j.is_later THEN 'time' ELSE 'worker' END," \
    " 'until', CASE WHEN j.is_later THEN " TIME("j.run_at") " END)" \
    " FROM (VALUES (1)) one LEFT JOIN LATERAL (" \
    "SELECT n.run_at, n.run_at > " CRM_SQL_NOW " AS is_later, n.last_error" \
    " FROM crmapi.job n WHERE " CRM_SQL_OWN("n") " AND n.lane <> 'webhook'" \
    " AND crmapi.job_about(n.payload) = t.id::text" \
    " AND n.state IN ('ready', 'leased') AND t.status IN " WORKED_ON \
    " ORDER BY n.run_at LIMIT 1) j ON true"

static const crm_field_t fields[] = {
    {.name = "id", .type = &crm_type_uuid},
    {.name = "sequence_id", .type = &crm_type_uuid},
    {.name = "contact_id", .type = &crm_type_uuid},
    {.name = "status", .type = &crm_type_enum, .values = statuses},
    {.name = "generation_error", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE, .doc = "set when status is failed"},
    {.name = "approved_at", .type = &crm_type_time, .flags = CRM_F_NULLABLE},
    {.name = "stop_reason", .type = &crm_type_text, .flags = CRM_F_NULLABLE},
    {.name = "created_at", .type = &crm_type_time},
    {.name = "updated_at", .type = &crm_type_time},
    {.name = "sequence", .type = &type_sequence, .flags = CRM_F_DERIVED,
     .sql = SEQUENCE_SQL},
    {.name = "steps", .type = &type_steps, .flags = CRM_F_DERIVED,
     .sql = STEPS_SQL, .doc = "in the order of sort_order"},
    {.name = "waiting", .type = &type_waiting,
     .flags = CRM_F_DERIVED | CRM_F_HIDDEN | CRM_F_ON_REQUEST, .sql = WAITING_SQL,
     .doc = "what must happen before it goes on; with include=waiting"},
    {.name = NULL}
};

static const char *const more[] = {"waiting", NULL};

static const crm_filter_t include[] = {
    CRM_FILTER_INCLUDE(more, "waiting"),
    {.field = {.name = NULL}}
};

static const crm_filter_t list_filters[] = {
    {.field = {.name = "status", .type = &crm_type_enum, .values = statuses,
               .doc = "only enrollments in this state"},
     .by = CRM_BY_VALUE,
     .sql = CRM_FILTER_IS("t.status"), .order = "t.created_at"},
    {.field = {.name = "contact_id", .type = &crm_type_ref,
               .doc = "only enrollments of this contact"},
     .by = CRM_BY_VALUE,
     .sql = CRM_FILTER_IS("t.contact_id"), .order = "t.created_at"},
    {.field = {.name = "template_id", .type = &crm_type_ref,
               .doc = "of the enrollment's sequence"},
     .by = CRM_BY_VALUE,
     .sql = CRM_FILTER_IS("t.template_id"), .order = "t.created_at"},
    CRM_FILTER_CREATED("t.created_at"),
    CRM_FILTER_UPDATED,
    {.field = {.name = NULL}}
};

static const crm_operation_t operations[] = {
    {.id = "startSequence", .method = "POST", .path = "/sequences/start",
     .kind = CRM_OP_SEQUENCE_START, .sequences = 1,
     .body_schema = "StartInput", .answer_schema = "StartResult",
     .statuses = {400, 404, 413, 415, 422},
     .example = "{'template_id':'01939f2c-6d1e-7a40-8b5c-2f9e1d3a7c64',"
                "'bot_id':'01939f2c-6d1e-7a40-8b5c-2f9e1d3a7c64','contact':"
                "{'emails':['grace@example.com'],'first_name':'Grace'},"
                "'idempotency_key':'order-1001'}",
     .doc = "Creates or updates the contact, and generates texts for it, "
            "which may take 30 to 90 seconds. Ask status_url for the state.",
     .summary = "Start a sequence for one contact"},
    {.id = "listEnrollments", .method = "GET",
     .path = "/sequences/enrollments", .kind = CRM_OP_LIST,
     .filters = list_filters,
     .sorts = crm_list_by_time,
     .ordered = 1,
     .sequences = 1,
     .doc = "One for each contact in a sequence.",
     .summary = "List enrollments, latest first"},
    {.id = "getEnrollment", .method = "GET",
     .path = "/sequences/enrollments/{id}", .kind = CRM_OP_GET,
     .filters = include,
     .sequences = 1,
     .doc = "For polling: its state, and what was sent when.",
     .summary = "Get an enrollment with its sequence and steps"},
    {.id = "approveEnrollment", .method = "POST",
     .path = "/sequences/enrollments/{id}/approve",
     .kind = CRM_OP_ENROLLMENT_APPROVE, .sequences = 1,
     .statuses = {404},
     .doc = "Its first step is due at once. 409 in any other state.",
     .summary = "Approve an enrollment that waits for approval"},
    {.id = "stopEnrollment", .method = "POST",
     .path = "/sequences/enrollments/{id}/stop",
     .kind = CRM_OP_ENROLLMENT_STOP, .sequences = 1,
     .statuses = {404},
     .doc = "Nothing is sent afterwards. 409 if it has ended already.",
     .summary = "Stop an enrollment, or reject one that waits for approval"},
    {.id = NULL}
};

const crm_resource_t crm_resource_enrollment = {
    .name = "enrollment", .title = "Enrollment", .tag = "Sequences",
    .doc = "An enrollment of a contact in a sequence.",
    .fields = fields,
    .operations = operations,
    .no_import = 1,
};
