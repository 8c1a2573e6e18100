/* SPDX-License-Identifier: Apache-2.0 */
/* crm_process.h: what the memory of this process may be seen by */
#ifndef CRM_PROCESS_H
#define CRM_PROCESS_H

/* Let a crash of this process leave no core file, and other processes of its user
 * neither trace it nor read its memory. Return 0, or -1 with errno set. */
int crm_process_seal(void);

#endif /* CRM_PROCESS_H */
