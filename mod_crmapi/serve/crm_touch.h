/* SPDX-License-Identifier: Apache-2.0 */
/* crm_touch.h: recording when an API key was last used (contract 1.2) */
#ifndef CRM_TOUCH_H
#define CRM_TOUCH_H

#include "crm_request.h"

/* Time limit of the wait for a connection. */
#define CRM_TOUCH_WAIT apr_time_from_msec(100)

typedef struct crm_toucher_t crm_toucher_t;

/* Return in POOL the queue of a process for the keys of one database
 * (crm_service_t). Threads may use it at the same time. Return NULL if there is
 * no memory. */
crm_toucher_t *crm_toucher_create(apr_pool_t *pool);

/* Record in the database that the API key KEY_ID of WORKSPACE_ID was used. If
 * SERVICE has a toucher, keys that are used within 20 ms share a statement: one
 * call waits until then and runs it, the others return at once. The first call
 * after a pause does not wait. The commit does not wait for the disk: what a crash
 * loses is recorded again at the key's next use.
 * The connection is from SERVICE with BATON, whose acquire() should wait for at
 * most CRM_TOUCH_WAIT. Call this after the response has been sent if
 * crm_response_t.touch is set. Errors are ignored: the use is not recorded. */
void crm_touch(const crm_service_t *service, void *baton,
               const char *workspace_id, const char *key_id, apr_pool_t *pool);

#endif /* CRM_TOUCH_H */
