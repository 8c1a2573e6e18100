/* SPDX-License-Identifier: Apache-2.0 */
/* crm_type_member.h: the value of custom_fields.NAME=value (contract 20.3) */
#ifndef CRM_TYPE_MEMBER_H
#define CRM_TYPE_MEMBER_H

#include "crm_type.h"

/* A value of the member of an object that a parameter names. It is that of a
 * string, and of a number, a boolean or null that is written so; equal numbers
 * are equal. */
extern const crm_type_t crm_type_member;

#endif /* CRM_TYPE_MEMBER_H */
