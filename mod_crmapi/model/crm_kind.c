/* SPDX-License-Identifier: Apache-2.0 */
/* crm_kind.c: the kinds of operations */
#include "crm_kind.h"

const crm_kind_t crm_kinds[CRM_OPS] = {
    [CRM_OP_LIST] = {.status = 200},
    [CRM_OP_LOG] = {.status = 200},
    [CRM_OP_GET] = {.status = 200, .tagged = 1, .conditional = 1},
    [CRM_OP_FILE] = {.status = 200, .tagged = 1, .conditional = 1},
    [CRM_OP_CREATE] = {.status = 201, .has_body = 1, .tagged = 1},
    [CRM_OP_UPDATE] = {.status = 200, .has_body = 1, .tagged = 1,
                       .conditional = 1},
    [CRM_OP_DELETE] = {.status = 204, .conditional = 1},
    [CRM_OP_WORKSPACE] = {.status = 200},
    [CRM_OP_CONTACT_UPSERT] = {.status = 200, .has_body = 1},
    [CRM_OP_CONTACT_ERASE] = {.status = 202},
    [CRM_OP_CONTACT_MERGE] = {.status = 200, .has_body = 1, .tagged = 1},
    [CRM_OP_COMPANY_UPSERT] = {.status = 200, .has_body = 1},
    [CRM_OP_SEQUENCE_START] = {.status = 202, .has_body = 1},
    [CRM_OP_ENROLLMENT_APPROVE] = {.status = 200, .tagged = 1},
    [CRM_OP_ENROLLMENT_STOP] = {.status = 200, .tagged = 1},
    [CRM_OP_SUPPRESSION_ADD] = {.status = 201, .has_body = 1, .tagged = 1},
    [CRM_OP_MESSAGE_ANSWER] = {.status = 201, .has_body = 1, .tagged = 1},
};
