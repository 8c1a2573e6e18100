/* SPDX-License-Identifier: Apache-2.0 */
/* crm_places.c: who waits, in all processes of the host */
#include "crm_places.h"

#include <unistd.h>

#include "crm_time.h"

/* A place that is still in use this long after UNTIL belongs to a process that
 * was killed. */
#define STALE apr_time_from_sec(60)

/* FNV-1a, 64 bits. */
static apr_uint64_t hash_of(const char *name)
{
    apr_uint64_t hash = APR_UINT64_C(14695981039346656037);

    for (; *name; name++) {
        hash = (hash ^ (unsigned char)*name) * APR_UINT64_C(1099511628211);
    }
    return hash;
}

/* Members of a place that others read while its owner changes them. OWNER is
 * the last that is stored: who sees it sees the others. */
#define LOAD(member) __atomic_load_n(&(member), __ATOMIC_SEQ_CST)
#define STORE(member, value) \
    __atomic_store_n(&(member), (value), __ATOMIC_SEQ_CST)

/* Take PLACE until UNTIL if it is free or its process was killed. Return whether
 * this succeeded: of two that saw the same time, one succeeds. */
static int take(crm_place_t *place, apr_time_t until)
{
    apr_time_t last = LOAD(place->until);

    return (!last || crm_time_monotonic() >= last + STALE)
           && __atomic_compare_exchange_n(&place->until, &last, until, 0,
                                          __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* Return whether OWNER waits in another place than PLACE. */
static int waits_elsewhere(const crm_places_t *places, apr_uint64_t owner,
                           const crm_place_t *place)
{
    apr_time_t now = crm_time_monotonic();

    for (int i = 0; i < CRM_PLACES_MAX; i++) {
        const crm_place_t *other = &places->places[i];

        if (other != place && LOAD(other->owner) == owner
            && now < LOAD(other->until) + STALE) {
            return 1;
        }
    }
    return 0;
}

/* Return whether more places of this process are in use than CLIENT says, with
 * PLACE, which it has taken. */
static int is_greedy(const crm_places_t *places,
                     const crm_places_client_t *client,
                     const crm_place_t *place)
{
    apr_uint32_t process = (apr_uint32_t)getpid();
    int all = 0, of[CRM_PLACES_NETS] = {0};

    for (int i = 0; i < CRM_PLACES_MAX; i++) {
        const crm_place_t *other = &places->places[i];

        if (LOAD(other->owner) && LOAD(other->process) == process) {
            all++;
            for (int j = 0; j < CRM_PLACES_NETS; j++) {
                of[j] += LOAD(other->nets[j]) == place->nets[j];
            }
        }
    }
    for (int j = 0; j < CRM_PLACES_NETS && client->nets[j]; j++) {
        if (client->most_of[j] && of[j] > client->most_of[j]) {
            return 1;
        }
    }
    return all > client->most;
}

/* Fill PLACE, which was taken, for CLIENT. */
static void fill(crm_place_t *place, const crm_places_client_t *client)
{
    STORE(place->process, (apr_uint32_t)getpid());
    for (int i = 0; i < CRM_PLACES_NETS; i++) {
        STORE(place->nets[i], client->nets[i] ? hash_of(client->nets[i]) : 0);
    }
    STORE(place->owner, hash_of(client->owner));
}

crm_place_t *crm_places_enter(crm_places_t *places,
                              const crm_places_client_t *client,
                              apr_time_t until)
{
    apr_uint64_t owner = hash_of(client->owner);
    crm_place_t *place = NULL;

    if (client->most <= 0 || waits_elsewhere(places, owner, NULL)) {
        return NULL;
    }
    for (int i = 0; i < CRM_PLACES_MAX && !place; i++) {
        place = take(&places->places[i], until) ? &places->places[i] : NULL;
    }
    if (!place) {
        return NULL;
    }
    fill(place, client);
    if (waits_elsewhere(places, owner, place)
        || is_greedy(places, client, place)) {
        crm_places_leave(place);
        return NULL;
    }
    return place;
}

void crm_places_leave(crm_place_t *place)
{
    STORE(place->owner, 0);
    STORE(place->until, 0);
}
