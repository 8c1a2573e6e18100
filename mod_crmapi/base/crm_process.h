/* SPDX-License-Identifier: Apache-2.0 */
/* crm_process.h: what a process sees to before it does anything */
#ifndef CRM_PROCESS_H
#define CRM_PROCESS_H

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

#endif /* CRM_PROCESS_H */
