/* SPDX-License-Identifier: Apache-2.0 */
/* crm_usage.h: requests of workspaces by day, counted in shared memory until they
 * are written (contract 14.7) */
#ifndef CRM_USAGE_H
#define CRM_USAGE_H

#include "apr_time.h"

#include "crm_uuid.h"

/* What a workspace has used on a day. */
typedef struct crm_use_t {
    char workspace_id[CRM_UUID_LEN + 1];
    apr_uint32_t realm;         /* identifies its database */
    apr_uint32_t day;           /* in UTC, from 1970-01-01 on */
    apr_uint32_t requests;
    apr_uint32_t limited;       /* those that were answered 429 */
} crm_use_t;

/* The table, in shared memory of all processes of the host. Any number of threads
 * and processes may use it at the same time, without a lock. If a process is
 * killed, its counts stay. */
typedef struct crm_usage_t crm_usage_t;

/* Return the size of a table for KEYS keys: a multiple of a slot's size. */
apr_size_t crm_usage_size(apr_uint32_t keys);

/* Make a table of MEMORY, SIZE zeroed bytes, or return the one that is there. */
crm_usage_t *crm_usage_open(void *memory, apr_size_t size);

/* Add USE to USAGE. Return 0 if there is no room. Then it is counted as lost. */
int crm_usage_add(crm_usage_t *usage, const crm_use_t *use);

/* Return whether USAGE has counts of REALM. */
int crm_usage_has(const crm_usage_t *usage, apr_uint32_t realm);

/* Take the counts of the next slot from *PLACE on, at first 0, that has some of
 * REALM: set *USE to them. Slots that had none since they were last taken become
 * free. Return 0 at the end of the table. */
int crm_usage_take(crm_use_t *use, crm_usage_t *usage, apr_uint32_t realm,
                   apr_uint32_t *place);

/* Return the number of requests that were lost, and set it to 0. */
apr_uint64_t crm_usage_lost(crm_usage_t *usage);

/* Return whether USAGE is to be written at NOW, EVERY microseconds after the last
 * time. One caller is told so. */
int crm_usage_due(crm_usage_t *usage, apr_time_t now,
                  apr_interval_time_t every);

#endif /* CRM_USAGE_H */
