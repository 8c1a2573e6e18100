/* SPDX-License-Identifier: Apache-2.0 */
/* crm_access.h: admission: authentication and request budgets */
#ifndef CRM_ACCESS_H
#define CRM_ACCESS_H

#include "crm_call.h"

/* Limits of a request without proven rights: bytes of its body and fields of
 * its form (contract 2.5). */
#define CRM_ACCESS_BODY_MAX 65536
#define CRM_ACCESS_FIELDS_MAX 200

/* Budgets for polls of chats, for an address and for a visitor, as multiples of
 * the budget for requests without proven rights. */
#define CRM_ACCESS_POLLS 5
#define CRM_ACCESS_VISITOR_POLLS 3

/* The budget of a link in a mail, as the same multiple. */
#define CRM_ACCESS_LINK 3

/* A way to admit requests. It runs before the body is read. */
struct crm_access_t {
    const char *kind;           /* name of the budget that its requests share */
    /* Admit CALL or return the error that refuses it: CRM_E_UNAUTHORIZED,
     * CRM_E_RATE_LIMITED or CRM_E_UNAVAILABLE. */
    crm_error_t *(*admit)(crm_call_t *call);
};

/* Anybody, without a budget: what is answered from memory. */
extern const crm_access_t crm_access_anybody;

/* An API key (contract 3), charged to the key's budget (contract 4). Scopes and
 * plan are checked by the statement that does the work. */
extern const crm_access_t crm_access_key;

/* The two parts of crm_access_key's admit(), for a mount that learns what a
 * request does from its body: set CALL's key to the one in its request, and
 * charge it as a request of CLASS. */
crm_error_t *crm_access_authenticate(crm_call_t *call);
crm_error_t *crm_access_charge(crm_call_t *call, crm_limit_class_t class);

/* An intake token (docs/intake.md), charged to the token's budget. */
extern const crm_access_t crm_access_token;

/* An admit(): anybody, charged to the client's address (contract 2.5). */
crm_error_t *crm_access_admit_address(crm_call_t *call);

/* An admit(): anybody, charged to the address's larger budget for polls, and for
 * the preflight requests that a browser sends before them. */
crm_error_t *crm_access_admit_poll(crm_call_t *call);

/* An admit(): anybody, charged to the client's address and to the link, the first
 * parameter of the path. crm_access_proven() refunds the address only, so that a
 * valid link is not opened for ever. */
crm_error_t *crm_access_admit_link(crm_call_t *call);

/* Charge the poll CALL to VISITOR as well. Errors: CRM_E_RATE_LIMITED. */
crm_error_t *crm_access_charge_visitor(const crm_call_t *call,
                                       const char *visitor);

/* Refund what crm_access_admit_address() or crm_access_admit_link() charged to
 * CALL's address, since the request has proven its rights. */
void crm_access_proven(crm_call_t *call);

/* If CALL was served before its budget had decided, wait for the decision.
 * Return ERROR, the call's, or the refusal that replaces its response. A 401 is
 * not replaced. */
crm_error_t *crm_access_settle(crm_call_t *call, crm_error_t *error);

/* Return a 401 because CALL's key or token was revoked after the call was
 * admitted. Remove the key from shared memory. */
crm_error_t *crm_access_revoked(crm_call_t *call);

/* Return the error of CALL if its statement did nothing, because it found no
 * live key with the terms that are in shared memory: a 401 if the key is dead.
 * Otherwise the terms were outdated. Then they are renewed and CALL->renewed is
 * set: crm_serve() ignores the error and serves CALL again. */
crm_error_t *crm_access_check(crm_call_t *call);

/* Confirm ERROR, a refusal of CALL that was decided from shared memory alone
 * (contract 2.3): return a 401 if CALL's key or token is revoked in the
 * database, otherwise ERROR, also if the database cannot be queried. If the
 * key's terms were outdated, set CALL->renewed. */
crm_error_t *crm_access_confirm(crm_call_t *call, crm_error_t *error);

#endif /* CRM_ACCESS_H */
