/* SPDX-License-Identifier: Apache-2.0 */
/* attachment.c: files of messages (contract 18.3) */
#include "crm_resources.h"

/* As metadata.attachments of a message shows them. */
static const crm_field_t fields[] = {
    {.name = "id", .type = &crm_type_uuid},
    {.name = "filename", .type = &crm_type_text, .flags = CRM_F_NULLABLE},
    {.name = "content_type", .type = &crm_type_text, .flags = CRM_F_NULLABLE,
     .doc = "as its sender says"},
    {.name = "size", .type = &crm_type_integer, .doc = "bytes"},
    {.name = "stored", .type = &crm_type_boolean,
     .doc = "false: it was too large"},
    {.name = NULL}
};

static const crm_file_t bytes = {
    .name = "t.filename", .type = "t.content_type", .media_type = "*/*",
    .size = "CASE WHEN t.stored THEN t.size END",
    .pieces = "attachment_piece", .key = "attachment_id",
};

static const crm_operation_t operations[] = {
    {.id = "getAttachment", .method = "GET", .path = "/attachments/{id}",
     .kind = CRM_OP_FILE,
     .file = &bytes,
     .doc = "The bytes as they came in a mail, or were sent with an answer. "
            "Their type is that of their sender if it is harmless, "
            "otherwise application/octet-stream.",
     .summary = "Get the bytes of an attachment"},
    {.id = NULL}
};

const crm_resource_t crm_resource_attachment = {
    .name = "attachment", .title = "Attachment", .tag = "Conversations",
    .doc = "A file of a message.",
    .fields = fields,
    .operations = operations,
    .no_import = 1,
};
