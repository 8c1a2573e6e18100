/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_webhook_slot.c: concurrent deliveries to one endpoint, and to all that
 * are slow */
#include "crmapid_webhook_slot.h"

#include <pthread.h>
#include <string.h>

#include "apr_strings.h"

#include "crm_time.h"
#include "crm_uuid.h"

/* Endpoints that are remembered. More than there are threads, because a slow one is
 * known again for the next delivery. */
#define ENTRIES 1024

/* An endpoint whose deliveries take that long is slow, and remains it for a while: else
 * many that answer at once now and then would have all threads when they do not. */
#define SLOW apr_time_from_sec(2)
#define SLOW_FOR apr_time_from_sec(300)

#define LEAST_WAIT apr_time_from_msec(200)
#define MOST_WAIT apr_time_from_sec(300)

/* The state of an endpoint. crm_slots.h is not used: a slot is taken or given
 * back together with the times below, from which the waits are computed, and
 * all of an entry is replaced when another endpoint gets it. So one lock
 * protects the table, and a lock in each entry would protect nothing more. An
 * entry without deliveries (BUSY is 0) stays until another endpoint needs it. */
typedef struct entry_t {
    char endpoint[CRM_UUID_LEN + 1];
    char workspace[CRM_UUID_LEN + 1];
    int busy;                   /* used slots */
    apr_interval_time_t pace;   /* moving average of a delivery's duration; 0: there
                                   was none */
    apr_time_t slow_until;
    apr_time_t changed;         /* when a slot was last taken or returned */
    apr_time_t next;            /* end of the last wait that was returned */
} entry_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static entry_t entries[ENTRIES];

/* Return how long a delivery to the endpoint of ENTRY takes: those before, and the
 * one that is under way. */
static apr_interval_time_t pace_of(const entry_t *entry, apr_time_t now)
{
    apr_interval_time_t under_way = entry->busy ? now - entry->changed : 0;

    return under_way > entry->pace ? under_way : entry->pace;
}

static int is_slow(const entry_t *entry, apr_time_t now)
{
    return pace_of(entry, now) >= SLOW || now < entry->slow_until;
}

/* Return whether ENTRY is slow, or not known to be fast. */
static int may_be_slow(const entry_t *entry, apr_time_t now)
{
    return !entry->pace || is_slow(entry, now);
}

/* Return whether ENTRY, which is unused, should be forgotten rather than OTHER:
 * one that is not slow, then the oldest. */
static int is_spare(const entry_t *entry, const entry_t *other,
                    apr_time_t now)
{
    int slow = is_slow(entry, now), other_slow = is_slow(other, now);

    return slow != other_slow ? other_slow : entry->changed < other->changed;
}

/* Return the entry of ENDPOINT, a new one if it has none; NULL if all entries
 * are in use. */
static entry_t *find_entry(const char *endpoint, apr_time_t now)
{
    entry_t *unused = NULL;

    for (int i = 0; i < ENTRIES; i++) {
        entry_t *entry = &entries[i];

        if (!strcmp(entry->endpoint, endpoint)) {
            return entry;
        }
        if (!entry->busy && (!unused || is_spare(entry, unused, now))) {
            unused = entry;
        }
    }
    if (unused) {
        memset(unused, 0, sizeof(*unused));
        apr_cpystrn(unused->endpoint, endpoint, sizeof(unused->endpoint));
    }
    return unused;
}

/* Return whether one of THREADS may deliver to the endpoint of ENTRY. All that are
 * slow leave a quarter of the threads, at least one, to the others, and those of one
 * workspace half. One that has not answered yet gets one delivery, if those of its
 * workspace that are or may be slow leave a quarter, too: of two threads none. */
static int has_thread(const entry_t *entry, int threads, apr_time_t now)
{
    int most = threads - (threads + 3) / 4;
    int all = 0, own = 0;

    if (!may_be_slow(entry, now)) {
        return 1;
    }
    for (int i = 0; i < ENTRIES; i++) {
        if (entries[i].busy && may_be_slow(&entries[i], now)) {
            all += is_slow(&entries[i], now) ? entries[i].busy : 0;
            own += !strcmp(entries[i].workspace, entry->workspace)
                   ? entries[i].busy : 0;
        }
    }
    return is_slow(entry, now)
           ? all < (most > 1 ? most : 1) && own < (threads + 1) / 2
           : !entry->busy && own < (most > 2 ? most : 2);
}

/* Return the wait for a delivery that found no slot of ENTRY, of LIMIT, free, or no
 * thread for a slow endpoint.
 * Each gets a later time than the one before, so that the deliveries that wait
 * for a slow endpoint do not all try again at once. */
static apr_interval_time_t wait_at(entry_t *entry, int limit, apr_time_t now)
{
    apr_interval_time_t pace = pace_of(entry, now);

    entry->next += (entry->busy || pace > SLOW ? pace : SLOW) / limit;
    if (entry->next < now + LEAST_WAIT) {
        entry->next = now + LEAST_WAIT;
    }
    if (entry->next > now + MOST_WAIT) {
        entry->next = now + MOST_WAIT;
    }
    return entry->next - now;
}

int crmd_webhook_enter(apr_interval_time_t *wait_p, const char *workspace,
                       const char *endpoint, int limit, int threads)
{
    apr_time_t now = crm_time_monotonic();
    entry_t *entry;
    int entered = 0;

    *wait_p = LEAST_WAIT;
    pthread_mutex_lock(&lock);
    entry = find_entry(endpoint, now);
    if (entry) {
        apr_cpystrn(entry->workspace, workspace, sizeof(entry->workspace));
    }
    if (entry && entry->busy < limit && has_thread(entry, threads, now)) {
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
    apr_time_t now = crm_time_monotonic();
    entry_t *entry;

    took += !took;              /* 0 is unknown */
    pthread_mutex_lock(&lock);
    entry = find_entry(endpoint, now);
    if (entry && entry->busy) {
        entry->busy--;
        entry->changed = now;
        entry->pace = entry->pace ? (3 * entry->pace + took) / 4 : took;
        entry->slow_until = took < SLOW ? entry->slow_until : now + SLOW_FOR;
    }
    pthread_mutex_unlock(&lock);
}
