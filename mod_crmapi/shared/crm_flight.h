/* SPDX-License-Identifier: Apache-2.0 */
/* crm_flight.h: look-ups of keys that are under way on this host (contract
 * 2.4) */
#ifndef CRM_FLIGHT_H
#define CRM_FLIGHT_H

#include "apr.h"

/* The number of look-ups that can be under way at the same time. Further ones
 * are not shared. */
#define CRM_FLIGHT_PLACES 256

#define CRM_FLIGHT_NETS 2
#define CRM_FLIGHT_NET_SIZE 20

/* The state of a look-up. */
typedef enum crm_flight_state_t {
    CRM_FLIGHT_NONE,            /* it is forgotten, or its process has stopped or
                                   was killed */
    CRM_FLIGHT_RUNNING,
    CRM_FLIGHT_KNOWN,           /* the key is in shared memory now */
    CRM_FLIGHT_UNKNOWN,
    CRM_FLIGHT_FAILED,
    CRM_FLIGHT_REFUSED          /* its address has no budget left */
} crm_flight_state_t;

/* Look-ups, in shared memory of all processes of the host, of crm_flights_size()
 * bytes. A process that is killed does no harm to others, nor for long one that
 * stops. */
typedef struct crm_flights_t crm_flights_t;

/* A look-up, as a thread knows it. */
typedef struct crm_flight_t {
    crm_flights_t *flights;
    int place;                  /* -1: it has none */
    apr_uint64_t ticket;        /* differs for all look-ups */
} crm_flight_t;

/* The key that is looked up, and for whom. */
typedef struct crm_flight_key_t {
    const unsigned char *hash;  /* 32 bytes */
    apr_uint32_t realm;
    const char *nets[CRM_FLIGHT_NETS]; /* the networks that are charged, as in
                                          crm_address_names() */
} crm_flight_key_t;

apr_size_t crm_flights_size(void);

/* Initialise FLIGHTS, which is zero and which no other process uses yet. Return
 * 0 if the system has no robust shared locks. */
int crm_flights_init(crm_flights_t *flights);

/* Set *FLIGHT to the look-up of KEY in FLIGHTS that is under way and return 0.
 * If there is none, begin one and return 1: then the caller looks KEY up and
 * calls crm_flight_end(). If all places are in use, it has no place. */
int crm_flight_begin(crm_flight_t *flight, crm_flights_t *flights,
                     const crm_flight_key_t *key);

/* FLIGHT, which the caller has begun, is sent to the database now. CHARGED: it
 * was charged to its networks. */
void crm_flight_send(const crm_flight_t *flight, int charged);

/* Return whether another look-up than FLIGHT is under way that was charged to a
 * network of FLIGHT, and so may give its charge back. */
int crm_flight_others(const crm_flight_t *flight);

/* FLIGHT, which the caller has begun, has ended with STATE. */
void crm_flight_end(const crm_flight_t *flight, crm_flight_state_t state);

/* Return the state of FLIGHT, which another thread has begun. If SENT is not
 * NULL, set *SENT to the time of crm_limit_clock() at which it was sent. */
crm_flight_state_t crm_flight_look(apr_int64_t *sent,
                                   const crm_flight_t *flight);

#endif /* CRM_FLIGHT_H */
