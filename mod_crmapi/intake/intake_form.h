/* SPDX-License-Identifier: Apache-2.0 */
/* intake_form.h: the routes of web forms */
#ifndef CRM_INTAKE_FORM_H
#define CRM_INTAKE_FORM_H

#include "crm_serve.h"

/* The routes of web forms. */
extern const crm_route_t crm_intake_form_routes[];

#endif /* CRM_INTAKE_FORM_H */
