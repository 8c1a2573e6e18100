/* SPDX-License-Identifier: Apache-2.0 */
/* crm_file.c: files that must survive a crash */
#include "crm_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

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
