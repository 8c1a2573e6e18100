/* SPDX-License-Identifier: Apache-2.0 */
/* crm_pacing.h: the sending windows and delays of a template */
#ifndef CRM_PACING_H
#define CRM_PACING_H

#include <json-c/json.h>

#include "apr_pools.h"

/* Set *PACING_P to PACING, a template's, in the form of crmapi.pacing_fit()
 * (JSON text, in POOL), and *BETWEEN_P to the seconds between steps without a
 * delay of their own. TIME_ZONE is used if PACING names none. Return NULL, or
 * the rule that is broken at *WHERE_P, a JSON pointer into PACING. */
const char *crm_pacing_parse(const char **pacing_p, apr_int64_t *between_p,
                             const char **where_p, json_object *pacing,
                             const char *time_zone, apr_pool_t *pool);

/* Set *SECONDS_P to DELAY, a step's: "45m", "36h", "2d", "1d12h" or a number
 * of days. Return NULL, or the rule that it breaks. */
const char *crm_delay_parse(apr_int64_t *seconds_p, json_object *delay,
                            apr_pool_t *pool);

#endif /* CRM_PACING_H */
