/* SPDX-License-Identifier: Apache-2.0 */
/* message.c: messages of conversations (specification: Message) */
#include "crm_filter.h"
#include "crm_op_list.h"
#include "crm_resources.h"
#include "crm_type_list.h"

static const crm_field_t fields[] = {
    {.name = "id", .type = &crm_type_uuid},
    {.name = "conversation_id", .type = &crm_type_ref,
     .flags = CRM_F_REQUIRED, .ref = "conversation"},
    {.name = "role", .type = &crm_type_text, .flags = CRM_F_REQUIRED,
     .doc = "common values: user, assistant, system, tool, human"},
    {.name = "content", .type = &crm_type_text, .max = 65536, .initial = "",
     .doc = "may be empty for tool-only messages"},
    {.name = "content_type", .type = &crm_type_text, .flags = CRM_F_NULLABLE,
     .doc = "MIME hint, for example text/plain"},
    {.name = "status", .type = &crm_type_text, .flags = CRM_F_NULLABLE,
     .doc = "for example sent, delivered, failed"},
    {.name = "tool_used", .type = &crm_type_text, .flags = CRM_F_NULLABLE},
    {.name = "tool_arguments", .type = &crm_type_object,
     .flags = CRM_F_NULLABLE},
    {.name = "created_at", .type = &crm_type_time},
    {.name = "metadata", .type = &crm_type_object,
     .flags = CRM_F_HIDDEN | CRM_F_ON_REQUEST,
     .doc = "what the channel knew besides, such as attachments; with "
            "include=metadata"},
    {.name = "external_id", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE | CRM_F_HIDDEN,
     .doc = "the channel's own id"},
    {.name = NULL}
};

static const char *const more[] = {"metadata", NULL};

/* The filters of each list. */
#define FILTERS \
    {.field = {.name = "role", .type = &crm_type_text, \
               .doc = "for example user, assistant, human, tool"}, \
     .add = crm_filter_bind, \
     .sql = "t.role = ?"}, \
    CRM_FILTER_CREATED("t.created_at"), \
    {.field = {.name = "include", .type = &crm_type_enum, .values = more, \
               .doc = "what else to show (extension)"}}

static const crm_filter_t list_filters[] = {
    FILTERS,
    {.field = {.name = NULL}}
};

static const crm_filter_t all_filters[] = {
    {.field = {.name = "conversation_id", .type = &crm_type_ref},
     .add = crm_filter_bind,
     .sql = "t.conversation_id = ?"},
    FILTERS,
    {.field = {.name = NULL}}
};

static const crm_sort_t by_created_at[] = {
    {.name = NULL, .keys = {"t.created_at"}, .ascending = 1},
    {.name = NULL}
};

static const crm_operation_t operations[] = {
    {.id = "listMessages", .method = "GET",
     .path = "/conversations/{id}/messages",
     .kind = &crm_op_list,
     .filters = list_filters,
     .sorts = by_created_at,
     .ordered = 1,
     .parent = "conversation",
     .summary = "List a conversation's messages"},
    {.id = "listAllMessages", .method = "GET", .path = "/messages",
     .kind = &crm_op_list,
     .filters = all_filters,
     .sorts = by_created_at,
     .ordered = 1,
     .summary = "List the messages of all conversations"},
    {.id = NULL}
};

const crm_resource_t crm_resource_message = {
    .name = "message", .title = "Message", .tag = "Conversations",
    .doc = "A message of a conversation.",
    .fields = fields,
    .operations = operations,
};
