/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_webhook_slot.c: concurrent deliveries to one endpoint */
#include "crmapid_webhook_slot.h"

#include <pthread.h>
#include <string.h>

#include "apr_strings.h"

#include "crm_uuid.h"

/* Endpoints with deliveries in progress: at most one for each thread. */
#define ENTRIES 64

#define LEAST_WAIT apr_time_from_msec(200)
#define MOST_WAIT apr_time_from_sec(300)

/* The state of an endpoint. crm_slots.h is not used: a slot is taken or given
 * back together with the times below, from which the waits are computed, and
 * all of an entry is replaced when another endpoint gets it. So one lock
 * protects the table, and a lock in each entry would protect nothing more. An
 * entry without deliveries (BUSY is 0) stays until another endpoint needs it. */
typedef struct entry_t {
    char endpoint[CRM_UUID_LEN + 1];
    int busy;                   /* used slots */
    apr_interval_time_t pace;   /* moving average of a delivery's duration */
    apr_time_t changed;         /* when a slot was last taken or returned */
    apr_time_t next;            /* end of the last wait that was returned */
} entry_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static entry_t entries[ENTRIES];

/* Return the entry of ENDPOINT, a new one if it has none; NULL if all entries
 * are in use. */
static entry_t *find_entry(const char *endpoint)
{
    entry_t *unused = NULL;

    for (int i = 0; i < ENTRIES; i++) {
        entry_t *entry = &entries[i];

        if (!strcmp(entry->endpoint, endpoint)) {
            return entry;
        }
        if (!entry->busy && (!unused || entry->changed < unused->changed)) {
            unused = entry;
        }
    }
    if (unused) {
        memset(unused, 0, sizeof(*unused));
        apr_cpystrn(unused->endpoint, endpoint, sizeof(unused->endpoint));
    }
    return unused;
}

/* Return the wait for a delivery that found no slot of ENTRY, of LIMIT, free.
 * Each gets a later time than the one before, so that the deliveries that wait
 * for a slow endpoint do not all try again at once. */
static apr_interval_time_t wait_at(entry_t *entry, int limit, apr_time_t now)
{
    apr_interval_time_t pace = now - entry->changed;

    if (pace < entry->pace) {
        pace = entry->pace;
    }
    entry->next += pace / limit;
    if (entry->next < now + LEAST_WAIT) {
        entry->next = now + LEAST_WAIT;
    }
    if (entry->next > now + MOST_WAIT) {
        entry->next = now + MOST_WAIT;
    }
    return entry->next - now;
}

int crmd_webhook_enter(apr_interval_time_t *wait_p, const char *endpoint,
                       int limit)
{
    apr_time_t now = apr_time_now();
    entry_t *entry;
    int entered = 0;

    *wait_p = LEAST_WAIT;
    pthread_mutex_lock(&lock);
    entry = find_entry(endpoint);
    if (entry && entry->busy < limit) {
        if (!entry->busy) {
            entry->next = 0;    /* no delivery is waiting */
        }
        entry->busy++;
        entry->changed = now;
        entered = 1;
    }
    else if (entry) {
        *wait_p = wait_at(entry, limit, now);
    }
    pthread_mutex_unlock(&lock);
    return entered;
}

void crmd_webhook_leave(const char *endpoint, apr_interval_time_t took)
{
    entry_t *entry;

    pthread_mutex_lock(&lock);
    entry = find_entry(endpoint);
    if (entry && entry->busy) {
        entry->busy--;
        entry->changed = apr_time_now();
        entry->pace = entry->pace ? (3 * entry->pace + took) / 4 : took;
    }
    pthread_mutex_unlock(&lock);
}
