/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_ending.c: how long a daemon that ends waits for a silent server */
#include "crmapid_ending.h"

#include "crm_time.h"

/* How long a server that says nothing is waited for once the daemon ends. */
#define END_TIME apr_time_from_sec(2)

/* When the daemon began to end, on crm_time_monotonic(); 0: it does not. Atomic. */
static apr_int64_t ending;

void crmd_ending(int ends)
{
    apr_int64_t since = __atomic_load_n(&ending, __ATOMIC_RELAXED);

    __atomic_store_n(&ending, !ends ? 0 : since ? since : crm_time_monotonic(),
                     __ATOMIC_RELAXED);
}

int crmd_ending_over(apr_time_t moved)
{
    apr_int64_t since = __atomic_load_n(&ending, __ATOMIC_RELAXED);

    return since && crm_time_monotonic() - (since > moved ? since : moved)
                    > END_TIME;
}

int crmd_ending_unwanted(void *baton)
{
    (void)baton;
    return crmd_ending_over(0);
}
