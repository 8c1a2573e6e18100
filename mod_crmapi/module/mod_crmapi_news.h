/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_news.h: what was logged last, so that it is logged once */
#ifndef MOD_CRMAPI_NEWS_H
#define MOD_CRMAPI_NEWS_H

#include "apr.h"
#include "apr_time.h"

/* The state that was logged last for a subject. In shared memory, initially
 * zero. */
typedef struct crmapi_news_t {
    apr_uint32_t state;
    apr_int64_t at;             /* time of the log message; 0: never */
} crmapi_news_t;

/* Return whether to log STATE for the subject of NEWS. One of all processes
 * logs it when it differs from the previous state (initially 0), and again
 * every AGAIN microseconds (0: never). */
int crmapi_news(crmapi_news_t *news, apr_uint32_t state,
                apr_interval_time_t again);

/* Return whether crmapi_news() would return true now. */
int crmapi_is_news(const crmapi_news_t *news, apr_uint32_t state,
                   apr_interval_time_t again);

#endif /* MOD_CRMAPI_NEWS_H */
