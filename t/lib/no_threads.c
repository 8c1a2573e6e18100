/* SPDX-License-Identifier: Apache-2.0 */
/* no_threads.c: for LD_PRELOAD: a host that has no room for more threads. While the file
 * $CRM_NO_THREADS is there, none can be made, and it gets a byte for each. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

typedef int create_t(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attr,
                   void *(*run)(void *), void *restrict data)
{
    create_t *real = (create_t *)dlsym(RTLD_NEXT, "pthread_create");
    const char *path = getenv("CRM_NO_THREADS");
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;

    if (fd < 0) {
        return real(thread, attr, run, data);
    }
    if (write(fd, "x", 1) < 0) {
        abort();
    }
    close(fd);
    return EAGAIN;
}
