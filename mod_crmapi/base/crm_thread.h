/* SPDX-License-Identifier: Apache-2.0 */
/* crm_thread.h: threads that nobody waits for */
#ifndef CRM_THREAD_H
#define CRM_THREAD_H

/* Start a thread that runs MAIN with DATA. It gets no signals, and its result is not
 * used. Return whether it runs. */
int crm_thread_start(void *(*main)(void *data), void *data);

#endif /* CRM_THREAD_H */
