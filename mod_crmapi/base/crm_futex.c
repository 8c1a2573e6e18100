/* SPDX-License-Identifier: Apache-2.0 */
/* crm_futex.c: sleeping until a word of memory changes (futex(2)) */
#include "crm_futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void crm_futex_wait(const apr_uint32_t *word, apr_uint32_t value,
                    apr_interval_time_t end)
{
    struct timespec at;
    int saved = errno;

    at.tv_sec = (time_t)(end / APR_USEC_PER_SEC);
    at.tv_nsec = (long)(end % APR_USEC_PER_SEC) * 1000;
    /* unlike FUTEX_WAIT, it takes a time of CLOCK_MONOTONIC */
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, &at, NULL,
            FUTEX_BITSET_MATCH_ANY);
    errno = saved;
}

void crm_futex_wake(const apr_uint32_t *word)
{
    int saved = errno;

    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved;
}
