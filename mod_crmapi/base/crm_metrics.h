/* SPDX-License-Identifier: Apache-2.0 */
/* crm_metrics.h: histograms, and the text formats of metrics: OpenMetrics 1.0
 * and the older one of Prometheus */
#ifndef CRM_METRICS_H
#define CRM_METRICS_H

#include "apr_pools.h"

#include "crm_buf.h"

/* The number of a histogram's bounds. It has one bucket more. */
#define CRM_METRICS_BOUNDS 14

/* A histogram of times. All members are atomic, start at 0 and never
 * decrease. */
typedef struct crm_histogram_t {
    apr_uint64_t buckets[CRM_METRICS_BOUNDS + 1]; /* not cumulative */
    apr_uint64_t sum_us;
} crm_histogram_t;

/* A page of metrics in progress. */
typedef struct crm_metrics_t {
    crm_buf_t text;
    int open_metrics;           /* 0: the older format */
    const char *family;         /* name of the metrics being written, without
                                   "_total" or "_info" */
} crm_metrics_t;

/* Add N to the atomic COUNT. */
static inline void crm_metrics_add(apr_uint64_t *count, apr_uint64_t n)
{
    __atomic_fetch_add(count, n, __ATOMIC_RELAXED);
}

/* Return the value of the atomic COUNT. */
static inline apr_uint64_t crm_metrics_peek(const apr_uint64_t *count)
{
    return __atomic_load_n(count, __ATOMIC_RELAXED);
}

/* Count a time of US microseconds in HISTOGRAM. */
void crm_metrics_observe(crm_histogram_t *histogram, apr_int64_t us);

/* Begin METRICS in the format that a client with the Accept header ACCEPT (or
 * NULL) prefers. Its text is freed with POOL. */
void crm_metrics_init(crm_metrics_t *metrics, const char *accept,
                      apr_pool_t *pool);

/* Return the Content-Type of METRICS. */
const char *crm_metrics_type(const crm_metrics_t *metrics);

/* Begin the family NAME of TYPE ("counter", "gauge", "info", "histogram"). HELP
 * describes it. NAME has no "_total" or "_info". */
void crm_metrics_family(crm_metrics_t *metrics, const char *name,
                        const char *type, const char *help);

/* Add a sample of the family with SUFFIX, LABELS ("" or "a=\"b\"") and
 * VALUE. */
void crm_metrics_sample(crm_metrics_t *metrics, const char *suffix,
                        const char *labels, apr_uint64_t value);

/* Add a sample with LABELS whose value is US microseconds as seconds. */
void crm_metrics_seconds(crm_metrics_t *metrics, const char *suffix,
                         const char *labels, apr_uint64_t us);

/* Add the sample of a counter. */
void crm_metrics_count(crm_metrics_t *metrics, const char *labels,
                       apr_uint64_t value);

/* Return whether HISTOGRAM has counted anything. */
int crm_metrics_counted(const crm_histogram_t *histogram);

/* Add HISTOGRAM with LABELS. */
void crm_metrics_histogram(crm_metrics_t *metrics, const char *labels,
                           const crm_histogram_t *histogram);

/* End METRICS; nothing may be added afterwards. */
void crm_metrics_end(crm_metrics_t *metrics);

/* Return TEXT as the value of a label, in POOL. Control characters become
 * '?'. */
const char *crm_metrics_label(const char *text, apr_pool_t *pool);

#endif /* CRM_METRICS_H */
