/* SPDX-License-Identifier: Apache-2.0 */
/* crm_body.h: reading a JSON body by the table of its resource */
#ifndef CRM_BODY_H
#define CRM_BODY_H

#include <json-c/json.h>

#include "crm_resource.h"

/* The values of a body, by index in the resource's table of fields. */
typedef struct crm_values_t {
    const char **binds;
    unsigned char *sent;        /* 1: it was sent and will be stored */
} crm_values_t;

/* How a body is read. */
typedef enum crm_body_mode_t {
    CRM_BODY_CREATE,            /* CRM_F_CREATE fields; CRM_F_REQUIRED is
                                   enforced, null counts as absent */
    CRM_BODY_UPDATE,            /* CRM_F_UPDATE and CRM_F_FIXED fields */
    CRM_BODY_MERGE              /* for upsert: CRM_F_CREATE fields; none is
                                   required, null clears */
} crm_body_mode_t;

/* Read the JSON object BODY of RESOURCE into *VALUES, in INPUT's pool. Errors
 * are added to INPUT: unknown fields, and fields that break a rule. Their names
 * begin with PREFIX ("" or "contacts[3]."). */
void crm_body_read(crm_values_t *values, crm_input_t *input,
                   const crm_resource_t *resource, json_object *body,
                   crm_body_mode_t mode, const char *prefix);

/* Add to CHECKS (of crm_check_t) a check for each reference in VALUES that its
 * row exists, and for each unique field that no other row than ID (NULL: a new
 * one) has its value. VALUES of RESOURCE were read in MODE. The checks' strings
 * are in POOL. */
void crm_body_checks(apr_array_header_t *checks, const crm_values_t *values,
                     const crm_resource_t *resource, crm_body_mode_t mode,
                     const char *id, apr_pool_t *pool);

/* Return, in POOL, the rule that a value of a unique field breaks if another row
 * of RESOURCE has it. */
const char *crm_body_unique_rule(const crm_resource_t *resource,
                                 apr_pool_t *pool);

#endif /* CRM_BODY_H */
