/* SPDX-License-Identifier: Apache-2.0 */
/* crm_look_up.h: keys and tokens that shared memory does not know (contract
 * 2.4) */
#ifndef CRM_LOOK_UP_H
#define CRM_LOOK_UP_H

#include "crm_call.h"

/* A kind of credential sent as "Authorization: Bearer ...". */
typedef struct crm_credential_t {
    const char *prefix;         /* NULL: the vhost's CrmApiKeyPrefix */
    const char *look_up;        /* SQL: the live key or token with the hash
                                   $1 */
    const char *refusal;        /* message of a 401, NULL: the default */
    int is_key;                 /* an API key: it has terms, and
                                   crm_touch() records its last use */
} crm_credential_t;

/* All functions below are about CALL's key: the hash and realm in call->key. */

/* Return its hash as a bind for bytea, in CALL's pool. */
const char *crm_look_up_hash(const crm_call_t *call);

/* Set CALL's key from shared memory. Return whether it is known there. */
int crm_look_up_recall(crm_call_t *call);

/* Look it up in the database and set CALL's key. A look-up is charged to the
 * address, unless the key turns out to exist or the database fails. Requests
 * with the same key share one look-up, in all processes. What may still be given
 * back is waited for. If the address has no budget left, only a key that is not
 * on the roll of those that exist (crm_roll.h) is refused.
 * Errors: CRM_E_UNAUTHORIZED; CRM_E_RATE_LIMITED; CRM_E_UNAVAILABLE, also if the
 * wait exceeds CrmApiDatabaseWait. */
crm_error_t *crm_look_up_key(crm_call_t *call);

/* The same without sharing and charging. */
crm_error_t *crm_look_up_learn(crm_call_t *call);

/* Charge a look-up to CALL's address. Errors: CRM_E_RATE_LIMITED. */
crm_error_t *crm_look_up_charge(crm_call_t *call);

/* Query it in the database. *RESULT_P has one row if it is alive. */
crm_error_t *crm_look_up_ask(PGresult **result_p, crm_call_t *call);

/* Set CALL's key from RESULT of crm_look_up_ask(), which has a row, and add it to
 * shared memory. */
crm_error_t *crm_look_up_remember(crm_call_t *call, const PGresult *result);

#endif /* CRM_LOOK_UP_H */
