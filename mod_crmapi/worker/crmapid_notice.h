/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_notice.h: failures of the sites' own work, told to who runs crmapid */
#ifndef CRMAPID_NOTICE_H
#define CRMAPID_NOTICE_H

/* What is told: a line of the log for each kind, with a count, at most once a
 * minute. */
typedef enum crmd_notice_t {
    CRMD_NOTICE_FAILED,         /* an enrollment has failed */
    CRMD_NOTICE_NO_ADMIN,       /* an enrollment waits for approval, and its
                                   workspace has no admin */
    CRMD_NOTICE_WEBHOOK,        /* an attempt to deliver a webhook has failed */
    CRMD_NOTICES
} crmd_notice_t;

/* Count KIND. Log it, unless that was done less than a minute ago. */
void crmd_notice(crmd_notice_t kind);

/* Log what was counted since the last line of its kind, if that is a minute ago,
 * or at once if ALL. */
void crmd_notice_flush(int all);

#endif /* CRMAPID_NOTICE_H */
