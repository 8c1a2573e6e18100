/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_scrape.c: the metrics of the worker (contract 15.3) */
#include "crmapid_scrape.h"

#include <stddef.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_schema.h"
#include "crmapid_relay.h"
#include "crmapid_stats.h"

static const char *const states[CRMD_JOBS_STATES] = {
    "due", "waiting", "leased", "dead", "held"
};

/* A scrape. */
typedef struct scrape_t {
    crm_metrics_t *out;
    const crmd_config_t *config;
    int counted;                /* whether there are COUNTS */
    crmd_counts_t counts[CRMD_LANES];
    apr_pool_t *pool;
} scrape_t;

/* A family of metrics. */
typedef struct family_t {
    const char *name;           /* without "_total" or "_info" */
    const char *type;
    const char *help;
    /* Writes the samples of FAMILY. */
    void (*put)(const scrape_t *scrape, const struct family_t *family);
    size_t offset;              /* for PUT: of the member that it reads */
} family_t;

/* Return the number at OFFSET in STRUCTURE. */
static apr_uint64_t number_at(const void *structure, size_t offset)
{
    return crm_metrics_peek((const apr_uint64_t *)(const void *)
                            ((const char *)structure + offset));
}

static const char *lane_label(const scrape_t *scrape, int lane)
{
    return apr_pstrcat(scrape->pool, "lane=\"", crmd_lanes[lane], "\"", NULL);
}

static const char *relay_label(const scrape_t *scrape, int relay)
{
    return apr_pstrcat(scrape->pool, "relay=\"", crmd_relays[relay]->name,
                       "\"", NULL);
}

static void put_build(const scrape_t *scrape, const family_t *family)
{
    (void)family;
    crm_metrics_sample(scrape->out, "_info", apr_psprintf(
        scrape->pool, "version=\"%s\",schema=\"%d\"", CRM_VERSION,
        CRM_SCHEMA_VERSION), 1);
}

static void put_jobs(const scrape_t *scrape, const family_t *family)
{
    (void)family;
    for (int lane = 0; scrape->counted && lane < CRMD_LANES; lane++) {
        for (int state = 0; state < CRMD_JOBS_STATES; state++) {
            crm_metrics_sample(scrape->out, "", apr_pstrcat(
                scrape->pool, lane_label(scrape, lane), ",state=\"",
                states[state], "\"", NULL),
                scrape->counts[lane].jobs[state]);
        }
    }
}

static void put_oldest(const scrape_t *scrape, const family_t *family)
{
    (void)family;
    for (int lane = 0; scrape->counted && lane < CRMD_LANES; lane++) {
        crm_metrics_seconds(scrape->out, "", lane_label(scrape, lane),
                            scrape->counts[lane].oldest_us);
    }
}

static void put_job_times(const scrape_t *scrape, const family_t *family)
{
    (void)family;
    for (int lane = 0; lane < CRMD_LANES; lane++) {
        crm_metrics_histogram(scrape->out, lane_label(scrape, lane),
                              &crmd_stats.lanes[lane].times);
    }
}

/* A counter of each lane. */
static void put_lanes(const scrape_t *scrape, const family_t *family)
{
    for (int lane = 0; lane < CRMD_LANES; lane++) {
        crm_metrics_count(scrape->out, lane_label(scrape, lane),
                          number_at(&crmd_stats.lanes[lane], family->offset));
    }
}

static void put_busy(const scrape_t *scrape, const family_t *family)
{
    for (int lane = 0; lane < CRMD_LANES; lane++) {
        crm_metrics_sample(scrape->out, "", lane_label(scrape, lane),
                           number_at(&crmd_stats.lanes[lane],
                                     family->offset));
    }
}

static void put_threads(const scrape_t *scrape, const family_t *family)
{
    (void)family;
    for (int lane = 0; lane < CRMD_LANES; lane++) {
        crm_metrics_sample(scrape->out, "", lane_label(scrape, lane),
                           (apr_uint64_t)crmd_lane_threads(scrape->config,
                                                           lane));
    }
}

static void put_steps(const scrape_t *scrape, const family_t *family)
{
    (void)family;
    for (int relay = 0; relay < CRMD_STATS_RELAYS; relay++) {
        for (int i = 0; i < CRMD_STEP_RESULTS; i++) {
            crm_metrics_count(scrape->out, apr_pstrcat(
                scrape->pool, relay_label(scrape, relay), ",result=\"",
                crmd_step_results[i], "\"", NULL),
                crm_metrics_peek(&crmd_stats.steps[relay][i]));
        }
    }
}

static void put_relays(const scrape_t *scrape, const family_t *family)
{
    (void)family;
    for (int relay = 0; relay < CRMD_STATS_RELAYS; relay++) {
        crm_metrics_histogram(scrape->out, relay_label(scrape, relay),
                              &crmd_stats.relays[relay]);
    }
}

static void put_deliveries(const scrape_t *scrape, const family_t *family)
{
    (void)family;
    for (int i = 0; i < CRMD_WEBHOOK_RESULTS; i++) {
        crm_metrics_count(scrape->out, apr_pstrcat(
            scrape->pool, "result=\"", crmd_webhook_results[i], "\"", NULL),
            crm_metrics_peek(&crmd_stats.deliveries[i]));
    }
}

static void put_webhooks(const scrape_t *scrape, const family_t *family)
{
    (void)family;
    crm_metrics_histogram(scrape->out, "", &crmd_stats.webhooks);
}

/* A counter of the process. */
static void put_count(const scrape_t *scrape, const family_t *family)
{
    crm_metrics_count(scrape->out, "",
                      number_at(&crmd_stats, family->offset));
}

/* A gauge of the process. */
static void put_gauge(const scrape_t *scrape, const family_t *family)
{
    crm_metrics_sample(scrape->out, "", "",
                       number_at(&crmd_stats, family->offset));
}

#define IN_STATS(member) offsetof(crmd_stats_t, member)
#define IN_LANE(member) offsetof(crmd_lane_stats_t, member)

static const family_t families[] = {
    {"crmapid_build", "info", "Version of crmapid and of the schema that it "
     "needs", put_build, 0},
    {"crmapid_jobs", "gauge", "Jobs in the database, for all daemons",
     put_jobs, 0},
    {"crmapid_oldest_due_seconds", "gauge", "How long the oldest due job has "
     "been due that is not held; 0 if none is", put_oldest, 0},
    {"crmapid_job_duration_seconds", "histogram", "Time of an attempt at a job",
     put_job_times, 0},
    {"crmapid_jobs_failed", "counter", "Attempts at jobs that ended with an "
     "error and are made again", put_lanes, IN_LANE(failed)},
    {"crmapid_jobs_dead", "counter", "Jobs that were given up", put_lanes,
     IN_LANE(dead)},
    {"crmapid_leases_lost", "counter", "Jobs whose lease was lost before their "
     "result was recorded", put_lanes, IN_LANE(lost)},
    {"crmapid_jobs_released", "counter", "Jobs of daemons without a heartbeat "
     "that this one released", put_count, IN_STATS(released)},
    {"crmapid_threads", "gauge", "Threads for jobs", put_threads, 0},
    {"crmapid_threads_busy", "gauge", "Threads that run a job", put_busy,
     IN_LANE(busy)},
    {"crmapid_steps", "counter", "Attempts to send steps of sequences",
     put_steps, 0},
    {"crmapid_relay_duration_seconds", "histogram", "Time of handing a message "
     "to a relay", put_relays, 0},
    {"crmapid_webhook_deliveries", "counter", "Attempts to deliver webhooks",
     put_deliveries, 0},
    {"crmapid_webhook_duration_seconds", "histogram", "Time from connecting to "
     "an endpoint to the end of its answer", put_webhooks, 0},
    {"crmapid_database_connections", "gauge", "Open database connections",
     put_gauge, IN_STATS(connections)},
    {"crmapid_database_connects", "counter", "Database connections that were "
     "opened", put_count, IN_STATS(connects)},
    {"crmapid_database_errors", "counter", "Rounds of a thread that failed "
     "because of the database", put_count, IN_STATS(db_errors)},
    {"crmapid_log_lines_lost", "counter", "Lines of the log that could not be "
     "written", put_count, IN_STATS(log_lost)},
};

void crmd_scrape(crm_metrics_t *metrics, const crmd_config_t *config,
                 crmd_watch_t *watch, apr_pool_t *pool)
{
    scrape_t scrape = {.out = metrics, .config = config, .pool = pool};

    scrape.counted = crmd_watch_counts(scrape.counts, watch);
    for (size_t i = 0; i < CRM_NELTS(families); i++) {
        crm_metrics_family(metrics, families[i].name, families[i].type,
                           families[i].help);
        families[i].put(&scrape, &families[i]);
    }
    crm_metrics_end(metrics);
}
