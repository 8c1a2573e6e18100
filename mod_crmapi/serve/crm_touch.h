/* SPDX-License-Identifier: Apache-2.0 */
/* crm_touch.h: recording when an API key was last used (contract 1.2) */
#ifndef CRM_TOUCH_H
#define CRM_TOUCH_H

#include "crm_request.h"

/* Time limit of the wait for a connection. */
#define CRM_TOUCH_WAIT apr_time_from_msec(100)

/* Record in the database that the API key of the response TOUCHED was used, by the
 * request REQUEST_ID. Concurrent calls share a statement (crm_batch_run()). The
 * commit does not wait for the disk: what a crash loses is recorded again at the
 * key's next use.
 * The connection is from SERVICE with BATON, whose acquire() should wait for at
 * most CRM_TOUCH_WAIT. Call this after the response has been sent if
 * TOUCHED->touch is set. Errors are ignored: the use is not recorded. */
void crm_touch(const crm_service_t *service, void *baton,
               const crm_response_t *touched, const char *request_id,
               apr_pool_t *pool);

#endif /* CRM_TOUCH_H */
