/* SPDX-License-Identifier: Apache-2.0 */
/* crm_file.h: files that must survive a crash, and what a folder has */
#ifndef CRM_FILE_H
#define CRM_FILE_H

#include "apr_errno.h"
#include "apr_tables.h"

/* Write the LEN bytes at TEXT to the descriptor FD. Return 0 on failure, with
 * errno set. */
int crm_file_write(int fd, const char *text, apr_size_t len);

/* Sync the folder PATH, so that its entries survive a crash. Return 0 on
 * failure, with errno set. */
int crm_file_sync_folder(const char *path);

/* Set *NAMES_P to the names of the entries of the folder PATH (const char *), with
 * "." and "..", in any order, in POOL. Return why it cannot be read as a whole:
 * APR_STATUS_IS_ENOENT() if it is not there. */
apr_status_t crm_file_names(apr_array_header_t **names_p, const char *path,
                            apr_pool_t *pool);

#endif /* CRM_FILE_H */
