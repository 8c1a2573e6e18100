/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_journal.h: what a daemon has sent, in files outside of the database:
 * its mark, and a line for each message (crmapid_mark.h) */
#ifndef CRMAPID_JOURNAL_H
#define CRMAPID_JOURNAL_H

#include "apr_pools.h"
#include "apr_time.h"

#include "crm_error.h"

/* What errors of the folder have instead of an SQLSTATE. */
#define CRMD_RUN_DIR "CRM04"

/* Slots of numbers, as in crmapi.send_mark. */
#define CRMD_SLOTS 16

/* The numbers of a mark. */
typedef struct crmd_numbers_t {
    apr_int64_t slot[CRMD_SLOTS];
} crmd_numbers_t;

/* Raise the slot of NUMBER, which has its slot in the lowest four bits, in
 * NUMBERS. */
void crmd_numbers_raise(crmd_numbers_t *numbers, apr_int64_t number);

/* Use the journal of the database INSTANCE in the folder RUN_DIR, which is made
 * if it is missing, and set NUMBERS to its mark: the highest numbers of its
 * files. Files of days older than KEEP are deleted. The functions below then
 * work on this journal. No two threads may call them at the same time. Errors:
 * a file cannot be read or written (CRM_E_BAD_REQUEST). */
crm_error_t *crmd_journal_open(crmd_numbers_t *numbers, const char *run_dir,
                               const char *instance, apr_interval_time_t keep,
                               apr_pool_t *scratch_pool);

/* Return whether the journal of INSTANCE in RUN_DIR is in use. */
int crmd_journal_is(const char *run_dir, const char *instance);

/* Replace the file of the mark by NUMBERS, in one step that survives a crash.
 * Errors: CRM_E_UNAVAILABLE. */
crm_error_t *crmd_journal_save(const crmd_numbers_t *numbers,
                               apr_pool_t *scratch_pool);

/* Add the LEN bytes of LINE, which ends with a line feed, to the file of this
 * day; if SYNC, wait until the disk has it. Errors: CRM_E_UNAVAILABLE. */
crm_error_t *crmd_journal_add(const char *line, apr_size_t len, int sync,
                              apr_pool_t *scratch_pool);

/* Call TAKE with BATON for each complete line of all files, oldest first, until
 * it returns an error. LINE has no line feed and lives until TAKE returns. Errors:
 * that of TAKE; the folder or a file cannot be read (CRM_E_BAD_REQUEST). */
crm_error_t *crmd_journal_each(crm_error_t *(*take)(void *baton,
                                                    const char *line),
                               void *baton, apr_pool_t *scratch_pool);

/* Return whether the last attempt to write to the folder failed: it is full, or
 * its rights have changed. For any thread. */
int crmd_journal_failed(void);

#endif /* CRMAPID_JOURNAL_H */
