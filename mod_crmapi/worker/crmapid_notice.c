/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_notice.c: failures of the sites' own work, told to who runs crmapid */
#include "crmapid_notice.h"

#include <pthread.h>

#include "apr_strings.h"

#include "crm_time.h"
#include "crm_uuid.h"
#include "crmapid_log.h"

#define EVERY apr_time_from_sec(60)

/* A kind: its line, and how often it has happened since the last line. */
typedef struct notice_t {
    const char *code;
    const char *text[2];        /* behind a count of 1, and behind others */
    const char *command;        /* what shows more, before a workspace's id */
    unsigned long count;
    apr_time_t told;            /* when the last line was logged */
    char workspace[CRM_UUID_LEN + 1];   /* where it happened last */
} notice_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static notice_t notices[CRMD_NOTICES] = {
    [CRMD_NOTICE_FAILED] = {"CRM3115: ", {
        "enrollment has failed", "enrollments have failed"},
        "enrollment list --status failed", 0, 0, ""},
    [CRMD_NOTICE_NO_ADMIN] = {"CRM3116: ", {
        "enrollment waits for approval, in a workspace without an admin",
        "enrollments wait for approval, in workspaces without an admin"},
        "enrollment list --status pending_approval", 0, 0, ""},
    [CRMD_NOTICE_WEBHOOK] = {"CRM3142: ", {
        "attempt to deliver a webhook has failed",
        "attempts to deliver a webhook have failed"},
        "webhook deliveries", 0, 0, ""},
};

/* Return whether a line that was logged at TOLD, or never if that is 0, may be
 * logged again at NOW. */
static int is_due(apr_time_t told, apr_time_t now)
{
    return !told || now - told >= EVERY;
}

/* Log NOTICE if it has a count, and if it is time or ALL is set. The caller has
 * the lock. */
static void tell(notice_t *notice, int all)
{
    apr_time_t now = crm_time_monotonic();

    if (notice->count && (all || is_due(notice->told, now))) {
        crmd_logf(CRM_LOG_WARNING, "%s%lu %s: see crmapictl %s --workspace %s",
                  notice->code, notice->count, notice->text[notice->count != 1],
                  notice->command, notice->workspace);
        notice->count = 0;
        notice->told = now;
    }
}

void crmd_notice(crmd_notice_t kind, const char *workspace)
{
    pthread_mutex_lock(&lock);
    notices[kind].count++;
    apr_cpystrn(notices[kind].workspace, workspace,
                sizeof(notices[kind].workspace));
    tell(&notices[kind], 0);
    pthread_mutex_unlock(&lock);
}

void crmd_notice_flush(int all)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < CRMD_NOTICES; i++) {
        tell(&notices[i], all);
    }
    pthread_mutex_unlock(&lock);
}

crm_level_t crmd_notice_repeated(const char **others_p,
                                 crmd_repeated_t *repeated, apr_pool_t *pool)
{
    apr_time_t now = crm_time_monotonic();
    crm_level_t level = CRM_LOG_INFO;

    *others_p = "";
    pthread_mutex_lock(&lock);
    if (!is_due(repeated->told, now)) {
        repeated->others++;
    }
    else {
        level = CRM_LOG_WARNING;
        if (repeated->others) {
            *others_p = apr_psprintf(pool, " (and %lu more since the last such"
                                     " warning)", repeated->others);
        }
        repeated->told = now;
        repeated->others = 0;
    }
    pthread_mutex_unlock(&lock);
    return level;
}
