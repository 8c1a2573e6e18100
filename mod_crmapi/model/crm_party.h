/* SPDX-License-Identifier: Apache-2.0 */
/* crm_party.h: what contacts and companies have in common */
#ifndef CRM_PARTY_H
#define CRM_PARTY_H

#include "crm_resource.h"
#include "crm_type_list.h"

/* The fields from address_line1 to external_id. */
#define CRM_FIELDS_PARTY \
    {.name = "address_line1", .type = &crm_type_text, .flags = CRM_F_OPTIONAL}, \
    {.name = "address_line2", .type = &crm_type_text, .flags = CRM_F_OPTIONAL}, \
    {.name = "city", .type = &crm_type_text, .flags = CRM_F_OPTIONAL}, \
    {.name = "state", .type = &crm_type_text, .flags = CRM_F_OPTIONAL}, \
    {.name = "postal_code", .type = &crm_type_text, .flags = CRM_F_OPTIONAL}, \
    {.name = "country", .type = &crm_type_text, .flags = CRM_F_OPTIONAL}, \
    {.name = "linkedin_url", .type = &crm_type_text, \
     .flags = CRM_F_OPTIONAL, .max = 2048}, \
    {.name = "notes", .type = &crm_type_text, \
     .flags = CRM_F_OPTIONAL, .max = 65536}, \
    {.name = "custom_fields", .type = &crm_type_object, \
     .flags = CRM_F_WRITABLE, .doc = "free-form JSON"}, \
    {.name = "external_id", .type = &crm_type_text, \
     .flags = CRM_F_OPTIONAL | CRM_F_UNIQUE, \
     .max = 255, \
     .doc = "id in another system, unique in the workspace"}

#endif /* CRM_PARTY_H */
