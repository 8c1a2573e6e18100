/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_trace.h: the header traceparent of W3C Trace Context */
#ifndef MOD_CRMAPI_TRACE_H
#define MOD_CRMAPI_TRACE_H

#include "mod_crmapi.h"

/* Return the value of R's header traceparent in R's pool: its version, trace
 * id, parent id and flags, 55 characters. NULL if it has no valid one. */
const char *crmapi_trace(const request_rec *r);

#endif /* MOD_CRMAPI_TRACE_H */
