/* SPDX-License-Identifier: Apache-2.0 */
/* crm_process.h: what a process sees to before it does anything */
#ifndef CRM_PROCESS_H
#define CRM_PROCESS_H

#include "apr_pools.h"

/* Let a crash of this process leave no core file, and other processes of its user
 * neither trace it nor read its memory. Return 0, or -1 with errno set. */
int crm_process_seal(void);

/* Make that each standard stream which is closed is open, and fails. Otherwise a
 * connection to the database, or a file, would get its number, and what is logged or
 * printed. A file that may not become larger (RLIMIT_FSIZE) is an error of write(), no
 * signal. */
void crm_process_files(void);

/* Let this process have COUNT open files, if the system's hard limit allows it.
 * Return how many it may have. */
unsigned long crm_process_allow(unsigned long count);

/* Have TELL called when there is no memory, also for POOL, the root of all pools. It
 * says so, needs no memory, and returns the exit code of the process, which then
 * ends. */
void crm_process_memory(int (*tell)(void), apr_pool_t *pool);

/* End the process, because there is no memory. */
void crm_process_no_memory(void) __attribute__((noreturn));

#endif /* CRM_PROCESS_H */
