/* SPDX-License-Identifier: Apache-2.0 */
/* crm_deprecation.c: operations that will be removed (contract 13.7) */
#include "crm_deprecation.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_time.h"

#define YEAR apr_time_from_sec(365 * 86400)

/* Return the time of DATE, 0 if it is not valid. */
static apr_time_t time_of(const char *date)
{
    apr_time_t time;

    return !date || crm_time_parse(&time, date, strlen(date)) ? 0 : time;
}

const char *crm_deprecation_rule(const crm_deprecation_t *deprecation)
{
    apr_time_t since = time_of(deprecation->since);
    apr_time_t sunset = time_of(deprecation->sunset);

    if (!deprecation->since) {
        return deprecation->sunset ? "removed without being deprecated" : NULL;
    }
    if (!since || !sunset) {
        return "deprecated without two dates";
    }
    return sunset - since < YEAR
           ? "removed less than 12 months after its deprecation" : NULL;
}

const char *crm_deprecation_since(const crm_deprecation_t *deprecation,
                                  apr_pool_t *pool)
{
    return apr_psprintf(pool, "@%" APR_TIME_T_FMT,
                        apr_time_sec(time_of(deprecation->since)));
}

const char *crm_deprecation_sunset(const crm_deprecation_t *deprecation,
                                   apr_pool_t *pool)
{
    char *date = apr_palloc(pool, APR_RFC822_DATE_LEN);

    apr_rfc822_date(date, time_of(deprecation->sunset));
    return date;
}
