/* SPDX-License-Identifier: Apache-2.0 */
/* crm_domain.h: what the engine is given */
#ifndef CRM_DOMAIN_H
#define CRM_DOMAIN_H

#include "crm_api.h"

/* Resources, their handlers, events, and openapi.json. */
extern const crm_domain_t crm_domain;

/* openapi.json: info, and schemas that no table describes. */
extern const crm_json_part_t crm_openapi_domain;

#endif /* CRM_DOMAIN_H */
