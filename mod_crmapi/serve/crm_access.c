/* SPDX-License-Identifier: Apache-2.0 */
/* crm_access.c: admission: authentication and request budgets */
#include "crm_access.h"

#include <string.h>

#include "apr_cstr.h"
#include "apr_strings.h"

#include "crm_address.h"
#include "crm_key.h"
#include "crm_limit_key.h"
#include "crm_look_up.h"
#include "crm_network.h"

/* A key used from a forbidden address may have new terms. They are read at most
 * this often, in microseconds. */
#define REFRESH_US APR_INT64_C(1000000)

/* ---- keys and tokens ----------------------------------------------------- */

static const crm_credential_t api_key = {
    NULL,
    "SELECT k.key_id, k.workspace_id, k.slug, k.terms, k.read_limit,"
    " k.write_limit, k.networks FROM crmapi.key_look_up($1::bytea) k", NULL, 1
};

static const crm_credential_t intake_token = {
    CRM_KEY_INTAKE_PREFIX,
    "SELECT k.key_id, k.workspace_id, k.slug"
    " FROM crmapi.intake_key_find($1::bytea) k",
    "Intake token is missing or invalid", 0
};

static crm_error_t *unauthorized(const crm_call_t *call)
{
    return crm_error_create(CRM_E_UNAUTHORIZED, call->credential->refusal,
                            call->pool);
}

/* The same with a line in the log: WHY CALL's key, which exists, is refused, and WHAT
 * has decided that. Outsiders learn nothing of it. */
static crm_error_t *not_here(const crm_call_t *call, const char *why,
                             const char *what)
{
    crm_error_t *error = unauthorized(call);

    error->log = apr_psprintf(call->pool, "CRM1009: the %s %s of the workspace %s is"
                              " refused: %s %s", call->credential->is_key ? "key"
                              : "token", call->key.key_id, call->key.slug, why, what);
    return error;
}

/* Set *HASH to that of the key in CALL's request (contract 3). */
static crm_error_t *read_key(unsigned char hash[CRM_KEY_HASH_LEN],
                             crm_call_t *call)
{
    const char *prefix = call->credential->prefix, *text;
    const char *header = crm_request_header(call->request, "Authorization");
    apr_size_t len;

    if (!header
        || !crm_key_from_bearer(&text, &len, header, prefix ? prefix
                                : call->service->settings.key_prefix)) {
        return unauthorized(call);
    }
    crm_key_hash(hash, text, len);
    return NULL;
}

/* Return whether CALL's key may be used from CALL's address (contract 14.5). */
static int permits_address(const crm_call_t *call)
{
    crm_network_t networks[CRM_NETWORKS_MAX];
    int count;

    if (!call->key.networks) {
        return 1;
    }
    count = crm_limit_networks(networks, call->service->limit, call->key.hash,
                               call->key.realm);
    return crm_networks_have(networks, count, call->request->address);
}

static crm_error_t *not_from(const crm_call_t *call)
{
    return not_here(call, "its addresses do not have", call->request->address);
}

/* Refuse CALL, whose key is used from a forbidden address, as if its key were
 * unknown. The key may have new terms: read them first, at most every
 * REFRESH_US. */
static crm_error_t *refuse_address(crm_call_t *call)
{
    if (crm_limit_ask(call->service->limit, call->key.hash, call->key.realm,
                      REFRESH_US)) {
        CRM_ERR(crm_look_up_learn(call));
        if (permits_address(call)) {
            return NULL;
        }
    }
    CRM_ERR(crm_look_up_charge(call));
    return not_from(call);
}

/* Set CALL's key to the one in its request (contract 3). */
static crm_error_t *authenticate(crm_call_t *call)
{
    const crm_settings_t *settings = &call->service->settings;
    crm_limit_key_t *key = &call->key;
    int known;

    CRM_ERR(read_key(key->hash, call));
    key->realm = settings->realm;
    known = crm_look_up_recall(call);
    if (!known) {
        CRM_ERR(crm_look_up_key(call));
    }
    if (settings->workspace && strcmp(settings->workspace, key->slug)
        && apr_cstr_casecmp(settings->workspace, key->workspace_id)) {
        return not_here(call, "CrmApiWorkspace is", settings->workspace);
    }
    if (!permits_address(call)) {
        CRM_ERR(known ? refuse_address(call) : not_from(call));
    }
    call->response->workspace_id = key->workspace_id;
    call->response->key_id = key->key_id;
    return NULL;
}

/* Note what CALL's budget has decided. */
static void note_verdict(crm_call_t *call)
{
    const crm_limit_verdict_t *verdict = &call->budget.verdict;

    call->response->touch = verdict->touch && call->credential->is_key;
    call->charged = verdict->admitted;
}

/* Charge a request of CLASS to CALL's key, with the limit MAX a minute, and set
 * the rate limit headers (contract 4.2). A read changes nothing, so that it may
 * be refused when it was served. */
static crm_error_t *charge(crm_call_t *call, crm_limit_class_t class,
                           apr_uint32_t max)
{
    const crm_service_t *service = call->service;
    crm_budget_t *budget = &call->budget;
    crm_error_t *error;

    if (call->charged) {        /* the call is served again */
        crm_budget_show(budget, call->pool);
        return NULL;
    }
    budget->limit = service->limit;
    budget->store = service->store;
    budget->key = &call->key;
    budget->class = class;
    budget->max = max;
    budget->ceiling = service->settings.limit_ceiling;
    budget->later = class == CRM_LIMIT_READ;
    budget->headers = call->response->headers;
    error = crm_budget_charge(budget, call->pool);
    if (!budget->verdict.known) {
        /* Another process has removed the key because it was revoked. */
        return unauthorized(call);
    }
    call->confirm = budget->verdict.confirm;
    note_verdict(call);
    return error;
}

crm_error_t *crm_access_authenticate(crm_call_t *call)
{
    call->credential = &api_key;
    return authenticate(call);
}

crm_error_t *crm_access_charge(crm_call_t *call, crm_limit_class_t class)
{
    return charge(call, class, call->service->settings.limits[class]);
}

static crm_error_t *admit_key(crm_call_t *call)
{
    crm_limit_class_t class = crm_call_reads(call) ? CRM_LIMIT_READ
                                                   : CRM_LIMIT_WRITE;

    CRM_ERR(crm_access_authenticate(call));
    return crm_access_charge(call, class);
}

static crm_error_t *admit_token(crm_call_t *call)
{
    call->credential = &intake_token;
    CRM_ERR(authenticate(call));
    return charge(call, CRM_LIMIT_WRITE, call->service->settings.token_limit);
}

crm_error_t *crm_access_settle(crm_call_t *call, crm_error_t *error)
{
    crm_error_t *refusal;

    if (!call->budget.undecided) {
        return error;
    }
    /* give the connection back before waiting for the store */
    crm_call_release(call);
    refusal = crm_budget_settle(&call->budget, call->pool);
    if (!refusal || (error && error->code == CRM_E_UNAUTHORIZED)) {
        return error;
    }
    note_verdict(call);
    call->renewed = 0;
    return refusal;
}

crm_error_t *crm_access_revoked(crm_call_t *call)
{
    crm_limit_forget(call->service->limit, call->key.hash, call->key.realm);
    return unauthorized(call);
}

/* If CALL's key has other terms in RESULT of crm_look_up_ask() than in shared memory,
 * renew them there and set CALL->renewed. */
static crm_error_t *renew(crm_call_t *call, const PGresult *result)
{
    if (call->credential->is_key
        && strcmp(PQgetvalue(result, 0, 3), call->key.terms)) {
        call->renewed = 1;
        return crm_look_up_remember(call, result);
    }
    return NULL;
}

crm_error_t *crm_access_check(crm_call_t *call)
{
    PGresult *result;

    CRM_ERR(crm_look_up_ask(&result, call));
    if (!PQntuples(result)) {
        return crm_access_revoked(call);
    }
    CRM_ERR(renew(call, result));
    return crm_error_create(CRM_E_UNAVAILABLE, NULL, call->pool);
}

crm_error_t *crm_access_confirm(crm_call_t *call, crm_error_t *error)
{
    PGresult *result;

    if (crm_look_up_ask(&result, call)) {
        return error;
    }
    if (!PQntuples(result)) {
        return crm_access_revoked(call);
    }
    CRM_ERR(renew(call, result));
    return error;
}

/* ---- addresses ----------------------------------------------------------- */

/* Return CALL's budget for requests of KIND and CLASS: TIMES that of an address. */
static crm_address_budget_t budget_of(const crm_call_t *call, const char *kind,
                                      crm_limit_class_t class,
                                      apr_uint32_t times)
{
    const crm_settings_t *settings = &call->service->settings;

    return (crm_address_budget_t){
        .addresses = call->service->addresses, .kind = kind,
        .realm = settings->realm, .class = class,
        .max = times * settings->address_limit
    };
}

/* Charge a request of CLASS to CALL's address and its route's kind, with the limit
 * of TIMES that of an address. */
static crm_error_t *charge_address(const crm_call_t *call,
                                   crm_limit_class_t class, apr_uint32_t times)
{
    crm_address_budget_t budget =
        budget_of(call, call->route->access->kind, class, times);

    return crm_address_charge(&budget, call->request->address, call->pool);
}

crm_error_t *crm_access_admit_address(crm_call_t *call)
{
    return charge_address(call, CRM_LIMIT_WRITE, 1);
}

crm_error_t *crm_access_admit_poll(crm_call_t *call)
{
    if (!call->charged) {       /* else it is served again */
        CRM_ERR(charge_address(call, CRM_LIMIT_READ, CRM_ACCESS_POLLS));
        call->charged = 1;
    }
    return NULL;
}

crm_error_t *crm_access_charge_visitor(const crm_call_t *call,
                                       const char *visitor)
{
    crm_address_budget_t budget =
        budget_of(call, "visitor", CRM_LIMIT_READ, CRM_ACCESS_VISITOR_POLLS);

    return crm_address_charge_name(&budget, visitor, call->pool);
}

crm_error_t *crm_access_admit_link(crm_call_t *call)
{
    crm_address_budget_t budget =
        budget_of(call, "one link", CRM_LIMIT_WRITE, CRM_ACCESS_LINK);
    const crm_arg_t *link = &call->args[0];
    crm_error_t *error;

    CRM_ERR(crm_access_admit_address(call));
    error = crm_address_charge_name(&budget, apr_pstrmemdup(
                                        call->pool, link->text, link->len),
                                    call->pool);
    if (error) {
        crm_access_proven(call);        /* the address pays for no refusal */
    }
    return error;
}

void crm_access_proven(crm_call_t *call)
{
    crm_address_budget_t budget =
        budget_of(call, call->route->access->kind, CRM_LIMIT_WRITE, 1);

    crm_address_refund(&budget, call->request->address, call->pool);
}

/* ---- ways to be admitted ------------------------------------------------- */

static crm_error_t *admit_anybody(crm_call_t *call)
{
    (void)call;
    return NULL;
}

const crm_access_t crm_access_anybody = {"anybody", admit_anybody};
const crm_access_t crm_access_key = {"API key", admit_key};
const crm_access_t crm_access_token = {"intake token", admit_token};
