/* SPDX-License-Identifier: Apache-2.0 */
/* crm_roll.c: which keys may exist, in shared memory */
#include "crm_roll.h"

#include <stdlib.h>
#include <string.h>

#include "crm_limit.h"

/* The number of bits that a key sets. */
#define HASHES 4

#define DIGITS (2 * CRM_ROLL_PRINT)

/* The time between two readings of a roll: so many times what one takes, within
 * limits. */
#define TIMES 10
#define PAUSE_MIN APR_INT64_C(100000)
#define PAUSE_MAX APR_INT64_C(1000000)

/* A reading that takes longer belongs to a process that has stopped or was killed. */
#define STALE_US APR_INT64_C(10000000)

/* Return PRINT, the first bytes of a hash, changed by REALM: a key of one database
 * is not one of another. 0 means that there is none. */
static apr_uint64_t mix(apr_uint64_t print, apr_uint32_t realm)
{
    print ^= realm * APR_UINT64_C(0x9e3779b97f4a7c15);
    return print ? print : 1;
}

static apr_uint64_t print_of(const unsigned char hash[32], apr_uint32_t realm)
{
    apr_uint64_t print = 0;

    for (int i = 0; i < CRM_ROLL_PRINT; i++) {
        print = print << 8 | hash[i];
    }
    return mix(print, realm);
}

/* Return the number of bit I of PRINT (double hashing: its halves are
 * independent). */
static apr_uint32_t bit_of(apr_uint64_t print, apr_uint32_t i)
{
    return ((apr_uint32_t)print + i * ((apr_uint32_t)(print >> 32) | 1))
           % CRM_ROLL_BITS;
}

static void set_bits(crm_roll_t *roll, apr_uint64_t print)
{
    apr_uint64_t *struck = &roll->struck[print % CRM_ROLL_STRUCK];

    for (apr_uint32_t i = 0; i < HASHES; i++) {
        apr_uint32_t bit = bit_of(print, i);

        __atomic_fetch_or(&roll->words[bit / 64], APR_UINT64_C(1) << bit % 64,
                          __ATOMIC_RELAXED);
    }
    __atomic_compare_exchange_n(struck, &print, 0, 0, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
}

void crm_roll_add(crm_roll_t *roll, const char *hex, apr_uint32_t realm)
{
    char digits[DIGITS + 1] = "";
    const char *end = hex + strlen(hex);

    for (hex += strspn(hex, "\\x"); end - hex >= DIGITS; hex += DIGITS) {
        memcpy(digits, hex, DIGITS);
        set_bits(roll, mix(strtoull(digits, NULL, 16), realm));
    }
}

int crm_roll_has(const crm_roll_t *roll, const unsigned char hash[32],
                 apr_uint32_t realm)
{
    apr_uint64_t print = print_of(hash, realm);

    for (apr_uint32_t i = 0; i < HASHES; i++) {
        apr_uint32_t bit = bit_of(print, i);

        if (!(__atomic_load_n(&roll->words[bit / 64], __ATOMIC_RELAXED)
              >> bit % 64 & 1)) {
            return 0;
        }
    }
    return __atomic_load_n(&roll->struck[print % CRM_ROLL_STRUCK],
                           __ATOMIC_RELAXED) != print;
}

void crm_roll_strike(crm_roll_t *roll, const unsigned char hash[32],
                     apr_uint32_t realm)
{
    apr_uint64_t print = print_of(hash, realm);

    __atomic_store_n(&roll->struck[print % CRM_ROLL_STRUCK], print,
                     __ATOMIC_RELAXED);
}

apr_int64_t crm_roll_begin(crm_roll_state_t *state)
{
    apr_int64_t now = crm_limit_clock();
    apr_int64_t since = __atomic_load_n(&state->reading, __ATOMIC_ACQUIRE);

    if (now < __atomic_load_n(&state->again, __ATOMIC_ACQUIRE)
        || (since && now - since < STALE_US)
        || !__atomic_compare_exchange_n(&state->reading, &since, now, 0,
                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        return 0;
    }
    return now;
}

/* Return the time to wait after a reading that took TOOK. */
static apr_int64_t pause_after(apr_int64_t took)
{
    apr_int64_t pause = took * TIMES;

    return pause < PAUSE_MIN ? PAUSE_MIN : pause > PAUSE_MAX ? PAUSE_MAX : pause;
}

void crm_roll_end(crm_roll_state_t *state, apr_int64_t began, int done)
{
    apr_int64_t now = crm_limit_clock();

    __atomic_store_n(&state->failed, !done, __ATOMIC_RELAXED);
    if (done) {
        __atomic_store_n(&state->read, began, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&state->again, now + pause_after(now - began),
                     __ATOMIC_RELEASE);
    __atomic_store_n(&state->reading, 0, __ATOMIC_RELEASE);
}
