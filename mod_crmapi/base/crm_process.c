/* SPDX-License-Identifier: Apache-2.0 */
/* crm_process.c: what a process sees to before it does anything */
#include "crm_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/resource.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

/* The limit alone does not stop a core_pattern that is a pipe, such as that of
 * systemd-coredump. The hard limit stays for programs that this one starts. */
int crm_process_seal(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_CORE, &limit)) {
        return -1;
    }
    limit.rlim_cur = 0;
    if (setrlimit(RLIMIT_CORE, &limit)) {
        return -1;
    }
#ifdef PR_SET_DUMPABLE
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ? -1 : 0;
#else
    return 0;
#endif
}

void crm_process_files(void)
{
    signal(SIGXFSZ, SIG_IGN);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}

unsigned long crm_process_allow(unsigned long count)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit)) {
        return count;
    }
    if (limit.rlim_cur < count) {
        rlim_t now = limit.rlim_cur;

        limit.rlim_cur = limit.rlim_max < count ? limit.rlim_max : count;
        if (setrlimit(RLIMIT_NOFILE, &limit)) {
            limit.rlim_cur = now;
        }
    }
    return (unsigned long)limit.rlim_cur;
}

static int (*no_memory)(void);

void crm_process_no_memory(void)
{
    static const char text[] = "mod_crmapi: out of memory\n";

    if (no_memory) {
        _exit(no_memory());
    }
    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);    /* error_log */
    abort();
}

/* Of a pool: APR would return NULL, which nobody expects. */
static int end_process(int status)
{
    (void)status;
    crm_process_no_memory();
}

void crm_process_memory(int (*tell)(void), apr_pool_t *pool)
{
    no_memory = tell;
    apr_pool_abort_set(end_process, pool);
}
