/* SPDX-License-Identifier: Apache-2.0 */
/* conversation.c: conversations (specification: Conversation; contract 9.7) */
#include "crm_filters.h"
#include "crm_number.h"
#include "crm_resources.h"
#include "crm_sql.h"
#include "crm_type_channel.h"

static const crm_field_t fields[] = {
    {.name = "id", .type = &crm_type_uuid},
    {.name = "bot_id", .type = &crm_type_ref, .flags = CRM_F_REQUIRED,
     .ref = "agent",
     .doc = "owning agent"},
    {.name = "contact_id", .type = &crm_type_ref, .flags = CRM_F_NULLABLE,
     .ref = "contact"},
    {.name = "type", .type = &crm_type_channel, .flags = CRM_F_REQUIRED,
     .doc = "channel: 1 chat, 2 phone, 3 text, 4 email, 5 form"},
    {.name = "email", .type = &crm_type_text, .flags = CRM_F_NULLABLE,
     .doc = "best-known participant e-mail"},
    {.name = "phone_number", .type = &crm_type_text, .flags = CRM_F_NULLABLE,
     .doc = "E.164"},
    {.name = "human", .type = &crm_type_text, .flags = CRM_F_NULLABLE,
     .doc = "display name of the human"},
    {.name = "human_takeover", .type = &crm_type_boolean,
     .flags = CRM_F_UPDATE | CRM_F_NO_CLEAR, .initial = "f",
     .doc = "a teammate has taken over"},
    {.name = "assigned_to", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE | CRM_F_UPDATE, .max = 255,
     .doc = "who answers: a user's id, or an admin's id or address"},
    {.name = "assigned_at", .type = &crm_type_time, .flags = CRM_F_NULLABLE,
     .follow = "assigned_to",
     .follow_sql = "CASE WHEN t.assigned_to IS NOT DISTINCT FROM ? THEN "
                   "t.assigned_at WHEN ? IS NOT NULL THEN " CRM_SQL_NOW
                   " END"},
    {.name = "active", .type = &crm_type_boolean,
     .flags = CRM_F_UPDATE | CRM_F_NO_CLEAR, .initial = "t",
     .doc = "true while in progress"},
    {.name = "archived", .type = &crm_type_boolean,
     .flags = CRM_F_NULLABLE | CRM_F_UPDATE | CRM_F_NO_CLEAR},
    {.name = "archived_at", .type = &crm_type_time, .flags = CRM_F_NULLABLE,
     .follow = "archived",
     .follow_sql = "CASE WHEN t.archived IS NOT DISTINCT FROM ? THEN "
                   "t.archived_at WHEN ? THEN " CRM_SQL_NOW " END"},
    {.name = "deleted", .type = &crm_type_boolean,
     .flags = CRM_F_NULLABLE | CRM_F_REFUSED,
     .doc = "soft-delete flag"},
    {.name = "deleted_at", .type = &crm_type_time, .flags = CRM_F_NULLABLE},
    {.name = "internal", .type = &crm_type_boolean, .initial = "f",
     .doc = "true for teammate-to-agent conversations"},
    {.name = "internal_notes", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE | CRM_F_UPDATE, .max = 65536,
     .doc = "never shared with the participant"},
    {.name = "last_message", .type = &crm_type_text, .flags = CRM_F_NULLABLE,
     .max = 65536,
     .doc = "snippet of the latest message"},
    {.name = "last_message_at", .type = &crm_type_time,
     .flags = CRM_F_NULLABLE},
    {.name = "last_active_at", .type = &crm_type_time,
     .flags = CRM_F_NULLABLE},
    {.name = "sentiment_positive", .type = &crm_type_boolean,
     .flags = CRM_F_NULLABLE,
     .doc = "null if not yet analyzed"},
    {.name = "sentiment_score", .type = &crm_type_number,
     .flags = CRM_F_NULLABLE,
     .doc = "from -1 to 1"},
    {.name = "sentiment_summary", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE, .max = 65536},
    {.name = "audio_url", .type = &crm_type_text, .flags = CRM_F_NULLABLE,
     .max = 2048,
     .doc = "storage path of the call recording"},
    {.name = "minutes", .type = &crm_type_number, .flags = CRM_F_NULLABLE,
     .doc = "call duration"},
    {.name = "visitor_id", .type = &crm_type_text, .flags = CRM_F_NULLABLE,
     .doc = "linked anonymous visitor"},
    {.name = "created_at", .type = &crm_type_time},
    {.name = "thread", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE | CRM_F_HIDDEN,
     .doc = "the channel's own id"},
    {.name = "subject", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE | CRM_F_HIDDEN | CRM_F_ON_REQUEST,
     .doc = "of its first mail (include=subject)"},
    {.name = "unanswered", .type = &crm_type_boolean,
     .flags = CRM_F_UPDATE | CRM_F_NO_CLEAR | CRM_F_HIDDEN | CRM_F_ON_REQUEST,
     .initial = "f",
     .doc = "waits for an answer (include=unanswered)"},
    {.name = "updated_at", .type = &crm_type_time, .flags = CRM_F_HIDDEN,
     .doc = "when anything of it last changed"},
    {.name = NULL}
};

static const char *const more[] = {"subject", "unanswered", NULL};

static const crm_filter_t include[] = {
    CRM_FILTER_INCLUDE(more, "subject,unanswered"),
    {.field = {.name = NULL}}
};

static const crm_filter_t list_filters[] = {
    CRM_FILTER_AGENT(1),
    {.field = {.name = "contact_id", .type = &crm_type_ref,
               .doc = "only those of this contact"},
     .by = CRM_BY_VALUE,
     .sql = CRM_FILTER_IS("t.contact_id"), .order = "t.created_at"},
    {.field = {.name = "visitor_id", .example = "v-1",
               .type = &crm_type_text,
               .doc = "only those of this visitor"},
     .by = CRM_BY_VALUE,
     .sql = CRM_FILTER_IS("t.visitor_id"), .order = "t.created_at"},
    {.field = {.name = "assigned_to", .example = "ann",
               .type = &crm_type_text,
               .doc = "exactly this user"},
     .by = CRM_BY_VALUE,
     .sql = CRM_FILTER_IS("t.assigned_to"), .order = "t.created_at"},
    {.field = {.name = "assigned", .type = &crm_type_boolean,
               .doc = "false: those of nobody"},
     .by = CRM_BY_BOOLEAN,
     .sql = "t.assigned_to IS NOT NULL",
     .sql_false = "t.assigned_to IS NULL",
     .order = "t.created_at", .order_false = "t.created_at"},
    {.field = {.name = "unanswered", .type = &crm_type_boolean,
               .doc = "true: the participant has spoken last"},
     .by = CRM_BY_BOOLEAN,
     .sql = "t.unanswered", .order = "t.created_at",
     .sql_false = "NOT t.unanswered"},
    {.field = {.name = "type", .example = "email",
               .type = &crm_type_channel,
               .doc = "a channel, by name or code"},
     .by = CRM_BY_VALUE,
     .sql = CRM_FILTER_IS("t.type"), .order = "t.created_at"},
    {.field = {.name = "active", .type = &crm_type_boolean,
               .doc = "true: in progress"},
     .by = CRM_BY_BOOLEAN,
     .sql = "t.active",
     .sql_false = "NOT t.active"},
    {.field = {.name = "archived", .type = &crm_type_boolean,
               .doc = "omit to include both"},
     .by = CRM_BY_BOOLEAN,
     .sql = "t.archived",
     .sql_false = "t.archived IS NOT TRUE"},
    {.field = {.name = "human_takeover", .type = &crm_type_boolean,
               .doc = "a teammate has taken over"},
     .by = CRM_BY_BOOLEAN,
     .sql = "t.human_takeover",
     .sql_false = "NOT t.human_takeover"},
    {.field = {.name = "include_deleted", .type = &crm_type_boolean,
               .doc = "default false"},
     .by = CRM_BY_BOOLEAN,
     .sql = "",
     .sql_false = "t.deleted IS NOT TRUE",
     .absent = "f"},
    CRM_FILTER_CREATED("t.created_at"),
    {.field = {.name = "last_message_after", .type = &crm_type_time,
               .doc = "inclusive"},
     .by = CRM_BY_VALUE,
     .sql = "t.last_message_at >= ?", .order = "t.last_message_at"},
    {.field = {.name = "last_message_before", .type = &crm_type_time,
               .doc = "inclusive"},
     .by = CRM_BY_VALUE,
     .sql = "t.last_message_at <= ?", .order = "t.last_message_at"},
    CRM_FILTER_UPDATED,
    {.field = {.name = "search", .example = "ada",
               .type = &crm_type_text, .max = 200,
               .doc = "part of the latest message, e-mail, phone number "
                      "or name"},
     .by = CRM_BY_SEARCH,
     .sql = "t.search"},
    CRM_FILTER_IDS,
    CRM_FILTER_INCLUDE(more, "subject,unanswered"),
    {.field = {.name = NULL}}
};

static const crm_sort_t orders[] = {
    {.name = "created_at", .keys = {"t.created_at"}},
    {.name = "last_message_at", .keys = {"t.last_message_at"}, .nulls_last = 1},
    {.name = "updated_at", .keys = {"t.updated_at"}, .ascending = 1},
    {.name = NULL}
};

static const crm_operation_t operations[] = {
    {.id = "listConversations", .method = "GET", .path = "/conversations",
     .kind = CRM_OP_LIST,
     .filters = list_filters,
     .sorts = orders,
     .ordered = 1,
     .counter = "conversation",
     .doc = "The newest first. Deleted ones only with include_deleted.",
     .summary = "List conversations of all agents"},
    {.id = "listContactConversations", .method = "GET",
     .path = "/contacts/{id}/conversations",
     .kind = CRM_OP_LIST,
     .filters = list_filters,
     .sorts = orders,
     .ordered = 1,
     .parent = "contact",
     .doc = "The same for one contact.",
     .summary = "List a contact's conversations"},
    {.id = "getConversation", .method = "GET", .path = "/conversations/{id}",
     .kind = CRM_OP_GET,
     .filters = include,
     .doc = "Shows a deleted one, too.",
     .summary = "Get a conversation"},
    {.id = "updateConversation", .method = "PATCH",
     .path = "/conversations/{id}",
     .kind = CRM_OP_UPDATE,
     .example = "{'assigned_to':'ann','archived':false}",
     .doc = "Notes, assignment, archive, takeover and whether it is active. "
            "Nothing is sent to the participant.",
     .summary = "Change a conversation's inbox state"},
    {.id = "deleteConversation", .method = "DELETE",
     .path = "/conversations/{id}",
     .kind = CRM_OP_DELETE,
     .doc = "It is hidden from lists, and cannot be restored by the API.",
     .summary = "Delete a conversation; its messages are kept"},
    {.id = NULL}
};

/* Check the range of sentiment_score. */
static void check(crm_input_t *input, const crm_resource_t *resource,
                  const char *const *binds, const unsigned char *sent)
{
    const char *score = binds[crm_resource_field(resource, "sentiment_score")
                              - resource->fields];

    (void)sent;
    if (score && (crm_number_compare(score, "-1") < 0
                  || crm_number_compare(score, "1") > 0)) {
        crm_input_error(input, "sentiment_score", "must be from -1 to 1");
    }
}

const crm_resource_t crm_resource_conversation = {
    .name = "conversation", .title = "Conversation", .tag = "Conversations",
    .doc = "A thread with a participant on one channel.",
    .fields = fields,
    .operations = operations,
    .soft_delete = "deleted = true, deleted_at = coalesce(t.deleted_at, "
                   CRM_SQL_NOW ")",
    .check = check,
};
