/* SPDX-License-Identifier: Apache-2.0 */
/* crm_places.h: who waits, in all processes of the host */
#ifndef CRM_PLACES_H
#define CRM_PLACES_H

#include "apr_time.h"

#define CRM_PLACES_MAX 4096
#define CRM_PLACES_NETS 2

/* The place of a request that waits. */
typedef struct crm_place_t {
    apr_time_t until;           /* the latest time at which it stops waiting;
                                   0: this place is free */
    apr_uint64_t owner;         /* hash of the owner's name; 0: not known yet */
    apr_uint64_t nets[CRM_PLACES_NETS]; /* of the client's networks; 0: none */
    apr_uint32_t process;       /* the request's process id */
} crm_place_t;

/* Places, in shared memory of all processes of the host, initially zero. Any
 * number of threads and processes may use them at the same time. Killing one does
 * no harm to others. */
typedef struct crm_places_t {
    crm_place_t places[CRM_PLACES_MAX];
} crm_places_t;

/* Who wants a place, and how many of this process there may be. */
typedef struct crm_places_client_t {
    const char *owner;          /* has one place at a time, in all processes */
    const char *nets[CRM_PLACES_NETS]; /* the names of its networks, the narrowest
                                          first; NULL: there are no more */
    int most_of[CRM_PLACES_NETS]; /* places that each may have; 0: any number */
    int most;                   /* places that all may have */
} crm_places_client_t;

/* Return a place of PLACES in which CLIENT may wait until UNTIL. NULL: it waits
 * already, it or a network of it would have too many, or all places are in
 * use. */
crm_place_t *crm_places_enter(crm_places_t *places,
                              const crm_places_client_t *client,
                              apr_time_t until);

/* Release PLACE. */
void crm_places_leave(crm_place_t *place);

#endif /* CRM_PLACES_H */
