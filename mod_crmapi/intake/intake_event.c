/* SPDX-License-Identifier: Apache-2.0 */
/* intake_event.c: POST events, with an intake token */
#include "intake_event.h"

#include <string.h>

#include "crm_channel.h"
#include "crm_envelope.h"
#include "crm_intake_site.h"
#include "crm_look_up.h"
#include "intake_keyword.h"

/* The events of a request. EVENTS and RESULTS have the valid ones, in order. */
typedef struct batch_t {
    crm_call_t *call;
    json_object *body;
    int count;                  /* number of events in the body */
    crm_error_t **errors;       /* of each event: why it is refused, or NULL */
    int *index;                 /* of each valid event: its index in the body */
    crm_intake_event_t *events;
    crm_intake_result_t *results;
    int valid;                  /* number of valid events */
} batch_t;

/* ---- reading ------------------------------------------------------------- */

/* Read the body: an event, or an array of them. */
static crm_error_t *read_body(batch_t *batch)
{
    crm_call_t *call = batch->call;

    CRM_ERR(crm_call_json(&batch->body, call));
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

/* Let EVENT, if it is a text that somebody has sent, do what its words ask for
 * (contract 17.4). */
static void read_keyword(crm_intake_event_t *event, apr_pool_t *pool)
{
    const char **binds = event->binds;
    const char *channel = binds[CRM_INTAKE_CHANNEL];
    const char *direction = binds[CRM_INTAKE_DIRECTION];
    const char *role = binds[CRM_INTAKE_ROLE];

    if (channel && !strcmp(channel, CRM_CODE_TEXT)
        && binds[CRM_INTAKE_CONTENT]
        && (!direction || !strcmp(direction, "inbound"))
        && (!role || !strcmp(role, "user"))) {
        crm_intake_keyword_apply(event, crm_intake_keyword(
                                     binds[CRM_INTAKE_CONTENT], pool));
    }
}

/* Read the events. */
static void read_events(batch_t *batch)
{
    apr_pool_t *pool = batch->call->pool;
    size_t count = (size_t)batch->count;

    batch->errors = apr_pcalloc(pool, count * sizeof(*batch->errors));
    batch->index = apr_pcalloc(pool, count * sizeof(*batch->index));
    batch->events = apr_palloc(pool, count * sizeof(*batch->events));
    batch->results = apr_palloc(pool, count * sizeof(*batch->results));
    for (int i = 0; i < batch->count; i++) {
        crm_input_t input = {pool, NULL, 0};

        crm_intake_parse(&batch->events[batch->valid], &input,
                         event_at(batch, i));
        batch->errors[i] = input.error;
        if (!input.error) {
            read_keyword(&batch->events[batch->valid], pool);
            batch->index[batch->valid++] = i;
        }
    }
}

/* Store the valid events. */
static crm_error_t *take(batch_t *batch)
{
    crm_call_t *call = batch->call;
    crm_intake_batch_t valid = {
        .workspace_id = call->key.workspace_id,
        .key_hash = crm_look_up_hash(call), .events = batch->events,
        .results = batch->results, .count = batch->valid
    };

    CRM_ERR(crm_intake_take_all(&valid, call));
    if (!valid.known) {
        return crm_access_revoked(call);
    }
    for (int i = 0; i < batch->valid; i++) {
        crm_intake_refused(&batch->errors[batch->index[i]],
                           &batch->results[i], call->pool);
    }
    return NULL;
}

/* ---- response ------------------------------------------------------------ */

/* Add the member NAME to BODY: ID or null. */
static void write_id(crm_buf_t *body, const char *name, const char *id)
{
    crm_buf_printf(body, id ? ",\"%s\":\"%s\"" : ",\"%s\":null", name, id);
}

/* Write the result of the valid event I. */
static void write_taken(crm_buf_t *body, const batch_t *batch, int i)
{
    const char *id = batch->events[i].binds[CRM_INTAKE_EVENT_ID];
    const crm_intake_result_t *result = &batch->results[i];

    crm_buf_printf(body, "{\"index\":%d,\"event_id\":", batch->index[i]);
    crm_buf_json_text(body, id);
    write_id(body, "conversation_id", result->conversation_id);
    write_id(body, "message_id", result->message_id);
    write_id(body, "contact_id", result->contact_id);
    crm_buf_putc(body, '}');
}

/* Write the response: accepted events and errors, as upsert does (contract
 * 10.2). */
static void write_answer(batch_t *batch)
{
    crm_buf_t *body = &batch->call->response->body;
    const char *comma = "";

    crm_buf_puts(body, "{\"data\":{\"accepted\":[");
    for (int i = 0; i < batch->valid; i++) {
        if (!batch->errors[batch->index[i]]) {
            crm_buf_puts(body, comma);
            write_taken(body, batch, i);
            comma = ",";
        }
    }
    crm_buf_puts(body, "],\"errors\":[");
    comma = "";
    for (int i = 0; i < batch->count; i++) {
        if (batch->errors[i]) {
            crm_buf_puts(body, comma);
            crm_envelope_item(body, i, batch->errors[i]->details);
            comma = ",";
        }
    }
    crm_buf_puts(body, "]}}");
}

static crm_error_t *serve_events(crm_call_t *call)
{
    batch_t batch = {.call = call};

    CRM_ERR(read_body(&batch));
    read_events(&batch);
    if (batch.valid) {
        CRM_ERR(take(&batch));
    }
    write_answer(&batch);
    return NULL;
}

const crm_route_t crm_intake_event_routes[] = {
    {.method = "POST", .path = "/events", .access = &crm_access_token,
     .serve = serve_events},
    {.method = NULL}
};
