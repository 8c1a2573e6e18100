/* SPDX-License-Identifier: Apache-2.0 */
/* crm_look_up.c: keys and tokens that shared memory does not know */
#include "crm_look_up.h"

#include <stdlib.h>
#include <string.h>

#include "apr_strings.h"

#include "crm_access.h"
#include "crm_address.h"
#include "crm_flight.h"
#include "crm_key.h"
#include "crm_limit_key.h"
#include "crm_network.h"
#include "crm_roll.h"
#include "crm_time.h"

/* The interval at which a thread asks whether another one's look-up has ended,
 * and the shortest time that it does so. */
#define NAP apr_time_from_msec(1)
#define WAIT_MIN apr_time_from_sec(1)

static const char roll_sql[] = "SELECT crmapi.key_roll()";

/* ---- one look-up --------------------------------------------------------- */

const char *crm_look_up_hash(const crm_call_t *call)
{
    char *bind = apr_palloc(call->pool, CRM_KEY_BIND_SIZE);

    crm_key_hash_bind(bind, call->key.hash);
    return bind;
}

crm_error_t *crm_look_up_ask(PGresult **result_p, crm_call_t *call)
{
    const char *hash = crm_look_up_hash(call);

    return crm_call_run(result_p, call, call->credential->look_up, 1, &hash);
}

/* Copy the value of RESULT's first row and COLUMN to TEXT, SIZE bytes. */
static void copy(char *text, apr_size_t size, const PGresult *result,
                 int column)
{
    apr_cpystrn(text, PQgetvalue(result, 0, column), size);
}

/* Set *NUMBER to the value of RESULT's first row and COLUMN, 0 for null. */
static void copy_number(apr_uint32_t *number, const PGresult *result,
                        int column)
{
    *number = (apr_uint32_t)strtoul(PQgetvalue(result, 0, column), NULL, 10);
}

crm_error_t *crm_look_up_remember(crm_call_t *call, const PGresult *result)
{
    crm_network_t networks[CRM_NETWORKS_MAX];
    crm_limit_key_t *key = &call->key;

    copy(key->key_id, sizeof(key->key_id), result, 0);
    copy(key->workspace_id, sizeof(key->workspace_id), result, 1);
    copy(key->slug, sizeof(key->slug), result, 2);
    if (call->credential->is_key) {
        int count = crm_networks_parse(networks, PQgetvalue(result, 0, 6));

        if (count < 0) {
            return crm_error_logf(CRM_E_INTERNAL, call->pool, "CRM1007: the"
                                  " networks of key %s are invalid",
                                  key->key_id);
        }
        key->networks = (unsigned char)count;
        copy(key->terms, sizeof(key->terms), result, 3);
        copy_number(&key->limits[CRM_LIMIT_READ], result, 4);
        copy_number(&key->limits[CRM_LIMIT_WRITE], result, 5);
    }
    if (crm_limit_add(call->service->limit, key, networks)
        == CRM_LIMIT_FULL) {
        return crm_error_logf(CRM_E_UNAVAILABLE, call->pool, CRM_BUDGET_FULL);
    }
    return NULL;
}

crm_error_t *crm_look_up_learn(crm_call_t *call)
{
    PGresult *result;

    call->response->look_up = CRM_LOOK_UP_FAILED;
    CRM_ERR(crm_look_up_ask(&result, call));
    call->response->look_up = CRM_LOOK_UP_UNKNOWN;
    if (!PQntuples(result)) {
        return crm_access_revoked(call);
    }
    call->response->look_up = CRM_LOOK_UP_KNOWN;
    return crm_look_up_remember(call, result);
}

int crm_look_up_recall(crm_call_t *call)
{
    crm_limit_key_t found;

    if (!crm_limit_find(&found, call->service->limit, call->key.hash,
                        call->key.realm)
        || (call->credential->is_key && !*found.terms)) {
        return 0;
    }
    call->key = found;
    return 1;
}

/* ---- charging ------------------------------------------------------------ */

/* Return the budget of look-ups that CALL's address has. */
static crm_address_budget_t budget_of(const crm_call_t *call)
{
    return (crm_address_budget_t){
        .addresses = call->service->addresses, .kind = CRM_ADDRESS_KEY,
        .realm = call->key.realm, .class = CRM_LIMIT_READ,
        .max = call->service->settings.unknown_key_limit
    };
}

crm_error_t *crm_look_up_charge(crm_call_t *call)
{
    crm_address_budget_t budget = budget_of(call);
    crm_error_t *error = crm_address_charge(&budget, call->request->address,
                                            call->pool);

    if (error) {
        call->response->look_up = CRM_LOOK_UP_REFUSED;
    }
    return error;
}

/* Give back the charge of CALL's look-up. */
static void refund(const crm_call_t *call)
{
    crm_address_budget_t budget = budget_of(call);

    crm_address_refund(&budget, call->request->address, call->pool);
}

/* ---- the roll ------------------------------------------------------------ */

/* Read the roll of CALL's database. What that takes is not CALL's. */
static crm_error_t *read_roll(crm_call_t *call, apr_int64_t began)
{
    const crm_keys_t *keys = call->service->keys;
    apr_int64_t db_us = call->response->db_us;
    PGresult *result;
    crm_error_t *error = crm_call_run(&result, call, roll_sql, 0, NULL);

    if (!error) {
        /* null if there are none: "" */
        crm_roll_add(keys->roll, PQgetvalue(result, 0, 0), call->key.realm);
    }
    crm_roll_end(keys->state, began, !error);
    call->response->db_us = db_us;
    return error;
}

static crm_error_t *unavailable(const crm_call_t *call)
{
    return crm_error_create(CRM_E_UNAVAILABLE, NULL, call->pool);
}

/* ---- look-ups that are shared -------------------------------------------- */

/* A look-up by this thread. */
typedef struct look_up_t {
    crm_call_t *call;
    crm_flight_t flight;
    apr_time_t until;           /* it waits no longer */
    int charged;                /* to the address */
    int unknown;                /* a look-up that it has waited for said so */
} look_up_t;

/* Add CHANGE to the threads that wait for another one's statement. Return whether
 * CALL must wait no longer, because the database hangs. */
static int add_waiting(const crm_call_t *call, int change)
{
    return call->service->add_waiting
           && call->service->add_waiting(change, call->request->baton);
}

/* Wait a moment for another thread. Return 0 if ONE has waited for too long, or
 * the database hangs and may hold no more threads. */
static int nap(const look_up_t *one)
{
    int hangs = add_waiting(one->call, 1) || crm_time_monotonic() >= one->until;

    if (!hangs) {
        apr_sleep(NAP);
    }
    add_waiting(one->call, -1);
    return !hangs;
}

/* Wait until the thread that reads the roll for the first time has done so. */
static crm_error_t *await_roll(const look_up_t *one)
{
    const crm_roll_state_t *state = one->call->service->keys->state;

    do {
        if (__atomic_load_n(&state->failed, __ATOMIC_RELAXED)) {
            return unavailable(one->call);
        }
        if (__atomic_load_n(&state->read, __ATOMIC_ACQUIRE)) {
            return NULL;
        }
    } while (nap(one));
    return unavailable(one->call);
}

/* Set *IS_P to whether ONE's key is on the roll, which is read again if it was
 * not read a short time ago. */
static crm_error_t *ask_roll(int *is_p, const look_up_t *one)
{
    crm_call_t *call = one->call;
    const crm_keys_t *keys = call->service->keys;
    apr_int64_t began;

    *is_p = crm_roll_has(keys->roll, call->key.hash, call->key.realm);
    if (*is_p) {
        return NULL;
    }
    began = crm_roll_begin(keys->state);
    CRM_ERR(began ? read_roll(call, began) : await_roll(one));
    *is_p = crm_roll_has(keys->roll, call->key.hash, call->key.realm);
    return NULL;
}

/* Charge ONE to its address. If there is no budget left: a key that is on the roll
 * is looked up without, and others wait for look-ups that may give theirs back.
 * Errors: CRM_E_RATE_LIMITED, CRM_E_UNAVAILABLE. */
static crm_error_t *pay(look_up_t *one)
{
    const crm_flight_t *flight = &one->flight;
    int listed = 0, pending;
    crm_error_t *error;

    do {
        /* also one that ends before it is asked again */
        pending = crm_flight_others(flight);
        error = crm_look_up_charge(one->call);
        if (!error || error->code != CRM_E_RATE_LIMITED) {
            one->charged = !error;
            return error;
        }
        CRM_ERR(ask_roll(&listed, one));
        if (listed || (!pending && !crm_flight_others(flight))) {
            return listed ? NULL : error;
        }
    } while (nap(one));
    return unavailable(one->call);
}

/* The end of ONE, which was sent: give its charge back unless the key is unknown.
 * A key that is on the roll and does not exist is charged now. */
static void settle(const look_up_t *one)
{
    crm_call_t *call = one->call;
    int unknown = call->response->look_up == CRM_LOOK_UP_UNKNOWN;

    if (one->charged && !unknown) {
        refund(call);
    }
    if (!one->charged && unknown) {
        crm_roll_strike(call->service->keys->roll, call->key.hash,
                        call->key.realm);
        crm_look_up_charge(call);
        call->response->look_up = CRM_LOOK_UP_UNKNOWN;
    }
}

/* Return the state in which a look-up has ended with ERROR. */
static crm_flight_state_t state_of(const crm_error_t *error)
{
    if (!error) {
        return CRM_FLIGHT_KNOWN;
    }
    return error->code == CRM_E_UNAUTHORIZED ? CRM_FLIGHT_UNKNOWN
           : error->code == CRM_E_RATE_LIMITED ? CRM_FLIGHT_REFUSED
           : CRM_FLIGHT_FAILED;
}

static crm_error_t *unauthorized(crm_call_t *call)
{
    call->response->look_up = CRM_LOOK_UP_NONE;
    return crm_error_create(CRM_E_UNAUTHORIZED, call->credential->refusal,
                            call->pool);
}

/* Do the look-up ONE, which has begun. If there is no budget for it, but it has
 * shared one, that decides. */
static crm_error_t *lead(look_up_t *one)
{
    crm_call_t *call = one->call;
    crm_error_t *error = NULL;

    /* another one may have ended since the memory was asked */
    if (!crm_look_up_recall(call)) {
        error = pay(one);
        if (!error) {
            crm_flight_send(&one->flight, one->charged);
            error = crm_look_up_learn(call);
            settle(one);
        }
    }
    crm_flight_end(&one->flight, state_of(error));
    return error && error->code == CRM_E_RATE_LIMITED && one->unknown
           ? unauthorized(call) : error;
}

/* Wait for the end of the look-up ONE, another thread's. ARRIVED is when the
 * request has arrived: a key that was unknown before may exist since. Set *DONE_P
 * if that decides ONE. */
static crm_error_t *follow(int *done_p, look_up_t *one,
                           apr_int64_t arrived)
{
    crm_call_t *call = one->call;
    crm_flight_state_t state;
    apr_int64_t sent;

    while ((state = crm_flight_look(&sent, &one->flight))
           == CRM_FLIGHT_RUNNING) {
        if (!nap(one)) {
            return unavailable(call);
        }
    }
    *done_p = 1;
    if (state == CRM_FLIGHT_FAILED) {
        return unavailable(call);
    }
    one->unknown |= state == CRM_FLIGHT_UNKNOWN;
    if (state == CRM_FLIGHT_UNKNOWN && sent >= arrived) {
        return unauthorized(call);
    }
    *done_p = state == CRM_FLIGHT_KNOWN && crm_look_up_recall(call);
    return NULL;
}

/* Do the look-up ONE, or wait for the same one of another thread. */
static crm_error_t *share(look_up_t *one)
{
    const crm_call_t *call = one->call;
    crm_flight_key_t key = {.hash = call->key.hash, .realm = call->key.realm};
    apr_int64_t arrived = crm_limit_clock();
    int done = 0;

    crm_address_names(key.nets, call->request->address, call->pool);
    while (!done) {
        if (crm_flight_begin(&one->flight, call->service->keys->flights,
                             &key)) {
            return lead(one);
        }
        CRM_ERR(follow(&done, one, arrived));
        if (!done && !nap(one)) {
            return unavailable(call);
        }
    }
    return NULL;
}

crm_error_t *crm_look_up_key(crm_call_t *call)
{
    apr_interval_time_t wait = call->service->settings.database_wait;
    look_up_t one = {.call = call};

    if (!call->service->keys) {
        return crm_look_up_learn(call);
    }
    one.until = crm_time_monotonic() + (wait > WAIT_MIN ? wait : WAIT_MIN);
    return share(&one);
}
