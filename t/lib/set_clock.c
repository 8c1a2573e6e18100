/* SPDX-License-Identifier: Apache-2.0 */
/* set_clock.c: for LD_PRELOAD: the system's clock as if somebody had set it, by the
 * seconds in the file $CRM_CLOCK. What waits until a time of that clock waits
 * longer when it is set back, as in the kernel. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Times of CLOCK_MONOTONIC are below, those of the system's clock above. */
#define YEAR_2001 1000000000

#define CHUNK 20000000L         /* nanoseconds */

/* Return the seconds by which the clock was set. */
static time_t offset(void)
{
    const char *path = getenv("CRM_CLOCK");
    FILE *file = path ? fopen(path, "re") : NULL;
    long seconds = 0;

    if (file) {
        if (fscanf(file, "%ld", &seconds) != 1) {
            seconds = 0;
        }
        fclose(file);
    }
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int number = errno, failed = (int)syscall(SYS_clock_gettime, clock, now);

    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        now->tv_sec += offset();
        errno = number;
    }
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec at;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &at);
    now->tv_sec = at.tv_sec;
    now->tv_usec = at.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now)
{
    struct timespec at;

    clock_gettime(CLOCK_REALTIME, &at);
    if (now) {
        *now = at.tv_sec;
    }
    return at.tv_sec;
}

static int is_before(const struct timespec *one, const struct timespec *other)
{
    return one->tv_sec < other->tv_sec || (one->tv_sec == other->tv_sec
                                           && one->tv_nsec < other->tv_nsec);
}

typedef int wait_t(pthread_cond_t *, pthread_mutex_t *,
                   const struct timespec *);

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                           const struct timespec *end)
{
    /* dlsym() returns the oldest version, which has another pthread_cond_t */
    wait_t *wait = (wait_t *)dlvsym(RTLD_NEXT, "pthread_cond_timedwait",
                                    "GLIBC_2.3.2");
    struct timespec now, chunk;
    int result;

    if (!wait) {
        wait = (wait_t *)dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    }
    if (end->tv_sec < YEAR_2001) {
        return wait(cond, mutex, end);
    }
    do {
        clock_gettime(CLOCK_REALTIME, &now);
        if (!is_before(&now, end)) {
            return ETIMEDOUT;
        }
        syscall(SYS_clock_gettime, CLOCK_REALTIME, &chunk);
        chunk.tv_nsec += CHUNK;
        chunk.tv_sec += chunk.tv_nsec / 1000000000L;
        chunk.tv_nsec %= 1000000000L;
        result = wait(cond, mutex, &chunk);
    } while (result == ETIMEDOUT);
    return result;
}
