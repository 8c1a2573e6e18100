/* SPDX-License-Identifier: Apache-2.0 */
/* message.c: messages of conversations (specification: Message) */
#include "crm_filters.h"
#include "crm_resources.h"
#include "crm_sql.h"
#include "crm_type_list.h"

/* The largest answer with attachments: 10 MiB in base64, and the other fields. */
#define ANSWER_BODY_MAX (15 * 1024 * 1024)

/* The HTML of message t, as SHOWN of its row h. */
#define HTML(shown) \
    "(SELECT " shown " FROM crmapi.message_html h" \
    " WHERE " CRM_SQL_OWN("h") " AND h.message_id = t.id)"

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
     .doc = "of an answer: queued, sent, delivered, failed; other sources "
            "have their own"},
    {.name = "tool_used", .type = &crm_type_text, .flags = CRM_F_NULLABLE},
    {.name = "tool_arguments", .type = &crm_type_object,
     .flags = CRM_F_NULLABLE},
    {.name = "created_at", .type = &crm_type_time},
    {.name = "metadata", .type = &crm_type_object,
     .doc = "what the channel knew besides, such as attachments (extension)"},
    {.name = "html", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE | CRM_F_DERIVED | CRM_F_HIDDEN | CRM_F_ON_REQUEST,
     .max = 1048576, .sql = HTML("regexp_replace(h.html, '\\x01[^\\x01]*\\x01',"
                                 " '', 'g')"),
     .doc = "a mail's HTML, made safe to be shown, without remote content; "
            "with include=html"},
    {.name = "remote_html", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE | CRM_F_DERIVED | CRM_F_HIDDEN | CRM_F_ON_REQUEST,
     .max = 1048576, .sql = HTML("translate(h.html, chr(1), '')"),
     .doc = "the same with remote content, which tells its sender that the "
            "mail is read; with include=remote_html"},
    {.name = "external_id", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE | CRM_F_HIDDEN,
     .doc = "the channel's own id"},
    {.name = NULL}
};

/* "metadata" is for programs of when it had to be asked for. */
static const char *const more[] = {"metadata", "html", "remote_html", NULL};

/* What the GET of one message takes, and each list. */
#define INCLUDE CRM_FILTER_INCLUDE(more, "html,remote_html")

static const crm_filter_t include[] = {
    INCLUDE,
    {.field = {.name = NULL}}
};

/* The filters of each list. */
#define FILTERS \
    {.field = {.name = "role", .example = "user", \
               .type = &crm_type_text, \
               .doc = "for example user, assistant, human, tool"}, \
     .by = CRM_BY_VALUE, \
     .sql = CRM_FILTER_IS("t.role")}, \
    CRM_FILTER_CREATED("t.created_at"), \
    INCLUDE

static const crm_filter_t list_filters[] = {
    FILTERS,
    {.field = {.name = NULL}}
};

static const crm_filter_t all_filters[] = {
    {.field = {.name = "conversation_id", .type = &crm_type_ref,
               .doc = "only messages of this conversation"},
     .by = CRM_BY_VALUE,
     .sql = CRM_FILTER_IS("t.conversation_id")},
    FILTERS,
    {.field = {.name = NULL}}
};

static const crm_file_t original = {
    .name = "coalesce(t.metadata ->> 'subject', 'mail') || '.eml'",
    .type = "'message/rfc822'", .media_type = "message/rfc822",
    .size = "(SELECT sum(octet_length(o.bytes)) FROM crmapi.original o"
            " WHERE " CRM_SQL_OWN("o") " AND o.message_id = t.id)",
    .pieces = "original", .key = "message_id",
};

static const crm_sort_t by_created_at[] = {
    {.name = NULL, .keys = {"t.created_at"}, .ascending = 1},
    {.name = NULL}
};

static const crm_operation_t operations[] = {
    {.id = "listMessages", .method = "GET",
     .path = "/conversations/{id}/messages",
     .kind = CRM_OP_LIST,
     .filters = list_filters,
     .sorts = by_created_at,
     .ordered = 1,
     .waits = 1,
     .parent = "conversation",
     .doc = "The oldest first.",
     .summary = "List a conversation's messages"},
    {.id = "createMessage", .method = "POST",
     .path = "/conversations/{id}/messages",
     .kind = CRM_OP_MESSAGE_ANSWER,
     .parent = "conversation",
     .location = 1,
     .max_body = ANSWER_BODY_MAX,
     .body_schema = "MessageInput",
     .statuses = {409},
     .example = "{'content':'Yes, we are open on Saturday.'}",
     .doc = "Sends it to the participant by the conversation's channel, at "
            "once: there are no drafts. Its status tells later whether it "
            "arrived.",
     .summary = "Answer in a conversation, by its channel"},
    {.id = "listAllMessages", .method = "GET", .path = "/messages",
     .kind = CRM_OP_LIST,
     .filters = all_filters,
     .sorts = by_created_at,
     .ordered = 1,
     .doc = "The oldest first. Those of deleted conversations are there, too.",
     .summary = "List the messages of all conversations"},
    {.id = "getMessage", .method = "GET",
     .path = "/conversations/{id}/messages/{message_id}",
     .kind = CRM_OP_GET,
     .filters = include,
     .parent = "conversation",
     .doc = "With include also its HTML, made safe.",
     .summary = "Get a message"},
    {.id = "getOriginal", .method = "GET",
     .path = "/conversations/{id}/messages/{message_id}/original",
     .kind = CRM_OP_FILE,
     .parent = "conversation",
     .file = &original,
     .doc = "All bytes of the mail. They are kept for a time that the "
            "operator sets.",
     .summary = "Get a mail as it came"},
    {.id = NULL}
};

const crm_resource_t crm_resource_message = {
    .name = "message", .title = "Message", .tag = "Conversations",
    .doc = "A message of a conversation.",
    .fields = fields,
    .operations = operations,
};
