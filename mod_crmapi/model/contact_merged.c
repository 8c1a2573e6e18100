/* SPDX-License-Identifier: Apache-2.0 */
/* contact_merged.c: what is left of a contact that was merged (contract 20.5) */
#include "crm_resources.h"

static const crm_field_t fields[] = {
    {.name = "id", .type = &crm_type_uuid},
    {.name = "merged_into", .type = &crm_type_uuid,
     .doc = "the contact that has all of it"},
    {.name = "merged_at", .type = &crm_type_time},
    {.name = NULL}
};

/* Events show it, no operation does. */
static const crm_operation_t operations[] = {
    {.id = NULL}
};

const crm_resource_t crm_resource_contact_merged = {
    .name = "contact_merged", .title = "ContactMerged", .tag = "Contacts",
    .doc = "A contact that was merged into another one.",
    .fields = fields,
    .operations = operations,
    .no_import = 1,
};
