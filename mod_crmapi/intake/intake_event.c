/* SPDX-License-Identifier: Apache-2.0 */
/* intake_event.c: POST events, which whoever has an intake token may bring */
#include "crm_intake_call.h"

#include <string.h>

#include "apr_cstr.h"
#include "apr_strings.h"

#include "crm_budget.h"
#include "crm_json.h"
#include "crm_key.h"

/* The events of a request. Those that are sound are in EVENTS, in order. */
typedef struct batch_t {
    crm_intake_call_t *call;
    crm_limit_key_t key;        /* the token's */
    const char *key_hash;       /* bind of a bytea */
    json_object *body;
    int count;                  /* of all */
    crm_error_t **wrong;        /* of each: why it is refused, or NULL */
    int *index;                 /* of each sound one: its place in the body */
    crm_intake_event_t *events;
    crm_intake_result_t *results;
    int sound;                  /* how many are */
} batch_t;

static crm_error_t *unauthorized(const batch_t *batch)
{
    return crm_error_create(CRM_E_UNAUTHORIZED,
                            "Intake token is missing or invalid",
                            batch->call->pool);
}

/* ---- who ----------------------------------------------------------------- */

/* Look up the token of BATCH's hash in the database and make it known. */
static crm_error_t *learn_token(batch_t *batch)
{
    crm_limit_key_t *key = &batch->key;
    PGresult *result;

    CRM_ERR(crm_intake_query(&result, batch->call,
                             "SELECT k.key_id, k.workspace_id, k.slug"
                             " FROM crmapi.intake_key_find($1::bytea) k", 1,
                             &batch->key_hash));
    if (!PQntuples(result)) {
        return unauthorized(batch);
    }
    apr_cpystrn(key->key_id, PQgetvalue(result, 0, 0), sizeof(key->key_id));
    apr_cpystrn(key->workspace_id, PQgetvalue(result, 0, 1),
                sizeof(key->workspace_id));
    apr_cpystrn(key->slug, PQgetvalue(result, 0, 2), sizeof(key->slug));
    /* The body comes next: who sends it slowly holds no connection. */
    crm_intake_release(batch->call);
    if (crm_limit_add(batch->call->service->limit, key) == CRM_LIMIT_FULL) {
        return crm_error_logf(CRM_E_UNAVAILABLE, batch->call->pool,
                              "CRM1003: the table of keys is full: raise "
                              "CrmApiRateLimitKeys");
    }
    return NULL;
}

/* Find out whose token the request carries. */
static crm_error_t *authenticate(batch_t *batch)
{
    crm_intake_call_t *call = batch->call;
    const crm_settings_t *settings = &call->service->settings;
    crm_limit_key_t *key = &batch->key;
    char *bind = apr_palloc(call->pool, 2 + 2 * CRM_KEY_HASH_LEN + 1);
    unsigned char hash[CRM_KEY_HASH_LEN];
    const char *text;
    apr_size_t len;

    if (!call->request->authorization
        || !crm_key_from_bearer(&text, &len, call->request->authorization,
                                CRM_INTAKE_PREFIX)) {
        return unauthorized(batch);
    }
    crm_key_hash(hash, text, len);
    memcpy(bind, "\\x", 2);
    crm_key_hash_hex(bind + 2, hash);
    batch->key_hash = bind;
    if (!crm_limit_find(key, call->service->limit, hash, settings->realm)) {
        memcpy(key->hash, hash, sizeof(hash));
        key->realm = settings->realm;
        CRM_ERR(crm_api_charge_look_up(call->service, call->request->address,
                                       call->pool));
        CRM_ERR(learn_token(batch));
    }
    if (settings->workspace && strcmp(settings->workspace, key->slug)
        && apr_cstr_casecmp(settings->workspace, key->workspace_id)) {
        return unauthorized(batch);
    }
    call->response->workspace_id = apr_pstrdup(call->pool,
                                               key->workspace_id);
    return NULL;
}

/* Charge the token's budget. */
static crm_error_t *charge(batch_t *batch)
{
    crm_intake_call_t *call = batch->call;
    crm_limit_verdict_t verdict;
    crm_error_t *error = crm_budget_charge(&verdict, &batch->key,
                                           call->service->limit,
                                           batch->key.hash, batch->key.realm,
                                           CRM_LIMIT_WRITE,
                                           call->site->token_limit,
                                           call->response->headers,
                                           call->pool);

    return verdict.known ? error : unauthorized(batch);
}

/* ---- what ---------------------------------------------------------------- */

/* Read the body: an event, or an array of them. */
static crm_error_t *read_body(batch_t *batch)
{
    crm_intake_call_t *call = batch->call;
    const char *data;
    apr_size_t len;

    if (!crm_json_is_type(call->request->content_type)) {
        return crm_error_create(CRM_E_UNSUPPORTED_MEDIA_TYPE, NULL,
                                call->pool);
    }
    CRM_ERR(crm_intake_body(&data, &len, call));
    CRM_ERR(crm_json_body(&batch->body, data, len, call->pool));
    batch->count = 1;
    if (json_object_is_type(batch->body, json_type_array)) {
        batch->count = (int)json_object_array_length(batch->body);
    }
    else if (!json_object_is_type(batch->body, json_type_object)) {
        return crm_error_create(CRM_E_VALIDATION, "The body must be an event "
                                "or an array of events", call->pool);
    }
    if (batch->count > CRM_INTAKE_MAX) {
        return crm_error_createf(CRM_E_VALIDATION, call->pool,
                                 "The body must have at most %d events",
                                 CRM_INTAKE_MAX);
    }
    return NULL;
}

/* Return the JSON of event I. */
static json_object *event_at(const batch_t *batch, int i)
{
    return json_object_is_type(batch->body, json_type_array)
           ? json_object_array_get_idx(batch->body, (size_t)i) : batch->body;
}

/* Read the events. */
static void read_events(batch_t *batch)
{
    apr_pool_t *pool = batch->call->pool;
    size_t count = (size_t)batch->count;

    batch->wrong = apr_pcalloc(pool, count * sizeof(*batch->wrong));
    batch->index = apr_pcalloc(pool, count * sizeof(*batch->index));
    batch->events = apr_palloc(pool, count * sizeof(*batch->events));
    batch->results = apr_palloc(pool, count * sizeof(*batch->results));
    for (int i = 0; i < batch->count; i++) {
        crm_input_t input = {pool, NULL, 0};

        crm_intake_parse(&batch->events[batch->sound], &input,
                         event_at(batch, i));
        batch->wrong[i] = input.error;
        if (!input.error) {
            batch->index[batch->sound++] = i;
        }
    }
}

/* Take the sound ones. */
static crm_error_t *take(batch_t *batch)
{
    crm_intake_call_t *call = batch->call;
    apr_time_t began;
    crm_error_t *error;
    int known;

    CRM_ERR(crm_intake_conn(call));
    began = apr_time_now();
    error = crm_intake(batch->results, &known, call->conn,
                       batch->key.workspace_id, batch->key_hash,
                       batch->events, batch->sound, call->pool);
    call->response->db_us += apr_time_now() - began;
    CRM_ERR(error);
    if (!known) {
        crm_limit_forget(call->service->limit, batch->key.hash,
                         batch->key.realm);
        return unauthorized(batch);
    }
    for (int i = 0; i < batch->sound; i++) {
        const crm_intake_result_t *one = &batch->results[i];

        if (one->field) {
            crm_error_detail(&batch->wrong[batch->index[i]], one->field,
                             one->message, call->pool);
        }
        else if (one->conversation_id && !one->again) {
            crm_bell_ring(call->site->bell, one->conversation_id);
        }
    }
    return NULL;
}

/* ---- answer -------------------------------------------------------------- */

/* Add the member NAME to BODY: an id or null. */
static void write_id(crm_buf_t *body, const char *name, const char *id)
{
    crm_buf_printf(body, id ? ",\"%s\":\"%s\"" : ",\"%s\":null", name, id);
}

/* Write what became of sound event I. */
static void write_taken(crm_buf_t *body, const batch_t *batch, int i)
{
    const char *id = batch->events[i].binds[CRM_INTAKE_EVENT_ID];
    const crm_intake_result_t *result = &batch->results[i];

    crm_buf_printf(body, "{\"index\":%d,\"event_id\":", batch->index[i]);
    crm_buf_json_string(body, id, strlen(id));
    write_id(body, "conversation_id", result->conversation_id);
    write_id(body, "message_id", result->message_id);
    write_id(body, "contact_id", result->contact_id);
    crm_buf_putc(body, '}');
}

/* Write the answer: what was taken, and what was not (as upsert does, contract
 * 10.2). */
static void write_answer(batch_t *batch)
{
    crm_buf_t *body = &batch->call->response->body;
    const char *comma = "";

    crm_intake_type(batch->call, "application/json");
    crm_buf_puts(body, "{\"data\":{\"accepted\":[");
    for (int i = 0; i < batch->sound; i++) {
        if (!batch->wrong[batch->index[i]]) {
            crm_buf_puts(body, comma);
            write_taken(body, batch, i);
            comma = ",";
        }
    }
    crm_buf_puts(body, "],\"errors\":[");
    comma = "";
    for (int i = 0; i < batch->count; i++) {
        if (batch->wrong[i]) {
            crm_buf_puts(body, comma);
            crm_api_write_refused(body, i, batch->wrong[i]->details);
            comma = ",";
        }
    }
    crm_buf_puts(body, "]}}");
}

static crm_error_t *serve_events(crm_intake_call_t *call, const char *rest)
{
    batch_t batch = {.call = call};

    (void)rest;
    CRM_ERR(authenticate(&batch));
    CRM_ERR(charge(&batch));
    CRM_ERR(read_body(&batch));
    read_events(&batch);
    if (batch.sound) {
        CRM_ERR(take(&batch));
    }
    write_answer(&batch);
    return NULL;
}

const crm_intake_route_t crm_intake_event_routes[] = {
    {"events", "POST", serve_events, NULL},
    {NULL, NULL, NULL, NULL}
};
