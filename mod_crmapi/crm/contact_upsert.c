/* SPDX-License-Identifier: Apache-2.0 */
/* contact_upsert.c: POST /contacts/upsert (specification; contract 10) and POST
 * /companies/upsert (contract 20.3) */
#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_body.h"
#include "crm_envelope.h"
#include "crm_json.h"
#include "crm_operations.h"
#include "crm_rest.h"
#include "crm_type_address.h"
#include "crm_type_list.h"
#include "parties.h"

#define ITEMS_MAX 200           /* specification, Limits */

/* An item of the body's array "contacts" or "companies". */
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
    const crm_party_kind_t *kind;
    const char *bot_id;
    const char *on_tags;        /* "replace", "union": what a match does with
                                   those that it has; NULL: "replace" */
    const char *on_fields;      /* "replace", "merge" */
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

static const char *const tags_modes[] = {"replace", "union", NULL};
static const char *const fields_modes[] = {"replace", "merge", NULL};

/* The members of "on_match" (contract 20.4). */
static const crm_field_t modes[] = {
    {.name = "tags", .type = &crm_type_enum, .values = tags_modes},
    {.name = "custom_fields", .type = &crm_type_enum, .values = fields_modes},
    {.name = NULL}
};

/* Read VALUE, the member "on_match", into UPSERT. */
static void read_modes(upsert_t *upsert, crm_input_t *input,
                       json_object *value)
{
    if (!value) {
        return;
    }
    if (!json_object_is_type(value, json_type_object)) {
        crm_input_error(input, "on_match", "must be an object");
        return;
    }
    json_object_object_foreach(value, name, mode) {
        const char *path = apr_pstrcat(input->pool, "on_match.", name, NULL);

        if (!strcmp(name, modes[0].name)) {
            crm_type_parse(&upsert->on_tags, input, &modes[0], path, mode);
        }
        else if (!strcmp(name, modes[1].name)) {
            crm_type_parse(&upsert->on_fields, input, &modes[1], path, mode);
        }
        else {
            crm_input_unknown(input, path, name, modes, NULL);
        }
    }
}

/* Check that ITEMS, the member NAME, is an array that is not too long. */
static void check_items(crm_input_t *input, const char *name,
                        json_object *items)
{
    if (!items) {
        crm_input_error(input, name, "is required");
    }
    else if (!json_object_is_type(items, json_type_array)) {
        crm_input_error(input, name, "must be an array");
    }
    else if (json_object_array_length(items) > ITEMS_MAX) {
        crm_input_error(input, name, "must have at most 200 items");
    }
}

/* Read the members of the request into *UPSERT and set *ITEMS_P to the array of
 * items. */
static crm_error_t *read_request(upsert_t *upsert, json_object **items_p)
{
    const char *const names[] = {
        "bot_id", "on_match", upsert->kind->list, NULL
    };
    crm_input_t input;
    json_object *body;
    int has_bot = 0;

    CRM_ERR(crm_rest_body(&body, &input, upsert->call));
    json_object_object_foreach(body, name, value) {
        if (!strcmp(name, "bot_id")) {
            has_bot = 1;
            crm_type_parse(&upsert->bot_id, &input, &bot_field, name, value);
        }
        else if (!strcmp(name, "on_match")) {
            read_modes(upsert, &input, value);
        }
        else if (!strcmp(name, upsert->kind->list)) {
            *items_p = value;
        }
        else {
            crm_input_unknown(&input, name, name, NULL, names);
        }
    }
    if (!has_bot) {
        crm_input_error(&input, "bot_id", "is required");
    }
    check_items(&input, upsert->kind->list, *items_p);
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
    item->prefix = apr_psprintf(pool, "%s[%d].", upsert->kind->list, index);
    item->identity = -1;
    if (!json_object_is_type(value, json_type_object)) {
        crm_input_error(&item->input, apr_psprintf(pool, "%s[%d]",
                                                   upsert->kind->list, index),
                        "must be an object");
        return;
    }
    read_owner(upsert, item, value);
    crm_body_read(&item->values, &item->input, upsert->kind->resource, value,
                  CRM_BODY_MERGE, item->prefix);
    for (int i = 0; upsert->kind->resource->fields[i].name; i++) {
        const crm_field_t *field = &upsert->kind->resource->fields[i];

        if (field->ref && item->values.sent[i] && item->values.binds[i]) {
            add_ref(upsert, field->ref, item->values.binds[i]);
        }
    }
    item->identity = upsert->identity_count++;
    crm_identity_init(&upsert->identities[item->identity], upsert->kind,
                      &item->values, pool);
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

/* Set *BIND to the object HAVE after the merge patch *BIND (RFC 7396). */
static void merge_object(const char **bind, const char *have, apr_pool_t *pool)
{
    json_object *target = crm_json_object(have);
    json_object *patch = json_tokener_parse(*bind);

    crm_json_merge(target, patch);
    json_object_put(patch);
    *bind = crm_json_end(target, pool);
}

/* Merge the values of ITEM, whose JSON is VALUE, with those in BINDS, of what it
 * matches: its e-mails and phones before those sent (contract 10.3), and what on_match
 * says. A null in VALUE clears a list, and an invalid value has no bind. What is too
 * large then is an error of ITEM. */
static void merge_lists(const upsert_t *upsert, item_t *item,
                        const char *const *binds, json_object *value)
{
    const crm_field_t *fields = upsert->kind->resource->fields;
    apr_pool_t *pool = upsert->call->pool;

    for (int i = 0; fields[i].name; i++) {
        const char **bind = &item->values.binds[i], *sent = *bind;

        if (!sent || !json_object_object_get(value, fields[i].name)) {
            continue;
        }
        if (fields[i].type == &crm_type_emails
            || fields[i].type == &crm_type_phones) {
            crm_type_merge(bind, &fields[i], binds[i], *bind, pool);
        }
        else if (fields[i].type == &crm_type_tags && upsert->on_tags
                 && !strcmp(upsert->on_tags, "union")) {
            crm_type_merge_tags(bind, binds[i], *bind, pool);
        }
        else if (fields[i].type == &crm_type_object && upsert->on_fields
                 && !strcmp(upsert->on_fields, "merge")) {
            merge_object(bind, binds[i], pool);
        }
        if (strcmp(*bind, sent)) {
            crm_party_fits(&item->input, &fields[i], *bind, item->prefix);
        }
    }
}

/* Merge the objects in VALUES of a new row with nothing, if on_match says so: a null
 * in them removes what is not there. */
static void merge_new(const upsert_t *upsert, crm_values_t *values)
{
    const crm_field_t *fields = upsert->kind->resource->fields;

    for (int i = 0; fields[i].name; i++) {
        if (fields[i].type == &crm_type_object && values->binds[i]
            && upsert->on_fields && !strcmp(upsert->on_fields, "merge")) {
            merge_object(&values->binds[i], fields[i].type->empty,
                         upsert->call->pool);
        }
    }
}

/* Add an error to ITEM for each field that a row of UPSERT's kind must have and
 * ITEM, which makes one, does not say. */
static void require_fields(const upsert_t *upsert, item_t *item)
{
    const crm_field_t *fields = upsert->kind->resource->fields;

    for (int i = 0; fields[i].name; i++) {
        if (fields[i].flags & CRM_F_REQUIRED && !item->values.sent[i]
            && strcmp(fields[i].name, bot_field.name)) {
            crm_input_error(&item->input,
                            apr_pstrcat(upsert->call->pool, item->prefix,
                                        fields[i].name, NULL), "is required");
        }
    }
}

/* Add an error to ITEM if the external_id of IDENTITY is not free for
 * CONTACT. */
static void check_external(const upsert_t *upsert, item_t *item,
                           const crm_parties_t *parties,
                           const crm_identity_t *identity,
                           const crm_party_t *contact)
{
    if (crm_parties_taken(parties, identity, contact)) {
        crm_input_error(&item->input,
                        apr_pstrcat(parties->pool, item->prefix, "external_id",
                                    NULL),
                        crm_body_unique_rule(upsert->kind->resource,
                                             parties->pool));
    }
}

/* Set *OWNER_P to the agent of the contact that ITEM creates. Errors are added
 * to ITEM. */
static void find_owner(const char **owner_p, upsert_t *upsert,
                       crm_parties_t *parties, item_t *item)
{
    const char *rule = NULL;

    *owner_p = item->bot_id ? item->bot_id : upsert->bot_id;
    if (item->bot_input.error) {
        rule = APR_ARRAY_IDX(item->bot_input.error->details, 0,
                             crm_detail_t).message;
    }
    else if (!crm_parties_has(parties, bot_field.ref, *owner_p)) {
        rule = crm_ref_rule(bot_field.ref, parties->pool);
    }
    if (rule) {
        crm_input_error(&item->input,
                        apr_pstrcat(parties->pool, item->prefix,
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
static void do_item(upsert_t *upsert, crm_parties_t *parties, int index,
                    json_object *value)
{
    item_t *item = &upsert->items[index];
    const crm_identity_t *identity = &upsert->identities[item->identity];
    crm_party_t *contact = crm_parties_match(parties, identity);
    crm_buf_t *buf = contact ? &upsert->updated : &upsert->created;
    const char *owner = NULL;

    crm_parties_check_refs(parties, &item->input, &item->values,
                           item->prefix);
    check_external(upsert, item, parties, identity, contact);
    if (contact) {
        merge_lists(upsert, item, contact->binds, value);
    }
    else {
        merge_new(upsert, &item->values);
        require_fields(upsert, item);
        find_owner(&owner, upsert, parties, item);
    }
    if (item->input.error) {
        return;
    }
    if (contact) {
        crm_parties_update(parties, identity, contact, &item->values);
    }
    else {
        contact = crm_parties_create(parties, identity, &item->values,
                                     owner);
    }
    if (buf->len) {
        crm_buf_putc(buf, ',');
    }
    crm_party_write(buf, upsert->kind, contact);
}

static void do_items(upsert_t *upsert, crm_parties_t *parties,
                     json_object *contacts)
{
    for (int i = 0; i < upsert->count; i++) {
        if (upsert->items[i].identity >= 0) {
            do_item(upsert, parties, i,
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

/* Return whether item INDEX clears the field NAME, if there is such a field. */
static int clears(const upsert_t *upsert, int index, const char *name)
{
    const crm_resource_t *resource = upsert->kind->resource;
    const crm_field_t *field = crm_resource_field(resource, name);
    const crm_values_t *values = &upsert->items[index].values;
    long at = field ? field - resource->fields : 0;

    return field && values->sent[at]
           && (!values->binds[at] || !strcmp(values->binds[at], "[]")
               || !*values->binds[at]);
}

/* Return whether an item may remove an identity from a contact, or give it an
 * external_id, so that the next oldest contact with it matches later items. */
static int moves_identity(const upsert_t *upsert)
{
    static const char *const fields[] = {"external_id", "emails",
                                         "phone_numbers", "domain"};

    for (int i = 0; i < upsert->count; i++) {
        int identity = upsert->items[i].identity;

        if (identity < 0) {
            continue;
        }
        for (size_t f = 0; f < CRM_NELTS(fields); f++) {
            if (clears(upsert, i, fields[f])) {
                return 1;
            }
        }
        if (upsert->identities[identity].texts[CRM_IDENTITY_EXTERNAL]) {
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
    crm_parties_t *parties;

    CRM_ERR(crm_parties_open(&parties, call, upsert->kind,
                             upsert->identities, upsert->identity_count,
                             moves_identity(upsert) ? ITEMS_MAX : 1,
                             upsert->refs, NULL));
    if (!crm_parties_has(parties, "agent", upsert->bot_id)) {
        crm_input_error(&input, "bot_id", crm_ref_rule("agent", call->pool));
        crm_parties_abandon(parties);
        return input.error;
    }
    do_items(upsert, parties, contacts);
    answer(upsert);
    return crm_parties_commit(parties, NULL, 0);
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

static crm_error_t *serve_upsert(crm_call_t *call,
                                 const crm_party_kind_t *kind)
{
    upsert_t *upsert = apr_pcalloc(call->pool, sizeof(*upsert));
    apr_array_header_t *checks = apr_array_make(call->pool, 1,
                                                sizeof(crm_check_t));
    json_object *contacts = NULL;
    crm_error_t *error;

    upsert->call = call;
    upsert->kind = kind;
    upsert->refs = apr_array_make(call->pool, 16, sizeof(crm_ref_t));
    crm_buf_init(&upsert->created, 1024, call->pool);
    crm_buf_init(&upsert->updated, 1024, call->pool);
    crm_buf_init(&upsert->errors, 256, call->pool);
    error = read_request(upsert, &contacts);
    if (upsert->bot_id) {
        crm_check_ref(checks, bot_field.ref, upsert->bot_id, bot_field.name);
    }
    if (error) {
        return crm_rest_refuse(call, error, checks);
    }
    add_ref(upsert, "agent", upsert->bot_id);
    read_items(upsert, contacts);
    return upsert->identity_count ? run(upsert, contacts)
           : run_without_items(upsert, checks);
}

crm_error_t *crm_contact_upsert(crm_call_t *call)
{
    return serve_upsert(call, &crm_party_contacts);
}

crm_error_t *crm_company_upsert(crm_call_t *call)
{
    return serve_upsert(call, &crm_party_companies);
}
