/* SPDX-License-Identifier: Apache-2.0 */
/* sequence_template.c: templates of sequences (import and export only) */
#include "crm_op.h"
#include "crm_resources.h"

static const crm_field_t fields[] = {
    {.name = "id", .type = &crm_type_uuid},
    {.name = "bot_id", .type = &crm_type_ref, .flags = CRM_F_NULLABLE,
     .ref = "agent",
     .doc = "the sender, unless a start names another"},
    {.name = "name", .type = &crm_type_text, .flags = CRM_F_REQUIRED},
    {.name = "allowed_channels", .type = &crm_type_strings,
     .doc = "of email, voice, sms"},
    {.name = "stop_on_reply", .type = &crm_type_boolean, .initial = "t"},
    {.name = "goal_prompt", .type = &crm_type_text, .flags = CRM_F_NULLABLE,
     .max = 65536},
    {.name = "pacing", .type = &crm_type_object,
     .doc = "when steps are sent"},
    {.name = "steps", .type = &crm_type_array,
     .doc = "what steps are generated from"},
    {.name = "created_at", .type = &crm_type_time},
    {.name = "updated_at", .type = &crm_type_time},
    {.name = NULL}
};

const crm_resource_t crm_resource_sequence_template = {
    .name = "sequence_template", .title = "SequenceTemplate",
    .tag = "Sequences",
    .doc = "What sequences are generated from.",
    .fields = fields,
};
