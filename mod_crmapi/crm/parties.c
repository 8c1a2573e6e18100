/* SPDX-License-Identifier: Apache-2.0 */
/* parties.c: finding and writing parties in one transaction */
#include "parties.h"

#include <string.h>

#include "apr_hash.h"
#include "apr_strings.h"

#include "crm_body.h"
#include "crm_channel.h"
#include "crm_json.h"
#include "crm_op.h"
#include "crm_rest.h"
#include "crm_sql.h"
#include "crm_time.h"
#include "crm_uuid.h"
#include "parties_sql.h"

/* The statements that open parties, in their order. */
enum { BEGIN, CLAIM, LOCKS, REFS, LOOK_UP, MORE, OPENING };

/* The maximum number of statements that close the parties: INSERT, UPDATE, three of
 * the caller, the stored response, COMMIT. */
#define CLOSING_MAX 7

void crm_identity_init(crm_identity_t *identity, const crm_party_kind_t *kind,
                       const crm_values_t *values, apr_pool_t *pool)
{
    memset(identity, 0, sizeof(*identity));
    kind->texts(identity->texts, values->binds, pool);
    identity->matches = apr_array_make(pool, 2, sizeof(crm_party_t *));
}

/* Set TEXTS to a text[] of each key of the COUNT IDENTITIES, null where there is
 * none. */
static void identity_arrays(const char *texts[CRM_IDENTITY_KEYS],
                            const crm_identity_t *identities, int count,
                            apr_pool_t *pool)
{
    for (int key = 0; key < CRM_IDENTITY_KEYS; key++) {
        apr_array_header_t *array = apr_array_make(pool, count,
                                                   sizeof(const char *));

        for (int i = 0; i < count; i++) {
            APR_ARRAY_PUSH(array, const char *) = identities[i].texts[key];
        }
        texts[key] = crm_sql_array(array, pool);
    }
}

/* Return an array of binds for all fields of PARTIES' kind, hidden ones
 * included. */
static const char **new_binds(const crm_parties_t *parties)
{
    size_t count = (size_t)crm_resource_fields(parties->kind->resource);

    return apr_pcalloc(parties->pool, count * sizeof(const char *));
}

/* Return the place of the field "suppressed" in PARTY's binds, NULL if rows of
 * PARTIES have none. */
static const char **suppressed_of(const crm_parties_t *parties,
                                  const crm_party_t *party)
{
    const crm_field_t *field = crm_resource_field(parties->kind->resource,
                                                  "suppressed");

    return field ? party->binds + (field - parties->kind->resource->fields)
           : NULL;
}

/* Note in PARTIES why the addresses KEYS are not written to: SUPPRESSED is what the
 * field "suppressed" of a contact with them has, or NULL. */
static void read_reasons(crm_parties_t *parties,
                         const char *const keys[CRM_IDENTITY_KEYS],
                         const char *suppressed)
{
    json_object *object, *reason;

    if (!suppressed || !strcmp(suppressed, "{}")) {
        return;
    }
    object = json_tokener_parse(suppressed);
    for (int key = 0; key < CRM_IDENTITY_KEYS; key++) {
        const crm_channel_t *channel = parties->kind->keys[key].channel;

        if (channel && keys[key]
            && json_object_object_get_ex(object, channel->way, &reason)) {
            apr_hash_set(parties->reasons,
                         apr_pstrcat(parties->pool, channel->way, keys[key], NULL),
                         APR_HASH_KEY_STRING,
                         apr_pstrdup(parties->pool,
                                     json_object_get_string(reason)));
        }
    }
    json_object_put(object);
}

/* Set the field "suppressed" of PARTY, if it has one, by its keys. */
static void set_suppressed(crm_parties_t *parties, crm_party_t *party)
{
    const char **bind = suppressed_of(parties, party);
    json_object *object;

    if (!bind) {
        return;
    }
    object = json_object_new_object();
    for (int key = 0; key < CRM_IDENTITY_KEYS; key++) {
        const crm_channel_t *channel = parties->kind->keys[key].channel;
        const char *reason = channel && party->keys[key]
            ? apr_hash_get(parties->reasons,
                           apr_pstrcat(parties->pool, channel->way,
                                       party->keys[key], NULL),
                           APR_HASH_KEY_STRING) : NULL;

        if (reason) {
            json_object_object_add(object, channel->way,
                                   json_object_new_string(reason));
        }
    }
    *bind = crm_json_end(object, parties->pool);
}

/* Return a party made from ROW of the look-up's RESULT. */
static crm_party_t *read_party(crm_parties_t *parties,
                               const PGresult *result, int row)
{
    const crm_shape_t *shape = crm_shape_of(parties->kind->resource);
    crm_party_t *party = apr_pcalloc(parties->pool, sizeof(*party));
    char *created_at = apr_palloc(parties->pool, CRM_TIME_SIZE);
    char *updated_at = apr_palloc(parties->pool, CRM_TIME_SIZE);

    party->binds = new_binds(parties);
    for (int i = 0; i < shape->count; i++) {
        party->binds[shape->indexes[i]] = crm_db_value(result, row,
                                                       CRM_MATCH_FIRST + i);
    }
    party->id = party->binds[crm_party_index(parties->kind, "id")];
    crm_time_from_pg(created_at, party->binds[
                         crm_party_index(parties->kind, "created_at")]);
    crm_time_from_pg(updated_at, party->binds[
                         crm_party_index(parties->kind, "updated_at")]);
    party->created_at = created_at;
    party->updated_at = updated_at;
    for (int key = 0; key < CRM_IDENTITY_KEYS; key++) {
        party->keys[key] = crm_db_value(result, row,
                                        CRM_MATCH_PARTY_KEYS + key);
    }
    party->stored = party->keys[CRM_IDENTITY_EXTERNAL];
    if (suppressed_of(parties, party)) {
        read_reasons(parties, party->keys, *suppressed_of(parties, party));
    }
    return party;
}

/* Return the party in ROW of the look-up's RESULT, NULL if it has none. */
static crm_party_t *party_of_row(crm_parties_t *parties,
                                 const PGresult *result, int row)
{
    const char *id = crm_db_value(result, row, CRM_MATCH_FIRST);
    crm_party_t *party;

    if (!id) {
        return NULL;
    }
    party = apr_hash_get(parties->by_id, id, APR_HASH_KEY_STRING);
    if (!party) {
        party = read_party(parties, result, row);
        apr_hash_set(parties->by_id, party->id, APR_HASH_KEY_STRING, party);
        APR_ARRAY_PUSH(parties->rows, crm_party_t *) = party;
    }
    return party;
}

/* Read the look-up's RESULT into PARTIES and IDENTITIES. */
static void read_look_up(crm_parties_t *parties,
                         crm_identity_t *identities, const PGresult *result)
{
    char *now = apr_palloc(parties->pool, CRM_TIME_SIZE);

    crm_time_from_pg(now, PQgetvalue(result, 0, CRM_MATCH_NOW));
    parties->now = now;
    for (int row = 0; row < PQntuples(result); row++) {
        crm_identity_t *identity = identities
                              + apr_atoi64(PQgetvalue(result, row,
                                                      CRM_MATCH_IDENTITY)) - 1;
        crm_party_t *party = party_of_row(parties, result, row);

        for (int key = 0; key < CRM_IDENTITY_KEYS; key++) {
            identity->keys[key] = crm_db_value(result, row,
                                               CRM_MATCH_KEYS + key);
        }
        read_reasons(parties, identity->keys,
                     crm_db_value(result, row, CRM_MATCH_SUPPRESSED));
        if (party) {
            APR_ARRAY_PUSH(identity->matches, crm_party_t *) = party;
        }
    }
}

/* Set SQL to the command TEXT. */
static void make_command(crm_sql_t *sql, const char *text, apr_pool_t *pool)
{
    crm_sql_init(sql, pool);
    crm_sql_add(sql, text);
}

static crm_parties_t *parties_make(crm_call_t *call,
                                   const crm_party_kind_t *kind)
{
    crm_parties_t *parties = apr_pcalloc(call->pool, sizeof(*parties));

    parties->call = call;
    parties->kind = kind;
    parties->pool = call->pool;
    parties->by_id = apr_hash_make(call->pool);
    parties->touched = apr_array_make(call->pool, 8, sizeof(crm_party_t *));
    parties->refs = apr_hash_make(call->pool);
    parties->reasons = apr_hash_make(call->pool);
    parties->rows = apr_array_make(call->pool, 8, sizeof(crm_party_t *));
    parties->changed = apr_pcalloc(call->pool, (apr_size_t)crm_resource_fields(
                                     kind->resource));
    return parties;
}

/* Run the OPENING statements SQLS, some of which are NULL, in one round trip,
 * and set RESULTS. Errors: see crm_parties_open(). */
static crm_error_t *begin_transaction(PGresult **results, crm_call_t *call,
                                      crm_sql_t *const *sqls)
{
    crm_sql_t *sent[OPENING];
    PGresult *received[OPENING];
    crm_error_t *error;
    int n = 0;

    for (int i = 0; i < OPENING; i++) {
        if (sqls[i]) {
            sent[n++] = sqls[i];
        }
    }
    CRM_ERR(crm_call_pipeline(received, call, sent, n));
    n = 0;
    for (int i = 0; i < OPENING; i++) {
        results[i] = sqls[i] ? received[n++] : NULL;
    }
    error = crm_idempotency_outcome(call, results[CLAIM]);
    if (error || !PQntuples(results[LOOK_UP])) {
        crm_db_rollback(call->conn);
        error = error ? error : crm_rest_refuse(call, NULL, NULL);
        return error ? error : crm_error_create(CRM_E_UNAVAILABLE, NULL,
                                                call->pool);
    }
    return NULL;
}

crm_error_t *crm_parties_open(crm_parties_t **parties_p,
                              crm_call_t *call,
                              const crm_party_kind_t *kind,
                              crm_identity_t *identities,
                              int count, int depth,
                              const apr_array_header_t *refs,
                              crm_parties_more_t *more)
{
    crm_parties_t *parties = parties_make(call, kind);
    const char *texts[CRM_IDENTITY_KEYS];
    crm_sql_t begin, claim, locks, existing, look_up;
    crm_sql_t *sqls[OPENING] = {&begin, NULL, &locks, &existing, &look_up,
                                more ? &more->sql : NULL};
    PGresult *results[OPENING];

    identity_arrays(texts, identities, count, call->pool);
    make_command(&begin, "BEGIN", call->pool);
    if (crm_rest(call)->idempotency) {
        crm_idempotency_claim(&claim, call);
        sqls[CLAIM] = &claim;
    }
    crm_party_sql_locks(&locks, call, kind, texts, count,
                        more ? more->lock : NULL);
    crm_party_sql_refs(&existing, call, refs);
    crm_party_sql_look_up(&look_up, call, kind, texts, identities->id,
                          depth);
    CRM_ERR(begin_transaction(results, call, sqls));
    for (int row = 0; row < PQntuples(results[REFS]); row++) {
        const char *name = PQgetvalue(results[REFS], row, 0);

        apr_hash_set(parties->refs, name, APR_HASH_KEY_STRING, name);
    }
    read_look_up(parties, identities, results[LOOK_UP]);
    if (more) {
        more->result = results[MORE];
    }
    *parties_p = parties;
    return NULL;
}

int crm_parties_has(const crm_parties_t *parties, const char *ref,
                    const char *id)
{
    return apr_hash_get(parties->refs, apr_pstrcat(parties->pool, ref, ":", id,
                                                   NULL),
                        APR_HASH_KEY_STRING) != NULL;
}

int crm_parties_check_refs(crm_parties_t *parties, crm_input_t *input,
                           const crm_values_t *values, const char *prefix)
{
    const crm_field_t *field = parties->kind->resource->fields;
    int missed = 0;

    for (int i = 0; field[i].name; i++) {
        if (field[i].ref && values->sent[i] && values->binds[i]
            && !crm_parties_has(parties, field[i].ref,
                                values->binds[i])) {
            crm_input_error(input, apr_pstrcat(parties->pool, prefix,
                                               field[i].name, NULL),
                            crm_ref_rule(field[i].ref, parties->pool));
            missed++;
        }
    }
    return missed;
}

/* Return whether A and B are equal keys, not NULL. */
static int same(const char *a, const char *b)
{
    return a && b && !strcmp(a, b);
}

/* Return the older of A and B, one of which may be NULL. */
static crm_party_t *older(crm_party_t *a, crm_party_t *b)
{
    int order;

    if (!a || !b) {
        return a ? a : b;
    }
    order = strcmp(a->created_at, b->created_at);
    return order < 0 || (!order && strcmp(a->id, b->id) < 0) ? a : b;
}

/* Return whether PARTY has now the KEY of IDENTITY, and no other external_id
 * than IDENTITY. */
static int has_key(const crm_party_t *party,
                   const crm_identity_t *identity, int key)
{
    const char *external = identity->keys[CRM_IDENTITY_EXTERNAL];

    return same(party->keys[key], identity->keys[key])
           && (!external || !party->keys[CRM_IDENTITY_EXTERNAL]
               || same(party->keys[CRM_IDENTITY_EXTERNAL], external));
}

/* Return the oldest party that now has the KEY of IDENTITY: one from the
 * database that still has it, or one that got it in PARTIES. */
static crm_party_t *oldest(crm_parties_t *parties,
                           const crm_identity_t *identity, int key)
{
    crm_party_t *match = NULL;

    for (int i = 0; i < identity->matches->nelts && !match; i++) {
        crm_party_t *party = APR_ARRAY_IDX(identity->matches, i,
                                           crm_party_t *);

        if (has_key(party, identity, key)) {
            match = party;
        }
    }
    for (int i = 0; i < parties->touched->nelts; i++) {
        crm_party_t *party = APR_ARRAY_IDX(parties->touched, i,
                                           crm_party_t *);

        if (has_key(party, identity, key)) {
            match = older(match, party);
        }
    }
    return match;
}

crm_party_t *crm_parties_match(crm_parties_t *parties,
                               const crm_identity_t *identity)
{
    crm_party_t *party = NULL;

    if (identity->id) {
        return identity->matches->nelts
               ? APR_ARRAY_IDX(identity->matches, 0, crm_party_t *) : NULL;
    }
    for (int key = 0; key < CRM_IDENTITY_KEYS && !party; key++) {
        if (identity->keys[key]) {
            party = oldest(parties, identity, key);
        }
    }
    return party;
}

int crm_parties_taken(const crm_parties_t *parties,
                      const crm_identity_t *identity,
                      const crm_party_t *party)
{
    for (int i = 0; i < parties->rows->nelts; i++) {
        const crm_party_t *other = APR_ARRAY_IDX(parties->rows, i,
                                                 crm_party_t *);

        if (other != party && same(other->stored,
                                   identity->keys[CRM_IDENTITY_EXTERNAL])) {
            return 1;
        }
    }
    return 0;
}

/* Set PARTY's keys after IDENTITY's values were merged into it: TEXTS is what PARTY
 * has now. A key that the database makes is IDENTITY's if PARTY had none, or got
 * IDENTITY's text. */
static void identify(crm_parties_t *parties, const crm_identity_t *identity,
                     crm_party_t *party,
                     const char *const texts[CRM_IDENTITY_KEYS])
{
    for (int key = 0; key < CRM_IDENTITY_KEYS; key++) {
        const crm_identity_key_t *is = &parties->kind->keys[key];

        if (!texts[key] || !is->column || !*is->fold) {
            party->keys[key] = texts[key];
        }
        else if (!party->keys[key]
                 || same(texts[key], identity->texts[key])) {
            party->keys[key] = identity->keys[key];
        }
    }
    set_suppressed(parties, party);
    APR_ARRAY_PUSH(parties->touched, crm_party_t *) = party;
}

crm_party_t *crm_parties_create(crm_parties_t *parties,
                                const crm_identity_t *identity,
                                const crm_values_t *values,
                                const char *bot_id)
{
    const crm_field_t *fields = parties->kind->resource->fields;
    crm_party_t *party = apr_pcalloc(parties->pool, sizeof(*party));
    char *id = apr_palloc(parties->pool, CRM_UUID_LEN + 1);

    crm_uuid_v7(id);
    party->id = id;
    party->is_new = 1;
    party->created_at = party->updated_at = parties->now;
    party->binds = new_binds(parties);
    for (int i = 0; fields[i].name; i++) {
        party->binds[i] = values->sent[i] ? values->binds[i] : NULL;
        if (!party->binds[i] && !(fields[i].flags & CRM_F_NULLABLE)) {
            party->binds[i] = fields[i].type->empty;
        }
    }
    party->binds[crm_party_index(parties->kind, "id")] = id;
    party->binds[crm_party_index(parties->kind, "workspace_id")] =
        parties->call->key.workspace_id;
    party->binds[crm_party_index(parties->kind, "bot_id")] = bot_id;
    party->binds[crm_party_index(parties->kind, "created_at")] = parties->now;
    party->binds[crm_party_index(parties->kind, "updated_at")] = parties->now;
    APR_ARRAY_PUSH(parties->rows, crm_party_t *) = party;
    identify(parties, identity, party, identity->texts);
    return party;
}

void crm_party_fits(crm_input_t *input, const crm_field_t *field,
                    const char *bind, const char *prefix)
{
    json_object *value = json_tokener_parse(crm_type_json(field, bind,
                                                          input->pool));

    crm_type_parse(&bind, input, field,
                   apr_pstrcat(input->pool, prefix, field->name, NULL), value);
    json_object_put(value);
}

/* Return the later of NOW and BEFORE plus one millisecond (contract 6.6). */
static const char *later(const char *now, const char *before,
                         apr_pool_t *pool)
{
    char *after = apr_palloc(pool, CRM_TIME_SIZE);
    apr_time_t when;

    if (strcmp(now, before) > 0
        || crm_time_parse(&when, before, strlen(before))) {
        return now;
    }
    crm_time_format_ms(after, when + 1000);
    return after;
}

void crm_parties_update(crm_parties_t *parties,
                        const crm_identity_t *identity,
                        crm_party_t *party,
                        const crm_values_t *values)
{
    const crm_field_t *fields = parties->kind->resource->fields;
    const char *texts[CRM_IDENTITY_KEYS];
    int changed = 0;

    for (int i = 0; fields[i].name; i++) {
        if (values->sent[i] && (fields[i].flags & CRM_F_UPDATE)
            && !crm_type_equal(&fields[i], party->binds[i],
                               values->binds[i], parties->pool)) {
            party->binds[i] = values->binds[i];
            parties->changed[i] |= !party->is_new;
            changed = 1;
        }
    }
    if (!changed) {
        return;
    }
    party->changed = 1;
    parties->changed[crm_party_index(parties->kind, "updated_at")] = 1;
    party->updated_at = later(parties->now, party->updated_at, parties->pool);
    party->binds[crm_party_index(parties->kind, "updated_at")] = party->updated_at;
    parties->kind->texts(texts, party->binds, parties->pool);
    identify(parties, identity, party, texts);
}

void crm_party_write(crm_buf_t *buf, const crm_party_kind_t *kind,
                     const crm_party_t *party)
{
    const crm_shape_t *shape = crm_shape_of(kind->resource);

    crm_buf_putc(buf, '{');
    for (int i = 0; i < shape->count; i++) {
        const char *text = party->binds[shape->indexes[i]];

        crm_buf_add(buf, shape->keys[i], shape->key_lens[i]);
        crm_type_write(buf, shape->fields[i], text, text ? strlen(text) : 0);
    }
    crm_buf_putc(buf, '}');
}

crm_error_t *crm_parties_commit(crm_parties_t *parties,
                                crm_sql_t *more, int count)
{
    PGresult *results[CLOSING_MAX];
    crm_sql_t *sqls[CLOSING_MAX];
    crm_sql_t insert, update, keep, commit;
    crm_error_t *error;
    int n = 0;

    if (crm_party_sql_insert(&insert, parties)) {
        sqls[n++] = &insert;
    }
    if (crm_party_sql_update(&update, parties)) {
        sqls[n++] = &update;
    }
    for (int i = 0; i < count; i++) {
        sqls[n++] = &more[i];
    }
    if (crm_rest(parties->call)->idempotency) {
        error = crm_idempotency_keep_response(&keep, parties->call);
        if (error) {
            crm_parties_abandon(parties);
            return error;
        }
        sqls[n++] = &keep;
    }
    make_command(&commit, "COMMIT", parties->pool);
    sqls[n++] = &commit;
    error = crm_call_pipeline(results, parties->call, sqls, n);
    error = crm_idempotency_raced(parties->call, error);
    if (crm_error_is(error, "23503") || crm_error_is(error, "23505")) {
        /* A referenced row was deleted after the look-up, or another request
         * has used an external_id: the client may retry. */
        return crm_error_create(CRM_E_UNAVAILABLE, NULL, parties->pool);
    }
    return crm_op_unexplained(error);
}

void crm_parties_abandon(crm_parties_t *parties)
{
    crm_db_rollback(parties->call->conn);
}
