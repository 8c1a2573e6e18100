/* SPDX-License-Identifier: Apache-2.0 */
/* crm_access.c: admission: authentication and request budgets */
#include "crm_access.h"

#include <string.h>

#include "apr_cstr.h"
#include "apr_strings.h"

#include "crm_address.h"
#include "crm_budget.h"
#include "crm_key.h"
#include "crm_limit_key.h"

/* ---- keys and tokens ----------------------------------------------------- */

/* A kind of credential sent as "Authorization: Bearer ...". */
typedef struct crm_credential_t {
    const char *prefix;         /* NULL: the vhost's CrmApiKeyPrefix */
    const char *look_up;        /* SQL: the live key or token with the hash
                                   $1 */
    const char *refusal;        /* message of a 401, NULL: the default */
    int touches;                /* crm_access_touch() records its last use */
} crm_credential_t;

static const crm_credential_t api_key = {
    NULL,
    "SELECT k.key_id, k.workspace_id, k.slug"
    " FROM crmapi.key_find($1::bytea) k", NULL, 1
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

const char *crm_access_hash(const crm_call_t *call)
{
    char *bind = apr_palloc(call->pool, CRM_KEY_BIND_SIZE);

    crm_key_hash_bind(bind, call->key.hash);
    return bind;
}

/* Look up CALL's key in the database. *RESULT_P has one row if the key is
 * alive. */
static crm_error_t *look_up(PGresult **result_p, crm_call_t *call)
{
    const char *hash = crm_access_hash(call);

    return crm_call_run(result_p, call, call->credential->look_up, 1, &hash);
}

/* Look up CALL's key, which is not in shared memory, and add it there. */
static crm_error_t *learn(crm_call_t *call)
{
    crm_limit_key_t *key = &call->key;
    PGresult *result;

    call->response->look_up = CRM_LOOK_UP_FAILED;
    CRM_ERR(look_up(&result, call));
    call->response->look_up = CRM_LOOK_UP_UNKNOWN;
    if (!PQntuples(result)) {
        return unauthorized(call);
    }
    call->response->look_up = CRM_LOOK_UP_KNOWN;
    apr_cpystrn(key->key_id, PQgetvalue(result, 0, 0), sizeof(key->key_id));
    apr_cpystrn(key->workspace_id, PQgetvalue(result, 0, 1),
                sizeof(key->workspace_id));
    apr_cpystrn(key->slug, PQgetvalue(result, 0, 2), sizeof(key->slug));
    if (crm_limit_add(call->service->limit, key, NULL) == CRM_LIMIT_FULL) {
        return crm_error_logf(CRM_E_UNAVAILABLE, call->pool, CRM_BUDGET_FULL);
    }
    return NULL;
}

/* Charge a request of KIND and CLASS to CALL's address, with the limit MAX a
 * minute. */
static crm_error_t *charge_address(const crm_call_t *call, const char *kind,
                                   crm_limit_class_t class, apr_uint32_t max)
{
    return crm_address_charge(call->service->addresses, kind,
                              call->request->address,
                              call->service->settings.realm, class, max,
                              call->pool);
}

/* Set CALL's key to the one in its request (contract 3). */
static crm_error_t *authenticate(crm_call_t *call)
{
    const crm_settings_t *settings = &call->service->settings;
    const char *prefix = call->credential->prefix, *text;
    const char *header = crm_request_header(call->request, "Authorization");
    crm_limit_key_t *key = &call->key;
    unsigned char hash[CRM_KEY_HASH_LEN];
    apr_size_t len;

    if (!header
        || !crm_key_from_bearer(&text, &len, header,
                                prefix ? prefix : settings->key_prefix)) {
        return unauthorized(call);
    }
    crm_key_hash(hash, text, len);
    if (!crm_limit_find(key, call->service->limit, hash, settings->realm)) {
        memcpy(key->hash, hash, sizeof(hash));
        key->realm = settings->realm;
        call->response->look_up = CRM_LOOK_UP_REFUSED;
        CRM_ERR(charge_address(call, CRM_ADDRESS_KEY, CRM_LIMIT_READ,
                               settings->unknown_key_limit));
        CRM_ERR(learn(call));
    }
    if (settings->workspace && strcmp(settings->workspace, key->slug)
        && apr_cstr_casecmp(settings->workspace, key->workspace_id)) {
        return unauthorized(call);
    }
    call->response->workspace_id = key->workspace_id;
    call->response->key_id = key->key_id;
    return NULL;
}

/* Charge a request of CLASS to CALL's key, with the limit MAX a minute, and set
 * the rate limit headers (contract 4.2). */
static crm_error_t *charge(crm_call_t *call, crm_limit_class_t class,
                           apr_uint32_t max)
{
    crm_limit_verdict_t verdict;
    crm_error_t *error;

    error = crm_budget_charge(&verdict, &call->key, call->service->limit,
                              call->service->store, class, max, 0,
                              call->response->headers, call->pool);
    if (!verdict.known) {
        /* Another process has removed the key because it was revoked. */
        return unauthorized(call);
    }
    call->response->touch = verdict.touch && call->credential->touches;
    call->confirm = verdict.confirm;
    return error;
}

static crm_error_t *admit_key(crm_call_t *call)
{
    const char *method = call->request->method;
    crm_limit_class_t class = !strcmp(method, "GET") || !strcmp(method, "HEAD")
                              ? CRM_LIMIT_READ : CRM_LIMIT_WRITE;

    call->credential = &api_key;
    CRM_ERR(authenticate(call));
    return charge(call, class, call->service->settings.limits[class]);
}

static crm_error_t *admit_token(crm_call_t *call)
{
    call->credential = &intake_token;
    CRM_ERR(authenticate(call));
    return charge(call, CRM_LIMIT_WRITE, call->service->settings.token_limit);
}

crm_error_t *crm_access_revoked(crm_call_t *call)
{
    crm_limit_forget(call->service->limit, call->key.hash, call->key.realm);
    return unauthorized(call);
}

crm_error_t *crm_access_confirm(crm_call_t *call, crm_error_t *error)
{
    PGresult *result;

    return look_up(&result, call) || PQntuples(result)
           ? error : crm_access_revoked(call);
}

void crm_access_touch(const crm_service_t *service, void *baton,
                      const char *workspace_id, const char *key_id,
                      apr_pool_t *scratch_pool)
{
    crm_conn_t *conn;
    PGresult *result;
    crm_stmt_t stmt;
    crm_sql_t sql;

    if (service->acquire(&conn, apr_time_now(), baton, scratch_pool)) {
        return;
    }
    crm_sql_init(&sql, scratch_pool);
    crm_sql_template(&sql, "UPDATE crmapi.api_key SET last_used_at ="
                     " date_trunc('milliseconds', clock_timestamp())"
                     " WHERE workspace_id = ?", workspace_id, "uuid");
    crm_sql_template(&sql, " AND id = ?", key_id, "uuid");
    crm_sql_stmt(&stmt, &sql);
    crm_db_query(&result, conn, &stmt, scratch_pool);
    service->release(conn, baton);
}

/* ---- addresses ----------------------------------------------------------- */

crm_error_t *crm_access_admit_address(crm_call_t *call)
{
    return charge_address(call, call->route->access->kind, CRM_LIMIT_WRITE,
                          call->service->settings.address_limit);
}

crm_error_t *crm_access_admit_poll(crm_call_t *call)
{
    return charge_address(call, call->route->access->kind, CRM_LIMIT_READ,
                          CRM_ACCESS_POLLS
                          * call->service->settings.address_limit);
}

crm_error_t *crm_access_charge_visitor(const crm_call_t *call,
                                       const char *visitor)
{
    const crm_settings_t *settings = &call->service->settings;

    return crm_address_charge_name(call->service->addresses, "visitor",
                                   visitor, settings->realm, CRM_LIMIT_READ,
                                   CRM_ACCESS_VISITOR_POLLS
                                   * settings->address_limit, call->pool);
}

void crm_access_proven(crm_call_t *call)
{
    const crm_settings_t *settings = &call->service->settings;

    crm_address_refund(call->service->addresses, call->route->access->kind,
                       call->request->address, settings->realm,
                       CRM_LIMIT_WRITE, settings->address_limit, call->pool);
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
