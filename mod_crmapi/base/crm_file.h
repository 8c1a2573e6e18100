/* SPDX-License-Identifier: Apache-2.0 */
/* crm_file.h: files that must survive a crash */
#ifndef CRM_FILE_H
#define CRM_FILE_H

#include "apr.h"

/* Write the LEN bytes at TEXT to the descriptor FD. Return 0 on failure, with
 * errno set. */
int crm_file_write(int fd, const char *text, apr_size_t len);

/* Sync the folder PATH, so that its entries survive a crash. Return 0 on
 * failure, with errno set. */
int crm_file_sync_folder(const char *path);

#endif /* CRM_FILE_H */
