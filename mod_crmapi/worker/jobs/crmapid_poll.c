/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_poll.c: which lanes have due jobs, by polling and by NOTIFY */
#include "crmapid_poll.h"

#include <poll.h>
#include <string.h>

#include "apr_strings.h"

#include "crm_db.h"
#include "crm_db_conn.h"
#include "crm_db_error.h"
#include "crmapid_stats.h"

_Static_assert(CRMD_LANES == CRMD_STATS_LANES, "each lane has its numbers");

const char *const crmd_lanes[CRMD_LANES] = {
    "generate", "sequence", "answer", "webhook"
};

/* Columns of crmapi.job_poll(). */
enum { LANE, READY, WAIT };

int crmd_lane_of(const char *name)
{
    for (int lane = 0; lane < CRMD_LANES; lane++) {
        if (!strcmp(crmd_lanes[lane], name)) {
            return lane;
        }
    }
    return -1;
}

int crmd_lane_threads(const crmd_config_t *config, int lane)
{
    const int counts[CRMD_LANES] = {
        [CRMD_LANE_GENERATE] = config->generate_threads,
        [CRMD_LANE_SEQUENCE] = config->threads,
        [CRMD_LANE_ANSWER] = config->answer_threads,
        [CRMD_LANE_WEBHOOK] = config->webhook_threads
    };

    return counts[lane];
}

int crmd_job_threads(const crmd_config_t *config)
{
    int count = 0;

    for (int lane = 0; lane < CRMD_LANES; lane++) {
        count += crmd_lane_threads(config, lane);
    }
    return count;
}

static void begin(crmd_poll_t *due)
{
    memset(due, 0, sizeof(*due));
    due->next = -1;
}

crm_error_t *crmd_poll_query(crmd_poll_t *due, crm_conn_t *conn,
                             const char *moment, apr_pool_t *scratch_pool)
{
    crm_stmt_t stmt = {"SELECT p.lane, p.ready, p.wait FROM crmapi.job_poll("
                       "'{generate,sequence,answer,webhook}',"
                       " $1::timestamptz) p", 1,
                       &moment};
    PGresult *result;

    begin(due);
    CRM_ERR(crm_db_query(&result, conn, &stmt, scratch_pool));
    for (int i = 0; i < PQntuples(result); i++) {
        int lane = crmd_lane_of(PQgetvalue(result, i, LANE));
        const char *wait = crm_db_value(result, i, WAIT);

        if (lane >= 0) {
            due->ready[lane] = *PQgetvalue(result, i, READY) == 't';
        }
        if (wait && (due->next < 0 || apr_atoi64(wait) < due->next)) {
            due->next = apr_atoi64(wait);
        }
    }
    return NULL;
}

crm_error_t *crmd_poll_listen(int *new_p, unsigned *session_p,
                              crm_conn_t *conn, apr_pool_t *scratch_pool)
{
    crm_stmt_t stmt = {"LISTEN crmapi_job", 0, NULL};
    PGresult *result;

    *new_p = crm_conn_session(conn) != *session_p || !*session_p;
    if (*new_p) {
        CRM_ERR(crm_db_query(&result, conn, &stmt, scratch_pool));
        *session_p = crm_conn_session(conn);
    }
    return NULL;
}

/* Read the notifications that PG has received into DUE. Return whether there
 * were any. An empty one means: poll now. */
static int take_notices(crmd_poll_t *due, PGconn *pg)
{
    PGnotify *notice;
    int any = 0;

    while ((notice = PQnotifies(pg))) {
        int lane = crmd_lane_of(notice->extra);

        any = 1;
        if (lane >= 0) {
            due->ready[lane] = 1;
        }
        else if (!*notice->extra) {
            due->next = 0;
        }
        PQfreemem(notice);
    }
    return any;
}

crm_error_t *crmd_poll_wait(crmd_poll_t *due, crm_conn_t *conn,
                            apr_interval_time_t timeout,
                            apr_pool_t *scratch_pool)
{
    PGconn *pg = crm_conn_pg(conn);
    struct pollfd poller = {PQsocket(pg), POLLIN, 0};

    begin(due);
    /* Some may have arrived with the answer to a statement. */
    if (take_notices(due, pg)) {
        return NULL;
    }
    if (poll(&poller, 1, (int)((timeout + 999) / 1000)) > 0) {
        if (!PQconsumeInput(pg)) {
            return crm_db_error(NULL, pg, scratch_pool);
        }
        take_notices(due, pg);
    }
    return NULL;
}
