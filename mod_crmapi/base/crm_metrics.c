/* SPDX-License-Identifier: Apache-2.0 */
/* crm_metrics.c: histograms, and the text formats of metrics: OpenMetrics 1.0
 * and the older one of Prometheus */
#include "crm_metrics.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "apr_lib.h"
#include "apr_strings.h"

/* The upper bounds of histograms, in microseconds, ascending. */
static const apr_int64_t bounds[CRM_METRICS_BOUNDS] = {
    1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000,
    1000000, 2500000, 5000000, 10000000, 30000000
};

void crm_metrics_observe(crm_histogram_t *histogram, apr_int64_t us)
{
    int i = 0;

    us = us > 0 ? us : 0;
    while (i < CRM_METRICS_BOUNDS && us > bounds[i]) {
        i++;
    }
    crm_metrics_add(&histogram->buckets[i], 1);
    crm_metrics_add(&histogram->sum_us, (apr_uint64_t)us);
}

/* ---- the format ---------------------------------------------------------- */

/* Return the quality of RANGE, an element of an Accept header, in
 * thousandths. */
static int quality_of(const char *range)
{
    const char *q = strchr(range, ';');
    double quality = 1;

    while (q && strncmp(q + 1 + strspn(q + 1, " \t"), "q=", 2)) {
        q = strchr(q + 1, ';');
    }
    if (q) {
        quality = strtod(strchr(q, '=') + 1, NULL);
    }
    /* A client may send any number, even NaN: an int cannot hold them all. */
    return quality >= 1 ? 1000 : quality > 0 ? (int)(1000 * quality) : 0;
}

/* Return whether a client with the header ACCEPT prefers OpenMetrics to the
 * older format. */
static int prefers_open_metrics(const char *accept, apr_pool_t *pool)
{
    char *last, *copy = apr_pstrdup(pool, accept ? accept : "");
    int open = 0, older = 0;

    for (char *range = apr_strtok(copy, ",", &last); range;
         range = apr_strtok(NULL, ",", &last)) {
        range += strspn(range, " \t");
        if (!strncasecmp(range, "application/openmetrics-text", 28)) {
            open = quality_of(range);
        }
        else if (!strncasecmp(range, "text/plain", 10)
                 || !strncasecmp(range, "text/*", 6)
                 || !strncmp(range, "*/*", 3)) {
            int quality = quality_of(range);

            older = quality > older ? quality : older;
        }
    }
    return open && open >= older;
}

void crm_metrics_init(crm_metrics_t *metrics, const char *accept,
                      apr_pool_t *pool)
{
    memset(metrics, 0, sizeof(*metrics));
    metrics->open_metrics = prefers_open_metrics(accept, pool);
    crm_buf_init(&metrics->text, 65536, pool);
}

const char *crm_metrics_type(const crm_metrics_t *metrics)
{
    return metrics->open_metrics
           ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
           : "text/plain; version=0.0.4; charset=utf-8";
}

void crm_metrics_end(crm_metrics_t *metrics)
{
    if (metrics->open_metrics) {
        crm_buf_puts(&metrics->text, "# EOF\n");
    }
}

/* The older format has no type "info", and a counter has the name of its
 * samples there. */
void crm_metrics_family(crm_metrics_t *metrics, const char *name,
                        const char *type, const char *help)
{
    int is_info = !strcmp(type, "info");
    const char *suffix = "";

    metrics->family = name;
    if (!metrics->open_metrics) {
        suffix = is_info ? "_info" : !strcmp(type, "counter") ? "_total" : "";
    }
    crm_buf_printf(&metrics->text, "# TYPE %s%s %s\n", name, suffix,
                   is_info && !metrics->open_metrics ? "gauge" : type);
    if (metrics->open_metrics && !strcmp(type, "histogram")) {
        crm_buf_printf(&metrics->text, "# UNIT %s seconds\n", name);
    }
    crm_buf_printf(&metrics->text, "# HELP %s%s %s\n", name, suffix, help);
}

/* ---- samples ------------------------------------------------------------- */

static void put_number(crm_buf_t *text, apr_uint64_t n)
{
    char digits[20];
    int i = sizeof(digits);

    do {
        digits[--i] = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    crm_buf_add(text, digits + i, sizeof(digits) - (size_t)i);
}

/* Begin a sample of the family, with SUFFIX and LABELS. */
static void begin_sample(crm_metrics_t *metrics, const char *suffix,
                         const char *labels)
{
    crm_buf_puts(&metrics->text, metrics->family);
    crm_buf_puts(&metrics->text, suffix);
    if (*labels) {
        crm_buf_putc(&metrics->text, '{');
        crm_buf_puts(&metrics->text, labels);
        crm_buf_putc(&metrics->text, '}');
    }
    crm_buf_putc(&metrics->text, ' ');
}

void crm_metrics_sample(crm_metrics_t *metrics, const char *suffix,
                        const char *labels, apr_uint64_t value)
{
    begin_sample(metrics, suffix, labels);
    put_number(&metrics->text, value);
    crm_buf_putc(&metrics->text, '\n');
}

void crm_metrics_seconds(crm_metrics_t *metrics, const char *suffix,
                         const char *labels, apr_uint64_t us)
{
    char digits[9] = ".000000\n";

    begin_sample(metrics, suffix, labels);
    put_number(&metrics->text, us / 1000000);
    us %= 1000000;
    for (int i = 6; i > 0; i--) {
        digits[i] = (char)('0' + us % 10);
        us /= 10;
    }
    crm_buf_add(&metrics->text, digits, 8);
}

void crm_metrics_count(crm_metrics_t *metrics, const char *labels,
                       apr_uint64_t value)
{
    crm_metrics_sample(metrics, "_total", labels, value);
}

/* Write a bucket of a histogram with LABELS: COUNT times are at most US
 * microseconds. US -1: the bucket of all times. */
static void put_bucket(crm_metrics_t *metrics, const char *labels,
                       apr_int64_t us, apr_uint64_t count)
{
    crm_buf_t *text = &metrics->text;

    crm_buf_puts(text, metrics->family);
    crm_buf_puts(text, "_bucket{");
    crm_buf_puts(text, labels);
    crm_buf_puts(text, *labels ? ",le=\"" : "le=\"");
    if (us < 0) {
        crm_buf_puts(text, "+Inf");
    }
    else {
        put_number(text, (apr_uint64_t)us / 1000000);
        crm_buf_putc(text, '.');
        us %= 1000000;
        do {                    /* OpenMetrics: no zeros at the end */
            crm_buf_putc(text, (char)('0' + us / 100000));
            us = us % 100000 * 10;
        } while (us);
    }
    crm_buf_puts(text, "\"} ");
    put_number(text, count);
    crm_buf_putc(text, '\n');
}

int crm_metrics_counted(const crm_histogram_t *histogram)
{
    for (int i = 0; i <= CRM_METRICS_BOUNDS; i++) {
        if (crm_metrics_peek(&histogram->buckets[i])) {
            return 1;
        }
    }
    return 0;
}

void crm_metrics_histogram(crm_metrics_t *metrics, const char *labels,
                           const crm_histogram_t *histogram)
{
    apr_uint64_t counts[CRM_METRICS_BOUNDS + 1], sum = 0;

    for (int i = 0; i <= CRM_METRICS_BOUNDS; i++) {
        sum += crm_metrics_peek(&histogram->buckets[i]);
        counts[i] = sum;
    }
    for (int i = 0; i <= CRM_METRICS_BOUNDS; i++) {
        put_bucket(metrics, labels, i < CRM_METRICS_BOUNDS
                   ? bounds[i] : -1, counts[i]);
    }
    crm_metrics_sample(metrics, "_count", labels, sum);
    crm_metrics_seconds(metrics, "_sum", labels,
                        crm_metrics_peek(&histogram->sum_us));
}

const char *crm_metrics_label(const char *text, apr_pool_t *pool)
{
    char *out = apr_palloc(pool, 2 * strlen(text) + 1), *end = out;

    for (; *text; text++) {
        if (*text == '\\' || *text == '"') {
            *end++ = '\\';
        }
        *end++ = apr_iscntrl(*text) ? '?' : *text;
    }
    *end = '\0';
    return out;
}
