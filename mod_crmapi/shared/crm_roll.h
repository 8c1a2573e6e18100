/* SPDX-License-Identifier: Apache-2.0 */
/* crm_roll.h: which keys may exist, in shared memory (contract 2.4) */
#ifndef CRM_ROLL_H
#define CRM_ROLL_H

#include "apr.h"

/* 2 MiB: of a million keys, 998 of 1,000 unknown ones are known to be unknown;
 * of ten thousand, all but one in ten million. */
#define CRM_ROLL_BITS (1U << 24)
#define CRM_ROLL_STRUCK 4096

/* The keys and tokens of all databases that exist, as a Bloom filter, and some
 * that are on it but do not exist (any more). Initially zero. Any number of
 * threads and processes may use it at the same time. */
typedef struct crm_roll_t {
    apr_uint64_t words[CRM_ROLL_BITS / 64];
    apr_uint64_t struck[CRM_ROLL_STRUCK];
} crm_roll_t;

/* When the roll of a database was read. In shared memory, initially zero. Times
 * are those of crm_limit_clock(). */
typedef struct crm_roll_state_t {
    apr_int64_t read;           /* when the last successful reading began; 0:
                                   never */
    apr_int64_t reading;        /* when the one that is under way began; 0:
                                   none is */
    apr_int64_t again;          /* none begins before this time */
    apr_uint32_t failed;        /* the last one has failed */
} crm_roll_state_t;

/* Add the keys of REALM to ROLL whose hashes begin with the bytes in HEX,
 * CRM_ROLL_PRINT for each: a bytea as PostgreSQL writes it. */
#define CRM_ROLL_PRINT 8
void crm_roll_add(crm_roll_t *roll, const char *hex, apr_uint32_t realm);

/* Return whether the key of HASH in REALM may exist. 0: when ROLL was read, it
 * did not. */
int crm_roll_has(const crm_roll_t *roll, const unsigned char hash[32],
                 apr_uint32_t realm);

/* The key of HASH in REALM does not exist, whatever ROLL says. crm_roll_add() may
 * say otherwise later. */
void crm_roll_strike(crm_roll_t *roll, const unsigned char hash[32],
                     apr_uint32_t realm);

/* Return the time at which the caller begins to read the roll of STATE, or 0 if
 * another thread does, or did a short time ago. */
apr_int64_t crm_roll_begin(crm_roll_state_t *state);

/* The reading of STATE that has begun at BEGAN has ended. DONE: it has
 * succeeded. The next one may begin after ten times what it took, but at least a
 * tenth of a second and at most one. */
void crm_roll_end(crm_roll_state_t *state, apr_int64_t began, int done);

#endif /* CRM_ROLL_H */
