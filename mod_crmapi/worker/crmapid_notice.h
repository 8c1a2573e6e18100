/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_notice.h: failures of the sites' own work, told to who runs crmapid */
#ifndef CRMAPID_NOTICE_H
#define CRMAPID_NOTICE_H

#include "apr_pools.h"
#include "apr_time.h"

#include "crm_log.h"

/* What is told: a line of the log for each kind, with a count, at most once a
 * minute. */
typedef enum crmd_notice_t {
    CRMD_NOTICE_FAILED,         /* an enrollment has failed */
    CRMD_NOTICE_NO_ADMIN,       /* an enrollment waits for approval, and its
                                   workspace has no admin */
    CRMD_NOTICE_WEBHOOK,        /* an attempt to deliver a webhook has failed */
    CRMD_NOTICES
} crmd_notice_t;

/* Count KIND in the workspace with the id WORKSPACE. Log it, unless that was done less
 * than a minute ago. The line has a command that shows more about this workspace. */
void crmd_notice(crmd_notice_t kind, const char *workspace);

/* Log what was counted since the last line of its kind, if that is a minute ago,
 * or at once if ALL. */
void crmd_notice_flush(int all);

/* What may fail for many messages in a row, such as for all of a relay that is away:
 * when it was told last, and how often it has happened since. Begins with zeros. */
typedef struct crmd_repeated_t {
    apr_time_t told;
    unsigned long others;
} crmd_repeated_t;

/* Return the level at which one more of REPEATED is logged: a warning, if the last
 * one is a minute ago, otherwise info. Set *OTHERS_P, what the end of the line says of
 * those that were not told, in POOL. For any thread. */
crm_level_t crmd_notice_repeated(const char **others_p,
                                 crmd_repeated_t *repeated, apr_pool_t *pool);

#endif /* CRMAPID_NOTICE_H */
