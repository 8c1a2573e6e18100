/* SPDX-License-Identifier: Apache-2.0 */
/* event.h: the body of an event */
#ifndef EVENT_H
#define EVENT_H

#include "crm_buf.h"

/* Return whether TEXT is a type of event. */
int crm_event_is_type(const char *text);

/* Return, in RESULT_POOL, what a list of types of events must be: it names them
 * all. */
const char *crm_event_types_rule(apr_pool_t *result_pool);

/* Add to BUF the body of an event, as webhooks send it: {"type": TYPE,
 * "timestamp": CREATED_AT, "data": ...}. CREATED_AT is PostgreSQL's output,
 * FIELDS a row of crmapi.event. Return 0 if this version does not know TYPE. */
int crm_event_body(crm_buf_t *buf, const char *type, const char *created_at,
                   const char *fields);

#endif /* EVENT_H */
