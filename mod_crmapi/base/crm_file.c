/* SPDX-License-Identifier: Apache-2.0 */
/* crm_file.c: files that must survive a crash, and what a folder has */
#include "crm_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "apr_file_info.h"
#include "apr_strings.h"

int crm_file_write(int fd, const char *text, apr_size_t len)
{
    while (len) {
        ssize_t n = write(fd, text, len);

        if (n < 0 && errno != EINTR) {
            return 0;
        }
        if (n > 0) {
            text += n;
            len -= (apr_size_t)n;
        }
    }
    return 1;
}

int crm_file_sync_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int done = fd >= 0 && !fsync(fd);
    int number = errno;

    if (fd >= 0) {
        close(fd);
    }
    errno = number;
    return done;
}

apr_status_t crm_file_names(apr_array_header_t **names_p, const char *path,
                            apr_pool_t *pool)
{
    apr_array_header_t *names = apr_array_make(pool, 32, sizeof(const char *));
    apr_finfo_t info;
    apr_dir_t *dir;
    apr_status_t status = apr_dir_open(&dir, path, pool);

    *names_p = names;
    if (status) {
        return status;
    }
    while (!(status = apr_dir_read(&info, APR_FINFO_NAME, dir))) {
        APR_ARRAY_PUSH(names, const char *) = apr_pstrdup(pool, info.name);
    }
    apr_dir_close(dir);
    return APR_STATUS_IS_ENOENT(status) ? APR_SUCCESS : status;
}
