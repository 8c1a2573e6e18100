/* SPDX-License-Identifier: Apache-2.0 */
/* crm_trace.h: the value of the header traceparent of W3C Trace Context */
#ifndef CRM_TRACE_H
#define CRM_TRACE_H

#include "apr_pools.h"

/* The length of "00-<trace id>-<parent id>-<flags>". */
#define CRM_TRACE_LEN 55

/* Return the first CRM_TRACE_LEN characters of TEXT, a header's value or NULL,
 * in POOL: version, trace id, parent id and flags. A version after 00 may have
 * more. Return NULL if TEXT is not valid. */
const char *crm_trace_read(const char *text, apr_pool_t *pool);

/* Return, in POOL, the header's value for a request that belongs to TRACE,
 * which crm_trace_read() returned: version 00, the trace id of TRACE, a new
 * parent id, and those flags of TRACE that version 00 knows (1 sampled, 2
 * random). */
const char *crm_trace_child(const char *trace, apr_pool_t *pool);

#endif /* CRM_TRACE_H */
