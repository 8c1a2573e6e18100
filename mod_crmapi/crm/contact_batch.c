/* SPDX-License-Identifier: Apache-2.0 */
/* contact_batch.c: finding and writing contacts in one transaction */
#include "contact_batch.h"

#include <string.h>

#include "apr_hash.h"
#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_array.h"
#include "crm_body.h"
#include "crm_op.h"
#include "crm_resources.h"
#include "crm_rest.h"
#include "crm_sql.h"
#include "crm_time.h"
#include "crm_uuid.h"

/* Columns of the look-up's rows. The contact's begin at COLUMN_FIRST. */
enum {
    COLUMN_INDEX, COLUMN_NOW, COLUMN_EMAIL_KEY, COLUMN_CONTACT_EMAIL_KEY,
    COLUMN_CONTACT_PHONE_KEY, COLUMN_FIRST
};

#define MAX_STATEMENTS 6

int crm_contact_index(const char *name)
{
    return (int)(crm_resource_field(&crm_resource_contact, name)
                 - crm_resource_contact.fields);
}

/* Return, in POOL, the primary address of LIST, a bind of crm_type_emails or
 * crm_type_phones, or NULL if LIST is empty. MEMBER is the name of the address
 * in an entry. */
static const char *primary_of(const char *list, const char *member,
                              apr_pool_t *pool)
{
    json_object *array = list ? json_tokener_parse(list) : NULL;
    size_t count = array ? json_object_array_length(array) : 0;
    const char *primary = NULL;

    for (size_t i = 0; i < count; i++) {
        json_object *entry = json_object_array_get_idx(array, i);

        if (json_object_get_boolean(json_object_object_get(entry,
                                                           "is_primary"))) {
            primary = apr_pstrdup(pool, json_object_get_string(
                                      json_object_object_get(entry, member)));
        }
    }
    json_object_put(array);
    return primary;
}

/* Return the key that PHONE is matched by: its digits and a leading '+'
 * (contract 9.2). crmapi.contact.phone_key is computed in the same way. */
static const char *phone_key(const char *phone, apr_pool_t *pool)
{
    char *key = apr_palloc(pool, strlen(phone) + 1);
    char *out = key;

    while (apr_isspace(*phone)) {
        phone++;
    }
    if (*phone == '+') {
        *out++ = '+';
    }
    for (; *phone; phone++) {
        if (apr_isdigit(*phone)) {
            *out++ = *phone;
        }
    }
    *out = '\0';
    return key;
}

void crm_identity_init(crm_identity_t *identity, const crm_values_t *values,
                       apr_pool_t *pool)
{
    memset(identity, 0, sizeof(*identity));
    identity->email = primary_of(values->binds[crm_contact_index("emails")],
                                 "email", pool);
    identity->phone =
        primary_of(values->binds[crm_contact_index("phone_numbers")],
                   "phone_number", pool);
    if (identity->phone) {
        identity->phone_key = phone_key(identity->phone, pool);
    }
    identity->matches = apr_array_make(pool, 2, sizeof(crm_contact_t *));
}

/* Return the e-mails (PHONES: the phone keys) of the COUNT IDENTITIES as a
 * text[], null where there is none. */
static const char *identity_array(const crm_identity_t *identities, int count,
                                  int phones, apr_pool_t *pool)
{
    apr_array_header_t *texts = apr_array_make(pool, count,
                                               sizeof(const char *));

    for (int i = 0; i < count; i++) {
        APR_ARRAY_PUSH(texts, const char *) = phones
                                              ? identities[i].phone_key
                                              : identities[i].email;
    }
    return crm_sql_array(texts, pool);
}

/* Make the statement that takes the advisory locks of all identities. They are
 * taken in the order of their numbers, so that batches cannot deadlock. */
static void make_locks(crm_sql_t *sql, crm_call_t *call, const char *emails,
                       const char *phones, const char *lock)
{
    crm_sql_init(sql, call->pool);
    crm_sql_template(sql, "SELECT pg_advisory_xact_lock(l.h) FROM (SELECT"
                     " DISTINCT hashtextextended(? || k.name, 0) AS h FROM"
                     " (", call->key.workspace_id, "text");
    crm_sql_template(sql, "SELECT ':e:' || crmapi.fold(e) FROM unnest(?) e",
                     emails, "text[]");
    crm_sql_template(sql, " UNION SELECT ':p:' || p FROM unnest(?) p",
                     phones, "text[]");
    crm_sql_template(sql, " UNION SELECT ':x:' || ?) k(name) WHERE k.name"
                     " IS NOT NULL ORDER BY h) l", lock, "text");
}

/* Make the statement that looks up contacts. It returns a row for each identity
 * and contact that matches it; an identity without a match has a row without a
 * contact. The contacts are locked against updates, in the order of their ids.
 * No row is returned if the key does not permit the operation. */
static void make_look_up(crm_sql_t *sql, crm_call_t *call, const char *emails,
                         const char *phones, int depth)
{
    const char *limit = apr_itoa(call->pool, depth);

    crm_rest_sql(sql, call);
    crm_sql_add(sql, "WITH w AS MATERIALIZED (SELECT u.i, crmapi.fold(u.e)"
                " AS e, u.p FROM unnest(");
    crm_sql_bind(sql, emails, "text[]");
    crm_sql_add(sql, ", ");
    crm_sql_bind(sql, phones, "text[]");
    crm_sql_add(sql, ") WITH ORDINALITY u(e, p, i)),"
                " m AS MATERIALIZED (SELECT w.i, w.e, ARRAY(SELECT c.id"
                " FROM crmapi.contact c WHERE c.workspace_id = $1::uuid"
                " AND c.email_key = w.e ORDER BY c.created_at, c.id");
    crm_sql_template(sql, " LIMIT ?) || ARRAY(SELECT c.id FROM crmapi.contact"
                     " c WHERE c.workspace_id = $1::uuid AND c.phone_key ="
                     " w.p ORDER BY c.created_at, c.id", limit, "integer");
    crm_sql_template(sql, " LIMIT ?) AS ids FROM w),", limit, "integer");
    crm_sql_add(sql, " t AS MATERIALIZED (SELECT c.* FROM crmapi.contact c"
                " WHERE c.workspace_id = $1::uuid AND c.id = ANY (ARRAY("
                "SELECT unnest(m.ids) FROM m)) ORDER BY c.id"
                " FOR NO KEY UPDATE)"
                " SELECT m.i, date_trunc('milliseconds', clock_timestamp()),"
                " m.e, t.email_key, t.phone_key, ");
    crm_sql_adds(sql, crm_shape_of(&crm_resource_contact)->columns,
                 " FROM m LEFT JOIN t ON t.id = ANY (m.ids) WHERE ", NULL);
    crm_rest_permit(sql, call);
    crm_sql_add(sql, " ORDER BY m.i, t.created_at, t.id");
}

/* Make the statement that returns "ref:id" for each of REFS that exists. */
static void make_refs(crm_sql_t *sql, crm_call_t *call,
                      const apr_array_header_t *refs)
{
    static const char *const names[] = {"agent", "company", "pipeline_stage"};

    crm_sql_init(sql, call->pool);
    for (size_t n = 0; n < CRM_NELTS(names); n++) {
        apr_array_header_t *ids = apr_array_make(call->pool, 4,
                                                 sizeof(const char *));

        for (int i = 0; i < refs->nelts; i++) {
            const crm_ref_t *ref = &APR_ARRAY_IDX(refs, i, crm_ref_t);

            if (!strcmp(ref->ref, names[n])) {
                APR_ARRAY_PUSH(ids, const char *) = ref->id;
            }
        }
        crm_sql_adds(sql, n ? " UNION ALL " : "", "SELECT '", names[n],
                     ":' || r.id FROM crmapi.", names[n], " r WHERE", NULL);
        crm_sql_template(sql, " r.workspace_id = ?", call->key.workspace_id,
                         "uuid");
        crm_sql_template(sql, " AND r.id = ANY (?)",
                         crm_sql_array(ids, call->pool), "uuid[]");
    }
}

/* Return an array of binds for all fields of a contact, hidden ones
 * included. */
static const char **new_binds(apr_pool_t *pool)
{
    return apr_pcalloc(pool, (size_t)crm_resource_fields(&crm_resource_contact)
                       * sizeof(const char *));
}

/* Return a contact made from ROW of the look-up's RESULT. */
static crm_contact_t *read_contact(const PGresult *result, int row,
                                   apr_pool_t *pool)
{
    const crm_shape_t *shape = crm_shape_of(&crm_resource_contact);
    crm_contact_t *contact = apr_pcalloc(pool, sizeof(*contact));
    char *created_at = apr_palloc(pool, CRM_TIME_SIZE);
    char *updated_at = apr_palloc(pool, CRM_TIME_SIZE);

    contact->binds = new_binds(pool);
    for (int i = 0; i < shape->count; i++) {
        contact->binds[shape->indexes[i]] = crm_db_value(result, row,
                                                         COLUMN_FIRST + i);
    }
    contact->id = contact->binds[crm_contact_index("id")];
    crm_time_from_pg(created_at,
                     contact->binds[crm_contact_index("created_at")]);
    crm_time_from_pg(updated_at,
                     contact->binds[crm_contact_index("updated_at")]);
    contact->created_at = created_at;
    contact->updated_at = updated_at;
    contact->email_key = crm_db_value(result, row, COLUMN_CONTACT_EMAIL_KEY);
    contact->phone_key = crm_db_value(result, row, COLUMN_CONTACT_PHONE_KEY);
    return contact;
}

/* Return the contact in ROW of the look-up's RESULT, NULL if it has none. */
static crm_contact_t *row_contact(crm_contact_batch_t *batch,
                                  const PGresult *result, int row)
{
    const char *id = crm_db_value(result, row, COLUMN_FIRST);
    crm_contact_t *contact;

    if (!id) {
        return NULL;
    }
    contact = apr_hash_get(batch->by_id, id, APR_HASH_KEY_STRING);
    if (!contact) {
        contact = read_contact(result, row, batch->pool);
        apr_hash_set(batch->by_id, contact->id, APR_HASH_KEY_STRING, contact);
        APR_ARRAY_PUSH(batch->contacts, crm_contact_t *) = contact;
    }
    return contact;
}

/* Read the look-up's RESULT into BATCH and IDENTITIES. */
static void read_look_up(crm_contact_batch_t *batch,
                         crm_identity_t *identities, const PGresult *result)
{
    char *now = apr_palloc(batch->pool, CRM_TIME_SIZE);

    crm_time_from_pg(now, PQgetvalue(result, 0, COLUMN_NOW));
    batch->now = now;
    for (int row = 0; row < PQntuples(result); row++) {
        crm_identity_t *identity = identities
                              + apr_atoi64(PQgetvalue(result, row,
                                                    COLUMN_INDEX)) - 1;
        crm_contact_t *contact = row_contact(batch, result, row);

        identity->email_key = crm_db_value(result, row, COLUMN_EMAIL_KEY);
        if (contact) {
            APR_ARRAY_PUSH(identity->matches, crm_contact_t *) = contact;
        }
    }
}

/* Run the COUNT statements SQLS of CALL in one round trip. */
static crm_error_t *pipeline(PGresult **results, crm_call_t *call,
                             crm_sql_t **sqls, int count)
{
    crm_stmt_t stmts[MAX_STATEMENTS + 2];
    apr_time_t start;
    crm_error_t *error;
    crm_conn_t *conn;

    CRM_ERR(crm_call_conn(&conn, call));
    for (int i = 0; i < count; i++) {
        crm_sql_stmt(&stmts[i], sqls[i]);
    }
    start = apr_time_now();
    error = crm_db_pipeline(results, conn, stmts, count, call->pool);
    crm_call_count(call, start);
    return error;
}

/* Set SQL to the command TEXT. */
static void make_command(crm_sql_t *sql, const char *text, apr_pool_t *pool)
{
    crm_sql_init(sql, pool);
    crm_sql_add(sql, text);
}

static crm_contact_batch_t *new_batch(crm_call_t *call)
{
    crm_contact_batch_t *batch = apr_pcalloc(call->pool, sizeof(*batch));

    batch->call = call;
    batch->pool = call->pool;
    batch->by_id = apr_hash_make(call->pool);
    batch->touched = apr_array_make(call->pool, 8, sizeof(crm_contact_t *));
    batch->refs = apr_hash_make(call->pool);
    batch->contacts = apr_array_make(call->pool, 8, sizeof(crm_contact_t *));
    return batch;
}

crm_error_t *crm_contact_batch_open(crm_contact_batch_t **batch_p,
                                    crm_call_t *call,
                                    crm_identity_t *identities,
                                    int count, int depth,
                                    const apr_array_header_t *refs,
                                    crm_contact_more_t *more)
{
    crm_contact_batch_t *batch = new_batch(call);
    const char *emails = identity_array(identities, count, 0, call->pool);
    const char *phones = identity_array(identities, count, 1, call->pool);
    PGresult *results[MAX_STATEMENTS];
    crm_sql_t begin, locks, existing, look_up;
    crm_sql_t *sqls[MAX_STATEMENTS] = {&begin, &locks, &existing, &look_up};
    int last = 3;
    crm_error_t *error;

    make_command(&begin, "BEGIN", call->pool);
    make_locks(&locks, call, emails, phones, more ? more->lock : NULL);
    make_refs(&existing, call, refs);
    make_look_up(&look_up, call, emails, phones, depth);
    if (more) {
        sqls[++last] = &more->sql;
    }
    CRM_ERR(pipeline(results, call, sqls, last + 1));
    if (!PQntuples(results[3])) {
        crm_db_rollback(call->conn);
        error = crm_rest_refuse(call, NULL, NULL);
        return error ? error : crm_error_create(CRM_E_UNAVAILABLE, NULL,
                                                call->pool);
    }
    for (int row = 0; row < PQntuples(results[2]); row++) {
        const char *name = PQgetvalue(results[2], row, 0);

        apr_hash_set(batch->refs, name, APR_HASH_KEY_STRING, name);
    }
    read_look_up(batch, identities, results[3]);
    if (more) {
        more->result = results[last];
    }
    *batch_p = batch;
    return NULL;
}

int crm_contact_batch_has(const crm_contact_batch_t *batch, const char *ref,
                          const char *id)
{
    return apr_hash_get(batch->refs, apr_pstrcat(batch->pool, ref, ":", id,
                                                 NULL),
                        APR_HASH_KEY_STRING) != NULL;
}

int crm_contact_batch_check_refs(crm_contact_batch_t *batch, crm_input_t *input,
                                 const crm_values_t *values, const char *prefix)
{
    const crm_field_t *field = crm_resource_contact.fields;
    int missed = 0;

    for (int i = 0; field[i].name; i++) {
        if (field[i].ref && values->sent[i] && values->binds[i]
            && !crm_contact_batch_has(batch, field[i].ref,
                                      values->binds[i])) {
            crm_input_error(input, apr_pstrcat(batch->pool, prefix,
                                               field[i].name, NULL),
                            crm_ref_rule(field[i].ref, batch->pool));
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
static crm_contact_t *older(crm_contact_t *a, crm_contact_t *b)
{
    int order;

    if (!a || !b) {
        return a ? a : b;
    }
    order = strcmp(a->created_at, b->created_at);
    return order < 0 || (!order && strcmp(a->id, b->id) < 0) ? a : b;
}

/* Return the oldest contact that now has IDENTITY's e-mail (PHONES: phone): one
 * from the database that still has it, or one that got it in BATCH. */
static crm_contact_t *oldest(crm_contact_batch_t *batch,
                             const crm_identity_t *identity, int phones)
{
    const char *key = phones ? identity->phone_key : identity->email_key;
    crm_contact_t *match = NULL;

    if (!key) {
        return NULL;
    }
    for (int i = 0; i < identity->matches->nelts && !match; i++) {
        crm_contact_t *contact = APR_ARRAY_IDX(identity->matches, i,
                                               crm_contact_t *);

        if (same(phones ? contact->phone_key : contact->email_key, key)) {
            match = contact;
        }
    }
    for (int i = 0; i < batch->touched->nelts; i++) {
        crm_contact_t *contact = APR_ARRAY_IDX(batch->touched, i,
                                               crm_contact_t *);

        if (same(phones ? contact->phone_key : contact->email_key, key)) {
            match = older(match, contact);
        }
    }
    return match;
}

crm_contact_t *crm_contact_batch_match(crm_contact_batch_t *batch,
                                       const crm_identity_t *identity)
{
    crm_contact_t *contact = oldest(batch, identity, 0);

    return contact ? contact : oldest(batch, identity, 1);
}

/* Set CONTACT's keys after IDENTITY's lists were merged into it. If CONTACT had
 * no primary e-mail before, the new one is IDENTITY's. */
static void identify(crm_contact_batch_t *batch,
                     const crm_identity_t *identity, crm_contact_t *contact)
{
    const char *email = primary_of(contact->binds[crm_contact_index("emails")],
                                   "email", batch->pool);
    const char *phone =
        primary_of(contact->binds[crm_contact_index("phone_numbers")],
                   "phone_number", batch->pool);

    if (!email || !contact->email_key) {
        contact->email_key = email ? identity->email_key : NULL;
    }
    contact->phone_key = phone ? phone_key(phone, batch->pool) : NULL;
    APR_ARRAY_PUSH(batch->touched, crm_contact_t *) = contact;
}

crm_contact_t *crm_contact_batch_create(crm_contact_batch_t *batch,
                                        const crm_identity_t *identity,
                                        const crm_values_t *values,
                                        const char *bot_id)
{
    const crm_field_t *fields = crm_resource_contact.fields;
    crm_contact_t *contact = apr_pcalloc(batch->pool, sizeof(*contact));
    char *id = apr_palloc(batch->pool, CRM_UUID_LEN + 1);

    crm_uuid_v7(id);
    contact->id = id;
    contact->is_new = 1;
    contact->created_at = contact->updated_at = batch->now;
    contact->binds = new_binds(batch->pool);
    for (int i = 0; fields[i].name; i++) {
        contact->binds[i] = values->sent[i] ? values->binds[i] : NULL;
        if (!contact->binds[i] && !(fields[i].flags & CRM_F_NULLABLE)) {
            contact->binds[i] = fields[i].type->empty;
        }
    }
    contact->binds[crm_contact_index("id")] = id;
    contact->binds[crm_contact_index("workspace_id")] =
        batch->call->key.workspace_id;
    contact->binds[crm_contact_index("bot_id")] = bot_id;
    contact->binds[crm_contact_index("created_at")] = batch->now;
    contact->binds[crm_contact_index("updated_at")] = batch->now;
    APR_ARRAY_PUSH(batch->contacts, crm_contact_t *) = contact;
    identify(batch, identity, contact);
    return contact;
}

int crm_contact_fits(crm_input_t *input, const crm_values_t *values,
                     const char *prefix)
{
    static const char *const grown[] = {"notes", "custom_fields", "tags",
                                        "emails", "phone_numbers"};
    int before = crm_input_errors(input);

    for (size_t i = 0; i < CRM_NELTS(grown); i++) {
        int index = crm_contact_index(grown[i]);
        const crm_field_t *field = &crm_resource_contact.fields[index];
        const char *bind = values->binds[index];
        json_object *value;
        crm_buf_t json;

        if (!values->sent[index] || !bind) {
            continue;
        }
        crm_buf_init(&json, 256, input->pool);
        crm_type_write(&json, field, bind, strlen(bind));
        crm_buf_putc(&json, '\0');
        value = json_tokener_parse(json.data);
        crm_type_parse(&bind, input, field,
                       apr_pstrcat(input->pool, prefix, grown[i], NULL),
                       value);
        json_object_put(value);
    }
    return crm_input_errors(input) == before;
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

void crm_contact_batch_update(crm_contact_batch_t *batch,
                              const crm_identity_t *identity,
                              crm_contact_t *contact,
                              const crm_values_t *values)
{
    const crm_field_t *fields = crm_resource_contact.fields;
    int changed = 0;

    for (int i = 0; fields[i].name; i++) {
        if (values->sent[i] && (fields[i].flags & CRM_F_UPDATE)
            && !crm_type_equal(&fields[i], contact->binds[i],
                               values->binds[i], batch->pool)) {
            contact->binds[i] = values->binds[i];
            changed = 1;
        }
    }
    if (!changed) {
        return;
    }
    contact->changed = 1;
    contact->updated_at = later(batch->now, contact->updated_at, batch->pool);
    contact->binds[crm_contact_index("updated_at")] = contact->updated_at;
    identify(batch, identity, contact);
}

void crm_contact_write(crm_buf_t *buf, const crm_contact_t *contact)
{
    const crm_shape_t *shape = crm_shape_of(&crm_resource_contact);

    crm_buf_putc(buf, '{');
    for (int i = 0; i < shape->count; i++) {
        const char *text = contact->binds[shape->indexes[i]];

        crm_buf_add(buf, shape->keys[i], shape->key_lens[i]);
        crm_type_write(buf, shape->fields[i], text, text ? strlen(text) : 0);
    }
    crm_buf_putc(buf, '}');
}

/* Return the contacts of BATCH to insert (NEW) or to update, as a JSON array.
 * Return NULL if there are none. */
static const char *contacts_json(crm_contact_batch_t *batch, int new)
{
    crm_buf_t buf;
    int count = 0;

    crm_buf_init(&buf, 4096, batch->pool);
    for (int i = 0; i < batch->contacts->nelts; i++) {
        const crm_contact_t *contact = APR_ARRAY_IDX(batch->contacts, i,
                                                     crm_contact_t *);

        if (new ? contact->is_new : contact->changed && !contact->is_new) {
            crm_buf_putc(&buf, count++ ? ',' : '[');
            crm_contact_write(&buf, contact);
        }
    }
    crm_buf_puts(&buf, "]");
    crm_buf_putc(&buf, '\0');
    return count ? buf.data : NULL;
}

/* Return whether an insert (NEW) or an update writes FIELD. Hidden fields are
 * not loaded here: they keep their values or defaults. */
static int is_written(const crm_field_t *field, int new)
{
    return !(field->flags & CRM_F_HIDDEN)
           && ((field->flags & (new ? CRM_F_CREATE : CRM_F_UPDATE))
               || !strcmp(field->name, "updated_at")
               || (new && !strcmp(field->name, "created_at")));
}

/* Add the written fields to SQL. FORM "=" adds assignments, ":" names and SQL
 * types, anything else is a prefix of the names. */
static void add_fields(crm_sql_t *sql, int new, const char *form)
{
    for (const crm_field_t *field = crm_resource_contact.fields; field->name;
         field++) {
        if (!is_written(field, new)) {
            continue;
        }
        if (*form == '=') {
            crm_sql_adds(sql, ", ", field->name, " = r.", field->name, NULL);
        }
        else if (*form == ':') {
            crm_sql_adds(sql, ", ", field->name, " ", field->type->cast,
                         NULL);
        }
        else {
            crm_sql_adds(sql, ", ", form, field->name, NULL);
        }
    }
}

/* Add " FROM" and the rows of JSON as r. */
static void add_records(crm_sql_t *sql, int new, const char *json)
{
    crm_sql_template(sql, " FROM jsonb_to_recordset(?) AS r(id uuid", json,
                     "jsonb");
    add_fields(sql, new, ":");
    crm_sql_add(sql, ")");
}

static void make_insert(crm_sql_t *sql, crm_contact_batch_t *batch,
                        const char *json)
{
    crm_sql_init(sql, batch->pool);
    crm_sql_add(sql, "INSERT INTO crmapi.contact (workspace_id, id");
    add_fields(sql, 1, "");
    crm_sql_template(sql, ") SELECT ?, r.id", batch->call->key.workspace_id,
                     "uuid");
    add_fields(sql, 1, "r.");
    add_records(sql, 1, json);
}

static void make_update(crm_sql_t *sql, crm_contact_batch_t *batch,
                        const char *json)
{
    crm_sql_init(sql, batch->pool);
    crm_sql_add(sql, "UPDATE crmapi.contact t SET id = t.id");
    add_fields(sql, 0, "=");
    add_records(sql, 0, json);
    crm_sql_template(sql, " WHERE t.workspace_id = ? AND t.id = r.id",
                     batch->call->key.workspace_id, "uuid");
}

crm_error_t *crm_contact_batch_commit(crm_contact_batch_t *batch,
                                      crm_sql_t *more, int count)
{
    const char *created = contacts_json(batch, 1);
    const char *changed = contacts_json(batch, 0);
    PGresult *results[MAX_STATEMENTS + 2];
    crm_sql_t *sqls[MAX_STATEMENTS + 2];
    crm_sql_t insert, update, commit;
    crm_error_t *error;
    int n = 0;

    if (created) {
        make_insert(&insert, batch, created);
        sqls[n++] = &insert;
    }
    if (changed) {
        make_update(&update, batch, changed);
        sqls[n++] = &update;
    }
    for (int i = 0; i < count; i++) {
        sqls[n++] = &more[i];
    }
    make_command(&commit, "COMMIT", batch->pool);
    sqls[n++] = &commit;
    error = pipeline(results, batch->call, sqls, n);
    if (error && error->sqlstate && !strcmp(error->sqlstate, "23503")) {
        /* A referenced row was deleted after the look-up: the client may try
         * again. */
        return crm_error_create(CRM_E_UNAVAILABLE, NULL, batch->pool);
    }
    return crm_op_unexplained(error);
}

void crm_contact_batch_abandon(crm_contact_batch_t *batch)
{
    crm_db_rollback(batch->call->conn);
}
