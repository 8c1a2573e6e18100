/* SPDX-License-Identifier: Apache-2.0 */
/* crm_trace.h: the value of the header traceparent of W3C Trace Context */
#ifndef CRM_TRACE_H
#define CRM_TRACE_H

#include "apr_pools.h"

/* The length of "00-<trace id>-<parent id>-<flags>". */
#define CRM_TRACE_LEN 55

/* Return the part of TEXT, a header's value or NULL, that is known: version,
 * trace id, parent id and flags, CRM_TRACE_LEN characters in POOL. NULL if TEXT
 * is not valid. A later version may have more behind them. */
const char *crm_trace_read(const char *text, apr_pool_t *pool);

/* Return the value for a request that is made for TRACE, which crm_trace_read()
 * returned: its trace id and the flags that are known (1 sampled, 2 random),
 * and a new parent id, as version 00, in POOL. */
const char *crm_trace_child(const char *trace, apr_pool_t *pool);

#endif /* CRM_TRACE_H */
