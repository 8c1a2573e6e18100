/* SPDX-License-Identifier: Apache-2.0 */
/* intake_event.h: the routes of events */
#ifndef CRM_INTAKE_EVENT_H
#define CRM_INTAKE_EVENT_H

#include "crm_serve.h"

/* The routes of events. */
extern const crm_route_t crm_intake_event_routes[];

#endif /* CRM_INTAKE_EVENT_H */
