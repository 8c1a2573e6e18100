/* SPDX-License-Identifier: Apache-2.0 */
/* no_space.c: for LD_PRELOAD: a disk that is full. While the file $CRM_FULL is there,
 * no file can be made whose path begins with $CRM_DISK. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int open(const char *path, int flags, ...)
{
    int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
    const char *disk = getenv("CRM_DISK"), *full = getenv("CRM_FULL");
    va_list rest;
    int mode;

    va_start(rest, flags);
    mode = flags & O_CREAT ? va_arg(rest, int) : 0;
    va_end(rest);
    if (flags & O_CREAT && disk && !strncmp(path, disk, strlen(disk)) && full
        && !access(full, F_OK)) {
        errno = ENOSPC;
        return -1;
    }
    return real(path, flags, mode);
}
