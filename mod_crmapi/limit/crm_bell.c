/* SPDX-License-Identifier: Apache-2.0 */
/* crm_bell.c: telling other processes of this host that something is new */
#include "crm_bell.h"

/* FNV-1a, 32 bits. */
static apr_uint32_t line_of(const char *name)
{
    apr_uint32_t hash = 2166136261u;

    for (; *name; name++) {
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    }
    return hash % CRM_BELL_LINES;
}

void crm_bell_ring(crm_bell_t *bell, const char *name)
{
    __atomic_fetch_add(&bell->rings[line_of(name)], 1, __ATOMIC_RELEASE);
}

apr_uint32_t crm_bell_count(const crm_bell_t *bell, const char *name)
{
    return __atomic_load_n(&bell->rings[line_of(name)], __ATOMIC_ACQUIRE);
}
