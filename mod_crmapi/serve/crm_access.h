/* SPDX-License-Identifier: Apache-2.0 */
/* crm_access.h: who may call a route, and which budget pays for it */
#ifndef CRM_ACCESS_H
#define CRM_ACCESS_H

#include "crm_call.h"

/* The largest body, and the most fields of a form, of a request whose rights
 * are not proven (contract 2.5). */
#define CRM_ACCESS_BODY_MAX 65536
#define CRM_ACCESS_FIELDS_MAX 200

/* How many times the budget for requests without proven rights an address has
 * for polls of chats, and a visitor by itself. */
#define CRM_ACCESS_POLLS 5
#define CRM_ACCESS_VISITOR_POLLS 3

/* A way to be admitted. It is done before anything is read of the body. */
struct crm_access_t {
    const char *kind;           /* of requests, which are charged together */
    /* Admit CALL or return the error that refuses it: CRM_E_UNAUTHORIZED,
     * CRM_E_RATE_LIMITED, CRM_E_UNAVAILABLE. */
    crm_error_t *(*admit)(crm_call_t *call);
};

/* Anybody, at nobody's cost: documents and preflight requests. */
extern const crm_access_t crm_access_anybody;

/* An API key (contract 3), charged to its budget (contract 4). Scopes and plan
 * are checked by the statement that does the work. */
extern const crm_access_t crm_access_key;

/* An intake token (docs/intake.md), charged to its budget. */
extern const crm_access_t crm_access_token;

/* An admit(): anybody, charged to the client's address (contract 2.5). */
crm_error_t *crm_access_admit_address(crm_call_t *call);

/* An admit(): anybody, for a poll, which its address has more of. */
crm_error_t *crm_access_admit_poll(crm_call_t *call);

/* Charge the poll CALL to VISITOR, too. Errors: CRM_E_RATE_LIMITED. */
crm_error_t *crm_access_charge_visitor(const crm_call_t *call,
                                       const char *visitor);

/* Give the unit back that crm_access_admit_address() has charged to CALL's
 * address: its rights have been proven since. */
void crm_access_proven(crm_call_t *call);

/* Return the error that CALL's key or token is dead, which it was not when it
 * was admitted, and forget it. */
crm_error_t *crm_access_revoked(crm_call_t *call);

/* Return ERROR, a refusal of CALL that memory alone has decided, or a 401 if
 * the database says that its key or token is dead (contract 2.3). An error of
 * the database changes nothing. */
crm_error_t *crm_access_confirm(crm_call_t *call, crm_error_t *error);

/* Return the hash of CALL's key or token as a bind for bytea, in its pool. */
const char *crm_access_hash(const crm_call_t *call);

/* Record in the database, by way of SERVICE and BATON, that the API key KEY_ID
 * of WORKSPACE_ID was used (contract 1.2). Called after the response has been
 * sent, when its TOUCH is set. Failure has no consequence. */
void crm_access_touch(const crm_service_t *service, void *baton,
                      const char *workspace_id, const char *key_id,
                      apr_pool_t *scratch_pool);

#endif /* CRM_ACCESS_H */
