/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_mark.h: noticing that the database was restored
 *
 * crmapi.send_mark counts messages and heartbeats. The daemon keeps the highest
 * numbers that it has seen in run_dir, and a line for each message before it is
 * handed over. A database with lower numbers is an older state: from it the
 * daemon would send again what it has sent since. So it holds the database, adds
 * its lines to crmapi.past_send and past_answer, and an operator decides when to go on.
 * Several daemons have a mark each, and each adds what it knows. */
#ifndef CRMAPID_MARK_H
#define CRMAPID_MARK_H

#include "apr_pools.h"

#include "crm_db_conn.h"
#include "crm_error.h"

#include "crmapid_config.h"
#include "crmapid_job.h"

/* The SQLSTATE of a statement that found the database older than the mark. */
#define CRMD_OLDER "CRM02"

/* A message in the journal. It has ids only, no personal data. */
typedef struct crmd_sending_t {
    apr_int64_t number;         /* of crmapi.mark_next() */
    const char *group_member;   /* "enrollment_id", or "conversation_id" */
    const char *group;          /* its id */
    const char *part_member;    /* "part" as in crmapi.past_send, or
                                   "message_id" as in crmapi.past_answer */
    const char *part;
} crmd_sending_t;

/* Compare the database of CONN with the mark, in CONFIG's run_dir. If it is
 * older, or was restored or copied, hold it, add the journal to what was sent,
 * and log that once. Errors: those of the database; CRM_E_BAD_REQUEST: run_dir
 * cannot be used. */
crm_error_t *crmd_mark_check(const crmd_config_t *config, crm_conn_t *conn,
                             apr_pool_t *scratch_pool);

/* Return the mark as an array of bigint, in POOL: a bind for the functions that
 * take it. */
const char *crmd_mark_known(apr_pool_t *pool);

/* Raise the mark to NUMBER, from crmapi.mark_next(), and to MARKS, all numbers
 * of the database (an array of bigint), which other daemons have raised too.
 * Store the mark. Errors: it cannot be written. */
crm_error_t *crmd_mark_learn(const char *number, const char *marks,
                             apr_pool_t *scratch_pool);

/* Write to the journal that SENDING is about to be handed to a relay, and wait
 * until the disk has it. Errors: the journal cannot be written, so nothing may
 * be sent. */
crm_error_t *crmd_mark_begin(const crmd_sending_t *sending,
                             const crmd_work_t *work);

/* Write to the journal how SENDING has ended: STATE is "sent" or "free", as in
 * crmapi.past_send. PROVIDER_ID may be NULL. A failure is logged. */
void crmd_mark_end(const crmd_sending_t *sending, const char *state,
                   const char *provider_id, const crmd_work_t *work);

#endif /* CRMAPID_MARK_H */
