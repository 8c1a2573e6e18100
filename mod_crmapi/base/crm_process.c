/* SPDX-License-Identifier: Apache-2.0 */
/* crm_process.c: what the memory of this process may be seen by */
#include "crm_process.h"

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
