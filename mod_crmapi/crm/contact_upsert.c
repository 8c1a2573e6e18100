/* SPDX-License-Identifier: Apache-2.0 */
/* contact_upsert.c: POST /contacts/upsert (specification; contract 10) */
#include <string.h>

#include "apr_strings.h"

#include "contact_batch.h"
#include "crm_array.h"
#include "crm_body.h"
#include "crm_envelope.h"
#include "crm_resources.h"
#include "crm_rest.h"
#include "crm_type_address.h"
#include "crm_uuid.h"

#define ITEMS_MAX 200           /* specification, Limits */

/* An item of the body's array "contacts". */
typedef struct item_t {
    crm_input_t input;          /* errors of this item */
    const char *prefix;         /* "contacts[3]." */
    crm_values_t values;
    crm_input_t bot_input;      /* errors of its bot_id, reported on create
                                   only */
    const char *bot_id;         /* its bot_id, or NULL */
    int identity;               /* index of its identity; -1: not an object */
} item_t;

/* The request and the response. */
typedef struct upsert_t {
    crm_call_t *call;
    const char *bot_id;
    item_t *items;
    int count;
    crm_identity_t *identities;
    int identity_count;
    apr_array_header_t *refs;   /* of crm_ref_t */
    crm_buf_t created, updated, errors;
} upsert_t;

static const crm_field_t bot_field = {
    .name = "bot_id", .type = &crm_type_ref, .flags = CRM_F_REQUIRED,
    .ref = "agent",
};

/* Read the members of the request into *UPSERT and set *CONTACTS_P to the array
 * of items. */
static crm_error_t *read_request(upsert_t *upsert, json_object **contacts_p)
{
    crm_input_t input;
    json_object *body;
    int has_bot = 0;

    CRM_ERR(crm_rest_body(&body, &input, upsert->call));
    json_object_object_foreach(body, name, value) {
        if (!strcmp(name, "bot_id")) {
            has_bot = 1;
            crm_type_parse(&upsert->bot_id, &input, &bot_field, name, value);
        }
        else if (!strcmp(name, "contacts")) {
            *contacts_p = value;
        }
        else if (!input.lenient) {
            crm_input_error(&input, name, "is not a known field");
        }
    }
    if (!has_bot) {
        crm_input_error(&input, "bot_id", "is required");
    }
    if (!*contacts_p) {
        crm_input_error(&input, "contacts", "is required");
    }
    else if (!json_object_is_type(*contacts_p, json_type_array)) {
        crm_input_error(&input, "contacts", "must be an array");
    }
    else if (json_object_array_length(*contacts_p) > ITEMS_MAX) {
        crm_input_error(&input, "contacts", "must have at most 200 items");
    }
    return input.error;
}

static void add_ref(upsert_t *upsert, const char *ref, const char *id)
{
    crm_ref_t *entry = apr_array_push(upsert->refs);

    entry->ref = ref;
    entry->id = id;
}

/* Read the bot_id of ITEM, whose JSON is VALUE, and remove it from VALUE. It is
 * checked and used only if the item creates a contact (contract 10.3). */
static void read_owner(upsert_t *upsert, item_t *item, json_object *value)
{
    json_object *bot = json_object_object_get(value, "bot_id");

    item->bot_input.pool = upsert->call->pool;
    if (bot) {
        crm_type_parse(&item->bot_id, &item->bot_input, &bot_field,
                       apr_pstrcat(upsert->call->pool, item->prefix,
                                   bot_field.name, NULL), bot);
    }
    if (item->bot_id) {
        add_ref(upsert, bot_field.ref, item->bot_id);
    }
    json_object_object_del(value, bot_field.name);
}

/* Read VALUE, the item INDEX. */
static void read_item(upsert_t *upsert, int index, json_object *value)
{
    apr_pool_t *pool = upsert->call->pool;
    item_t *item = &upsert->items[index];

    item->input.pool = pool;
    item->input.lenient = crm_rest(upsert->call)->lenient;
    item->prefix = apr_psprintf(pool, "contacts[%d].", index);
    item->identity = -1;
    if (!json_object_is_type(value, json_type_object)) {
        crm_input_error(&item->input, apr_psprintf(pool, "contacts[%d]",
                                                   index),
                        "must be an object");
        return;
    }
    read_owner(upsert, item, value);
    crm_body_read(&item->values, &item->input, &crm_resource_contact, value,
                  CRM_BODY_MERGE, item->prefix);
    for (int i = 0; crm_resource_contact.fields[i].name; i++) {
        const crm_field_t *field = &crm_resource_contact.fields[i];

        if (field->ref && item->values.sent[i] && item->values.binds[i]) {
            add_ref(upsert, field->ref, item->values.binds[i]);
        }
    }
    item->identity = upsert->identity_count++;
    crm_identity_init(&upsert->identities[item->identity], &item->values, pool);
}

static void read_items(upsert_t *upsert, json_object *contacts)
{
    apr_pool_t *pool = upsert->call->pool;
    size_t count = json_object_array_length(contacts);

    upsert->count = (int)count;
    upsert->items = apr_pcalloc(pool, (count + 1) * sizeof(item_t));
    upsert->identities = apr_pcalloc(pool, (count + 1)
                                     * sizeof(crm_identity_t));
    for (int i = 0; i < upsert->count; i++) {
        read_item(upsert, i, json_object_array_get_idx(contacts, (size_t)i));
    }
}

/* Put CONTACT's e-mails and phones before those in VALUES (contract 10.3). A
 * null in ITEM clears a list, and an invalid list has no bind. */
static void merge_lists(crm_values_t *values, const crm_contact_t *contact,
                        json_object *item, apr_pool_t *pool)
{
    static const char *const lists[] = {"emails", "phone_numbers"};

    for (size_t i = 0; i < CRM_NELTS(lists); i++) {
        int index = crm_contact_index(lists[i]);

        if (values->binds[index] && json_object_object_get(item, lists[i])) {
            crm_type_merge(&values->binds[index],
                           &crm_resource_contact.fields[index],
                           contact->binds[index], values->binds[index], pool);
        }
    }
}

/* Set *OWNER_P to the agent of the contact that ITEM creates. Errors are added
 * to ITEM. */
static void find_owner(const char **owner_p, upsert_t *upsert,
                       crm_contact_batch_t *batch, item_t *item)
{
    const char *rule = NULL;

    *owner_p = item->bot_id ? item->bot_id : upsert->bot_id;
    if (item->bot_input.error) {
        rule = APR_ARRAY_IDX(item->bot_input.error->details, 0,
                             crm_detail_t).message;
    }
    else if (!crm_contact_batch_has(batch, bot_field.ref, *owner_p)) {
        rule = crm_ref_rule(bot_field.ref, batch->pool);
    }
    if (rule) {
        crm_input_error(&item->input,
                        apr_pstrcat(batch->pool, item->prefix,
                                    bot_field.name, NULL), rule);
    }
}

static void write_item_error(upsert_t *upsert, int index)
{
    crm_buf_t *buf = &upsert->errors;

    if (buf->len) {
        crm_buf_putc(buf, ',');
    }
    crm_envelope_item(buf, index,
                      upsert->items[index].input.error->details);
}

/* Create or update the contact of item INDEX, whose JSON is VALUE. */
static void do_item(upsert_t *upsert, crm_contact_batch_t *batch, int index,
                    json_object *value)
{
    item_t *item = &upsert->items[index];
    const crm_identity_t *identity = &upsert->identities[item->identity];
    crm_contact_t *contact = crm_contact_batch_match(batch, identity);
    crm_buf_t *buf = contact ? &upsert->updated : &upsert->created;
    const char *owner = NULL;

    crm_contact_batch_check_refs(batch, &item->input, &item->values,
                                 item->prefix);
    if (contact) {
        merge_lists(&item->values, contact, value, upsert->call->pool);
        crm_contact_fits(&item->input, &item->values, item->prefix);
    }
    else {
        find_owner(&owner, upsert, batch, item);
    }
    if (item->input.error) {
        return;
    }
    if (contact) {
        crm_contact_batch_update(batch, identity, contact, &item->values);
    }
    else {
        contact = crm_contact_batch_create(batch, identity, &item->values,
                                           owner);
    }
    if (buf->len) {
        crm_buf_putc(buf, ',');
    }
    crm_contact_write(buf, contact);
}

static void do_items(upsert_t *upsert, crm_contact_batch_t *batch,
                     json_object *contacts)
{
    for (int i = 0; i < upsert->count; i++) {
        if (upsert->items[i].identity >= 0) {
            do_item(upsert, batch, i,
                    json_object_array_get_idx(contacts, (size_t)i));
        }
        if (upsert->items[i].input.error) {
            write_item_error(upsert, i);
        }
    }
}

static void answer(upsert_t *upsert)
{
    crm_buf_t *body = &upsert->call->response->body;

    crm_buf_puts(body, "{\"data\":{\"created\":[");
    crm_buf_add(body, upsert->created.data, upsert->created.len);
    crm_buf_puts(body, "],\"updated\":[");
    crm_buf_add(body, upsert->updated.data, upsert->updated.len);
    crm_buf_puts(body, "],\"errors\":[");
    crm_buf_add(body, upsert->errors.data, upsert->errors.len);
    crm_buf_puts(body, "]}}");
    upsert->call->response->status = 200;
}

/* Return whether an item may remove an identity from a contact, so that the
 * next oldest contact with it matches later items. */
static int clears_identity(const upsert_t *upsert)
{
    int emails = crm_contact_index("emails");
    int phones = crm_contact_index("phone_numbers");

    for (int i = 0; i < upsert->count; i++) {
        const crm_values_t *values = &upsert->items[i].values;

        if (upsert->items[i].identity >= 0
            && ((values->sent[emails] && !upsert->identities[
                     upsert->items[i].identity].email)
                || (values->sent[phones] && !upsert->identities[
                        upsert->items[i].identity].phone))) {
            return 1;
        }
    }
    return 0;
}

/* Process all items in one transaction. */
static crm_error_t *run(upsert_t *upsert, json_object *contacts)
{
    crm_call_t *call = upsert->call;
    crm_input_t input = {call->pool, NULL, 0};
    crm_contact_batch_t *batch;

    CRM_ERR(crm_contact_batch_open(&batch, call, upsert->identities,
                                   upsert->identity_count,
                                   clears_identity(upsert) ? ITEMS_MAX : 1,
                                   upsert->refs, NULL));
    if (!crm_contact_batch_has(batch, "agent", upsert->bot_id)) {
        crm_input_error(&input, "bot_id", crm_ref_rule("agent", call->pool));
        crm_contact_batch_abandon(batch);
        return input.error;
    }
    do_items(upsert, batch, contacts);
    answer(upsert);
    return crm_contact_batch_commit(batch, NULL, 0);
}

/* Store the response, which is all that a request without items writes. */
static crm_error_t *keep_response(crm_call_t *call)
{
    PGresult *result;
    crm_sql_t sql;

    if (!crm_rest(call)->idempotency) {
        return NULL;
    }
    CRM_ERR(crm_idempotency_keep_response(&sql, call));
    return crm_idempotency_query(&result, call, &sql);
}

/* Serve UPSERT if no item is an object: check only the key and the agent. */
static crm_error_t *run_without_items(upsert_t *upsert,
                                      const apr_array_header_t *checks)
{
    CRM_ERR(crm_rest_refuse(upsert->call, NULL, checks));
    for (int i = 0; i < upsert->count; i++) {
        write_item_error(upsert, i);
    }
    answer(upsert);
    return keep_response(upsert->call);
}

static crm_error_t *serve_upsert(crm_call_t *call)
{
    upsert_t *upsert = apr_pcalloc(call->pool, sizeof(*upsert));
    apr_array_header_t *checks = apr_array_make(call->pool, 1,
                                                sizeof(crm_check_t));
    json_object *contacts = NULL;
    crm_error_t *error;

    upsert->call = call;
    upsert->refs = apr_array_make(call->pool, 16, sizeof(crm_ref_t));
    crm_buf_init(&upsert->created, 1024, call->pool);
    crm_buf_init(&upsert->updated, 1024, call->pool);
    crm_buf_init(&upsert->errors, 256, call->pool);
    error = read_request(upsert, &contacts);
    if (upsert->bot_id) {
        crm_check_ref(checks, bot_field.ref, upsert->bot_id, bot_field.name,
                      call->pool);
    }
    if (error) {
        return crm_rest_refuse(call, error, checks);
    }
    add_ref(upsert, "agent", upsert->bot_id);
    read_items(upsert, contacts);
    return upsert->identity_count ? run(upsert, contacts)
           : run_without_items(upsert, checks);
}

const crm_kind_t crm_contact_upsert = {
    .name = "upsert", .status = 200, .serve = serve_upsert, .has_body = 1,
};
