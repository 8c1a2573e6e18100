/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_webhook_slot.c: concurrent deliveries to one endpoint */
#include "crmapid_webhook_slot.h"

#include <pthread.h>
#include <string.h>

#include "apr_strings.h"

#include "crm_uuid.h"

/* Endpoints that are being delivered to: as many as there can be threads. */
#define PLACES 64

#define LEAST_WAIT apr_time_from_msec(200)
#define MOST_WAIT apr_time_from_sec(300)

/* What is known of an endpoint; of one to which nothing goes (BUSY is 0) until
 * another needs the room. */
typedef struct place_t {
    char endpoint[CRM_UUID_LEN + 1];
    int busy;                   /* deliveries under way */
    apr_interval_time_t pace;   /* what one takes, lately */
    apr_time_t moved;           /* when one last began or ended */
    apr_time_t turn;            /* up to when others were told to wait */
} place_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static place_t places[PLACES];

/* Return what is known of ENDPOINT, or room for it, or NULL. */
static place_t *find_place(const char *endpoint)
{
    place_t *room = NULL;

    for (int i = 0; i < PLACES; i++) {
        if (!strcmp(places[i].endpoint, endpoint)) {
            return &places[i];
        }
        if (!places[i].busy && (!room || places[i].moved < room->moved)) {
            room = &places[i];
        }
    }
    if (room) {
        memset(room, 0, sizeof(*room));
        apr_cpystrn(room->endpoint, endpoint, sizeof(room->endpoint));
    }
    return room;
}

/* Return how long the next one has to wait whom PLACE has no room for. They
 * are let in one after the other, so that what waits for an endpoint that
 * hangs is not looked at again and again. */
static apr_interval_time_t wait_at(place_t *place, int limit, apr_time_t now)
{
    apr_interval_time_t pace = now - place->moved;

    if (pace < place->pace) {
        pace = place->pace;
    }
    place->turn += pace / limit;
    if (place->turn < now + LEAST_WAIT) {
        place->turn = now + LEAST_WAIT;
    }
    if (place->turn > now + MOST_WAIT) {
        place->turn = now + MOST_WAIT;
    }
    return place->turn - now;
}

int crmd_webhook_enter(apr_interval_time_t *wait_p, const char *endpoint,
                       int limit)
{
    apr_time_t now = apr_time_now();
    place_t *place;
    int entered = 0;

    *wait_p = LEAST_WAIT;
    pthread_mutex_lock(&lock);
    place = find_place(endpoint);
    if (place && place->busy < limit) {
        if (!place->busy) {
            place->turn = 0;    /* nobody is waited for */
        }
        place->busy++;
        place->moved = now;
        entered = 1;
    }
    else if (place) {
        *wait_p = wait_at(place, limit, now);
    }
    pthread_mutex_unlock(&lock);
    return entered;
}

void crmd_webhook_leave(const char *endpoint, apr_interval_time_t took)
{
    place_t *place;

    pthread_mutex_lock(&lock);
    place = find_place(endpoint);
    if (place && place->busy) {
        place->busy--;
        place->moved = apr_time_now();
        place->pace = place->pace ? (3 * place->pace + took) / 4 : took;
    }
    pthread_mutex_unlock(&lock);
}
