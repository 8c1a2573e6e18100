/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_turn.h: turns of threads that may have to make a connection */
#ifndef MOD_CRMAPI_TURN_H
#define MOD_CRMAPI_TURN_H

#include "mod_crmapi_pool.h"

/* Whether a thread may ask mod_dbd for a connection. */
typedef enum crmapi_turn_t {
    CRMAPI_TURN_NO,             /* the database gives none now */
    CRMAPI_TURN_FREE,           /* one is free: nothing has to be made */
    CRMAPI_TURN_MINE            /* one may have to be made; the thread must call
                                   crmapi_turn_end() */
} crmapi_turn_t;

/* Return whether the caller, who has a place in POOL, may ask mod_dbd for a connection.
 * One thread at a time may make one. A turn that fails is also the failure of those who
 * waited when it began.
 *
 * mod_dbd holds a lock while it connects, which all who use a connection take. So after
 * a failure the database must first answer a probe, which holds no lock. Meanwhile
 * those who have connections go on.
 *
 * The wait ends at END, a probe or a look-up of names at UNTIL, both on the clock of
 * crm_time_monotonic(). Scratch memory is in P. */
crmapi_turn_t crmapi_turn_take(crmapi_pool_t *pool, apr_time_t end,
                               apr_time_t until, apr_pool_t *p);

/* End the caller's turn in POOL. OPENED: mod_dbd gave a connection. */
void crmapi_turn_end(crmapi_pool_t *pool, int opened);

#endif /* MOD_CRMAPI_TURN_H */
