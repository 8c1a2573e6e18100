/* SPDX-License-Identifier: Apache-2.0 */
/* crm_flight.c: look-ups of keys that are under way on this host */
#include "crm_flight.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "apr_strings.h"

#include "crm_limit.h"
#include "crm_robust.h"

/* A look-up that takes longer is not waited for. Its process has stopped, or was
 * killed, and its number is another one's now. */
#define STALE_US APR_INT64_C(10000000)

/* A place: a look-up under way, or the last one that was. It is in use while
 * STATE is CRM_FLIGHT_RUNNING. */
typedef struct place_t {
    apr_uint64_t ticket;
    apr_int64_t begun;
    apr_int64_t sent;
    apr_uint32_t state;
    apr_uint32_t charged;
    apr_uint32_t realm;
    apr_uint32_t process;
    unsigned char hash[32];
    char nets[CRM_FLIGHT_NETS][CRM_FLIGHT_NET_SIZE];
} place_t;

/* A killed process may leave a place half written; STATE is written last. */
struct crm_flights_t {
    pthread_mutex_t lock;       /* robust; of all that follows */
    apr_uint64_t ticket;        /* the last one given */
    apr_uint32_t hand;          /* place at which the next search starts */
    apr_uint32_t top;           /* places that were ever used */
    place_t places[CRM_FLIGHT_PLACES];
};

apr_size_t crm_flights_size(void)
{
    return sizeof(crm_flights_t);
}

int crm_flights_init(crm_flights_t *flights)
{
    return crm_robust_init(&flights->lock);
}

static void lock(crm_flights_t *flights)
{
    crm_robust_lock(&flights->lock, NULL);
}

static void unlock(crm_flights_t *flights)
{
    pthread_mutex_unlock(&flights->lock);
}

/* Return whether PLACE's look-up is under way. If its process was killed, or it is
 * too old, it is not any more. The lock is held. */
static int is_running(place_t *place)
{
    if (place->state == CRM_FLIGHT_RUNNING
        && (crm_limit_clock() - place->begun > STALE_US
            || (kill((pid_t)place->process, 0) && errno == ESRCH))) {
        place->state = CRM_FLIGHT_NONE;
    }
    return place->state == CRM_FLIGHT_RUNNING;
}

/* Return the number of the place in which KEY is looked up, -1 if it is not. The
 * lock is held. */
static int find(crm_flights_t *flights, const crm_flight_key_t *key)
{
    for (apr_uint32_t i = 0; i < flights->top; i++) {
        place_t *place = &flights->places[i];

        if (place->state == CRM_FLIGHT_RUNNING && place->realm == key->realm
            && !memcmp(place->hash, key->hash, sizeof(place->hash))
            && is_running(place)) {
            return (int)i;
        }
    }
    return -1;
}

/* Return the number of a place that is not in use, -1 if there is none. What has
 * just ended is taken last, so that those who wait for it see how. The lock is
 * held. */
static int take(crm_flights_t *flights)
{
    for (apr_uint32_t i = 0; i < CRM_FLIGHT_PLACES; i++) {
        apr_uint32_t n = flights->hand++ % CRM_FLIGHT_PLACES;

        if (!is_running(&flights->places[n])) {
            if (n >= flights->top) {
                flights->top = n + 1;
            }
            return (int)n;
        }
    }
    return -1;
}

/* Fill PLACE for KEY with TICKET. */
static void fill(place_t *place, const crm_flight_key_t *key,
                 apr_uint64_t ticket)
{
    place->ticket = ticket;
    place->begun = crm_limit_clock();
    place->sent = 0;
    place->charged = 0;
    place->realm = key->realm;
    place->process = (apr_uint32_t)getpid();
    memcpy(place->hash, key->hash, sizeof(place->hash));
    for (int i = 0; i < CRM_FLIGHT_NETS; i++) {
        apr_cpystrn(place->nets[i], key->nets[i] ? key->nets[i] : "",
                    sizeof(place->nets[i]));
    }
    __atomic_store_n(&place->state, CRM_FLIGHT_RUNNING, __ATOMIC_RELEASE);
}

int crm_flight_begin(crm_flight_t *flight, crm_flights_t *flights,
                     const crm_flight_key_t *key)
{
    int begins;

    flight->flights = flights;
    lock(flights);
    flight->place = find(flights, key);
    begins = flight->place < 0;
    if (begins) {
        flight->place = take(flights);
        if (flight->place >= 0) {
            fill(&flights->places[flight->place], key, ++flights->ticket);
        }
    }
    if (flight->place >= 0) {
        flight->ticket = flights->places[flight->place].ticket;
    }
    unlock(flights);
    return begins;
}

/* Return the place of FLIGHT, NULL if another look-up has it or it has none. The
 * lock is held. */
static place_t *place_of(const crm_flight_t *flight)
{
    place_t *place = flight->place < 0 ? NULL
                     : &flight->flights->places[flight->place];

    return place && place->ticket == flight->ticket ? place : NULL;
}

void crm_flight_send(const crm_flight_t *flight, int charged)
{
    place_t *place;

    lock(flight->flights);
    place = place_of(flight);
    if (place) {
        place->sent = crm_limit_clock();
        place->charged = charged != 0;
    }
    unlock(flight->flights);
}

/* Return whether A and B have a network in common. */
static int share_net(const place_t *a, const place_t *b)
{
    for (int i = 0; i < CRM_FLIGHT_NETS; i++) {
        if (*a->nets[i] && !strcmp(a->nets[i], b->nets[i])) {
            return 1;
        }
    }
    return 0;
}

int crm_flight_others(const crm_flight_t *flight)
{
    crm_flights_t *flights = flight->flights;
    const place_t *own;
    int found = 0;

    lock(flights);
    own = place_of(flight);
    for (apr_uint32_t i = 0; own && i < flights->top && !found; i++) {
        place_t *place = &flights->places[i];

        found = place != own && place->charged && share_net(place, own)
                && is_running(place);
    }
    unlock(flights);
    return found;
}

void crm_flight_end(const crm_flight_t *flight, crm_flight_state_t state)
{
    place_t *place;

    lock(flight->flights);
    place = place_of(flight);
    if (place) {
        place->state = (apr_uint32_t)state;
    }
    unlock(flight->flights);
}

crm_flight_state_t crm_flight_look(apr_int64_t *sent,
                                   const crm_flight_t *flight)
{
    crm_flight_state_t state = CRM_FLIGHT_NONE;
    place_t *place;

    lock(flight->flights);
    place = place_of(flight);
    if (place) {
        is_running(place);
        state = (crm_flight_state_t)place->state;
        if (sent) {
            *sent = place->sent;
        }
    }
    unlock(flight->flights);
    return state;
}
