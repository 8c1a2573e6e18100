/* SPDX-License-Identifier: Apache-2.0 */
/* sequence_start.c: POST /sequences/start (contract 11.1 to 11.6) */
#include <string.h>

#include "apr_strings.h"

#include "crm_body.h"
#include "crm_json.h"
#include "crm_operations.h"
#include "crm_phone.h"
#include "crm_resources.h"
#include "crm_rest.h"
#include "crm_text.h"
#include "crm_type_address.h"
#include "crm_type_list.h"
#include "crm_uuid.h"
#include "parties.h"

/* The members of the request except "contact", in the order of the
 * specification, and an extension: the id of the contact. */
static const crm_field_t fields[] = {
    {.name = "template_id", .type = &crm_type_ref,
     .ref = "sequence_template"},
    {.name = "bot_id", .type = &crm_type_ref, .flags = CRM_F_NULLABLE,
     .ref = "agent"},
    {.name = "auto_approve", .type = &crm_type_boolean,
     .flags = CRM_F_NULLABLE},
    {.name = "idempotency_key", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE, .max = 255},
    {.name = "name", .type = &crm_type_text, .flags = CRM_F_NULLABLE},
    {.name = "contact_id", .type = &crm_type_ref, .flags = CRM_F_NULLABLE,
     .ref = "contact"},
    {.name = NULL}
};

enum {
    TEMPLATE_ID, BOT_ID, AUTO_APPROVE, IDEMPOTENCY_KEY, NAME, CONTACT_ID, FIELDS
};

/* The members of "contact" (specification). */
static const char *const contact_members[] = {
    "emails", "phone_numbers", "first_name", "last_name", "company",
    "job_title", "lead_source", "notes", "custom_fields", "tags", NULL
};

/* The state of a request. */
typedef struct start_t {
    crm_call_t *call;
    apr_pool_t *pool;
    crm_input_t input;
    int missing;                /* a required member is missing: 400, not 422 */
    unsigned char sent[FIELDS]; /* 1: sent and not null, valid or not */
    const char *binds[FIELDS];
    crm_values_t values;        /* values of the contact */
    crm_identity_t identity;
    const char *template_bot;   /* the template's agent, or NULL */
    const char *template_name;
} start_t;

/* Columns of the result of make_query(). */
enum {
    COLUMN_TEMPLATE, COLUMN_TEMPLATE_BOT, COLUMN_TEMPLATE_NAME,
    COLUMN_SEQUENCE, COLUMN_ENROLLMENT, COLUMN_CONTACT, COLUMN_ACTION,
    COLUMN_AUTO_APPROVE, COLUMN_STATUS, COLUMN_TODAY
};

/* ---- reading ---- */

static void require(start_t *start, const char *name, int present,
                    const char *rule)
{
    if (!present) {
        start->missing = 1;
        crm_input_error(&start->input, name, rule);
    }
}

/* Return whether TEXT is a number in its E.164 form. */
static int is_e164(const start_t *start, const char *text)
{
    const char *number = crm_phone_e164(text, start->pool);

    return number && !strcmp(number, text);
}

/* Check that phones are in their E.164 form (contract 11.5). Entries may be
 * strings or, as in other requests, objects. */
static void check_phones(start_t *start, json_object *phones)
{
    size_t count = crm_json_count(phones);

    for (size_t i = 0; i < count; i++) {
        json_object *entry = json_object_array_get_idx(phones, i);
        const char *rule = NULL, *member = "", *text;

        if (json_object_is_type(entry, json_type_object)) {
            entry = json_object_object_get(entry, "phone_number");
            member = ".phone_number";
        }
        text = crm_json_text(entry);
        if (text) {
            /* other errors are reported by the field's type */
            rule = crm_text_phone(text, strlen(text)) || is_e164(start, text)
                   ? NULL
                   : "must be an E.164 number, for example +14155550123";
        }
        if (rule) {
            crm_input_error(&start->input,
                            apr_psprintf(start->pool,
                                         "contact.phone_numbers[%d]%s",
                                         (int)i, member), rule);
        }
    }
}

static int is_contact_member(const char *name)
{
    for (const char *const *member = contact_members; *member; member++) {
        if (!strcmp(*member, name)) {
            return 1;
        }
    }
    return 0;
}

static apr_status_t put_object(void *object)
{
    json_object_put(object);
    return APR_SUCCESS;
}

/* Return an empty object in START's pool. */
static json_object *no_members(const start_t *start)
{
    json_object *object = json_object_new_object();

    apr_pool_cleanup_register(start->pool, object, put_object,
                              apr_pool_cleanup_null);
    return object;
}

/* Return, in START's pool, the known members of CONTACT that are not null: a
 * null overwrites nothing (contract 11.5). Unknown members are errors. */
static json_object *take_members(start_t *start, json_object *contact)
{
    json_object *taken = no_members(start);

    json_object_object_foreach(contact, name, value) {
        if (is_contact_member(name)) {
            if (value) {
                json_object_object_add(taken, name, json_object_get(value));
            }
        }
        else {
            crm_input_unknown(&start->input,
                              apr_pstrcat(start->pool, "contact.", name, NULL),
                              name, NULL, contact_members);
        }
    }
    return taken;
}

/* Return whether CONTACT's list NAME has no address. A list that is invalid,
 * and so has no BIND, already has an error and is not empty. */
static int is_empty(json_object *contact, const char *name, const char *bind)
{
    return !json_object_object_get(contact, name)
           || (bind && !strcmp(bind, "[]"));
}

/* Read CONTACT. Its addresses find the contact, unless the request has the
 * contact's id. */
static void read_contact(start_t *start, json_object *contact)
{
    const char *emails, *phones;

    if (!json_object_is_type(contact, json_type_object)) {
        crm_input_error(&start->input, "contact", "must be an object");
        return;
    }
    contact = take_members(start, contact);
    check_phones(start, json_object_object_get(contact, "phone_numbers"));
    crm_body_read(&start->values, &start->input, &crm_resource_contact,
                  contact, CRM_BODY_MERGE, "contact.");
    emails = start->values.binds[crm_contact_index("emails")];
    phones = start->values.binds[crm_contact_index("phone_numbers")];
    if (!start->sent[CONTACT_ID] && is_empty(contact, "emails", emails)
        && is_empty(contact, "phone_numbers", phones)) {
        crm_input_error(&start->input, "contact",
                        "must have an e-mail or a phone number");
    }
    crm_identity_init(&start->identity, &crm_party_contacts, &start->values,
                      start->pool);
    start->identity.id = start->binds[CONTACT_ID];
    if (start->identity.texts[CRM_IDENTITY_EMAIL]) {
        /* Phones are "used for matching when no email is given"
         * (specification). If both matched, a new e-mail address could enroll
         * an existing contact, and the messages would go to its old address. */
        start->identity.texts[CRM_IDENTITY_PHONE] = NULL;
    }
}

/* Return the index of the member NAME, FIELDS if it is unknown. */
static int member_index(const char *name)
{
    int i = 0;

    while (i < FIELDS && strcmp(fields[i].name, name)) {
        i++;
    }
    return i;
}

/* Read BODY. Return a 400 or 422 (contract 8.2), or NULL. */
static crm_error_t *read_start(start_t *start, json_object *body)
{
    static const char *const contact_name[] = {"contact", NULL};
    json_object *contact = json_object_object_get(body, contact_name[0]);

    json_object_object_foreach(body, name, value) {
        int i = member_index(name);

        if (i < FIELDS) {
            start->sent[i] = value != NULL;
            if (value) {
                crm_type_parse(&start->binds[i], &start->input, &fields[i],
                               name, value);
            }
        }
        else if (strcmp(name, contact_name[0]) != 0) {
            crm_input_unknown(&start->input, name, name, fields, contact_name);
        }
    }
    if (start->binds[IDEMPOTENCY_KEY] && !*start->binds[IDEMPOTENCY_KEY]) {
        crm_input_error(&start->input, "idempotency_key",
                        "must have 1 to 255 characters");
    }
    require(start, "template_id", start->sent[TEMPLATE_ID], "is required");
    require(start, "contact", contact || start->sent[CONTACT_ID],
            "is required, unless contact_id is given");
    if (contact || start->sent[CONTACT_ID]) {
        read_contact(start, contact ? contact : no_members(start));
    }
    if (start->missing) {
        start->input.error->code = CRM_E_BAD_REQUEST;
        start->input.error->message = "A required field is missing";
    }
    return start->input.error;
}

/* ---- query ---- */

/* Make the statement that returns one row: the template, the earlier start with
 * the same idempotency key, and today's date. */
static void make_query(crm_sql_t *sql, start_t *start)
{
    crm_sql_init(sql, start->pool);
    crm_sql_add(sql, "SELECT p.id, p.bot_id, p.name, s.id, e.id,"
                " e.contact_id, e.contact_action, s.auto_approve, e.status,"
                " to_char(clock_timestamp() AT TIME ZONE w.time_zone,"
                " 'YYYY-MM-DD') FROM crmapi.workspace w"
                " LEFT JOIN crmapi.sequence_template p"
                " ON p.workspace_id = w.id AND p.id = ");
    crm_sql_bind(sql, start->binds[TEMPLATE_ID], "uuid");
    crm_sql_add(sql, " LEFT JOIN crmapi.sequence s ON s.workspace_id = w.id"
                " AND s.idempotency_key = ");
    /* No row has an empty key. Citus does not join on a null. */
    crm_sql_bind(sql, start->binds[IDEMPOTENCY_KEY]
                 ? start->binds[IDEMPOTENCY_KEY] : "", "text");
    crm_sql_add(sql, " LEFT JOIN crmapi.enrollment e ON e.workspace_id = w.id"
                " AND e.sequence_id = s.id WHERE w.id = ");
    crm_sql_bind(sql, start->call->key.workspace_id, "uuid");
}

/* Add to ERROR (may be NULL) that no agent is named. */
static crm_error_t *no_bot(start_t *start, crm_error_t *error)
{
    crm_error_detail(&error, "bot_id", "is required, because the template "
                     "has none", start->pool);
    error->code = CRM_E_BAD_REQUEST;
    error->message = "A required field is missing";
    return error;
}

/* Refuse a request whose body has ERROR. If neither the body nor the template
 * names an agent, the 400 for that precedes a 422 (contract 8.2, 11.2). An
 * invalid agent is a 422. */
static crm_error_t *refuse(start_t *start, crm_error_t *error)
{
    apr_array_header_t *checks = apr_array_make(start->pool, 2,
                                                sizeof(crm_check_t));
    PGresult *result;
    crm_sql_t sql;

    if (start->binds[BOT_ID]) {
        crm_check_ref(checks, "agent", start->binds[BOT_ID], "bot_id");
    }
    if (start->binds[CONTACT_ID]) {
        crm_check_ref(checks, "contact", start->binds[CONTACT_ID],
                      "contact_id");
    }
    error = crm_rest_refuse(start->call, error, checks);
    if (error && error->code == CRM_E_VALIDATION && !start->sent[BOT_ID]
        && start->binds[TEMPLATE_ID]) {
        make_query(&sql, start);
        CRM_ERR(crm_call_query(&result, start->call, &sql));
        if (crm_db_value(result, 0, COLUMN_TEMPLATE)
            && !crm_db_value(result, 0, COLUMN_TEMPLATE_BOT)) {
            return no_bot(start, error);
        }
    }
    return error;
}

/* ---- the contact (contract 11.5) ---- */

/* Set *MERGED_P to the object HAVE with the members of MORE, which replace
 * those of the same name. */
static void merge_objects(const char **merged_p, const char *have,
                          const char *more, apr_pool_t *pool)
{
    json_object *base = crm_json_object(have);
    json_object *over = json_tokener_parse(more);

    json_object_object_foreach(over, name, value) {
        json_object_object_add(base, name, json_object_get(value));
    }
    *merged_p = crm_json_end(base, pool);
    json_object_put(over);
}

/* Merge the values sent with CONTACT's. A note that is added gets the date
 * TODAY. What is too large then is an error of START's input. */
static void merge(start_t *start, const crm_party_t *contact,
                  const char *today)
{
    const crm_field_t *table = crm_resource_contact.fields;
    crm_values_t *values = &start->values;

    for (int i = 0; table[i].name; i++) {
        const char **bind = &values->binds[i];
        const char *have = contact->binds[i], *sent = *bind;

        if (!values->sent[i]) {
            continue;
        }
        if (table[i].type == &crm_type_emails
            || table[i].type == &crm_type_phones) {
            crm_type_merge(bind, &table[i], have, *bind, start->pool);
        }
        else if (table[i].type == &crm_type_tags) {
            crm_type_merge_tags(bind, have, *bind, start->pool);
        }
        else if (table[i].type == &crm_type_object) {
            merge_objects(bind, have, *bind, start->pool);
        }
        else if (!strcmp(table[i].name, "notes")) {
            *bind = apr_pstrcat(start->pool, have ? have : "",
                                have && *have ? "\n\n[" : "[", today, "] ",
                                *bind, NULL);
        }
        if (*bind != sent) {
            crm_party_fits(&start->input, &table[i], *bind, "contact.");
        }
    }
}

/* ---- writing ---- */

/* Make the statements that insert the sequence, its enrollment, and the job
 * that starts at "generating" (contract 11.1). */
static void make_rows(crm_sql_t *sqls, start_t *start, const char *sequence,
                      const char *enrollment, const crm_party_t *contact)
{
    const char *workspace = start->call->key.workspace_id;
    const char *bot = start->binds[BOT_ID] ? start->binds[BOT_ID]
                      : start->template_bot;

    for (int i = 0; i < 3; i++) {
        crm_sql_init(&sqls[i], start->pool);
    }
    crm_sql_add(&sqls[0], "INSERT INTO crmapi.sequence (workspace_id, id,"
                " name, status, bot_id, template_id, auto_approve,"
                " idempotency_key) VALUES (");
    crm_sql_bind(&sqls[0], workspace, "uuid");
    crm_sql_template(&sqls[0], ", ?", sequence, "uuid");
    crm_sql_template(&sqls[0], ", ?", start->binds[NAME]
                     ? start->binds[NAME] : start->template_name, "text");
    crm_sql_template(&sqls[0], ", 'active', ?", bot, "uuid");
    crm_sql_template(&sqls[0], ", ?", start->binds[TEMPLATE_ID], "uuid");
    crm_sql_template(&sqls[0], ", ?", start->binds[AUTO_APPROVE]
                     ? start->binds[AUTO_APPROVE] : "f", "boolean");
    crm_sql_template(&sqls[0], ", ?)", start->binds[IDEMPOTENCY_KEY], "text");

    crm_sql_add(&sqls[1], "INSERT INTO crmapi.enrollment (workspace_id, id,"
                " sequence_id, contact_id, contact_action, status) VALUES (");
    crm_sql_bind(&sqls[1], workspace, "uuid");
    crm_sql_template(&sqls[1], ", ?", enrollment, "uuid");
    crm_sql_template(&sqls[1], ", ?", sequence, "uuid");
    crm_sql_template(&sqls[1], ", ?", contact->id, "uuid");
    crm_sql_template(&sqls[1], ", ?, 'generating')",
                     contact->is_new ? "created" : "updated", "text");

    crm_sql_add(&sqls[2], "INSERT INTO crmapi.job (workspace_id, kind,"
                " payload) VALUES (");
    crm_sql_bind(&sqls[2], workspace, "uuid");
    crm_sql_template(&sqls[2], ", 'generate.steps',"
                     " jsonb_build_object('enrollment_id', ?))", enrollment,
                     "text");
}

/* Add the member NAME with the string TEXT to BODY. */
static void add_member(crm_buf_t *body, const char *name, const char *text)
{
    crm_buf_printf(body, "\"%s\":", name);
    crm_buf_json_text(body, text);
    crm_buf_putc(body, ',');
}

static void answer(start_t *start, const char *sequence,
                   const char *enrollment, const char *contact,
                   const char *action, int auto_approve, const char *status)
{
    crm_buf_t *body = &start->call->response->body;

    crm_buf_puts(body, "{\"data\":{");
    add_member(body, "sequence_id", sequence);
    add_member(body, "enrollment_id", enrollment);
    add_member(body, "contact_id", contact);
    add_member(body, "contact_action", action);
    crm_buf_puts(body, auto_approve ? "\"auto_approve\":true,"
                 : "\"auto_approve\":false,");
    add_member(body, "status", status);
    crm_buf_printf(body, "\"status_url\":\"%s/sequences/enrollments/%s\"}}",
                   CRM_API_BASE, enrollment);
    start->call->response->status = 202;
}

/* Respond to a repeated idempotency_key with the result of the first request
 * (contract 11.2, 11.3). Commit only if there is an Idempotency-Key, whose
 * answer must be stored. */
static crm_error_t *replay(start_t *start, crm_parties_t *parties,
                           const PGresult *result)
{
    answer(start, PQgetvalue(result, 0, COLUMN_SEQUENCE),
           PQgetvalue(result, 0, COLUMN_ENROLLMENT),
           PQgetvalue(result, 0, COLUMN_CONTACT),
           PQgetvalue(result, 0, COLUMN_ACTION),
           *PQgetvalue(result, 0, COLUMN_AUTO_APPROVE) == 't',
           PQgetvalue(result, 0, COLUMN_STATUS));
    if (crm_rest(start->call)->idempotency) {
        CRM_ERR(crm_parties_commit(parties, NULL, 0));
    }
    else {
        crm_parties_abandon(parties);
    }
    apr_table_setn(start->call->response->headers, "Idempotent-Replayed",
                   "true");
    return NULL;
}

/* Return the error about the agent, the contact or the template in RESULT, or
 * NULL. The first two are errors of the body and precede an unknown template. */
static crm_error_t *check(start_t *start, crm_parties_t *parties,
                          const PGresult *result)
{
    const char *bot = start->binds[BOT_ID], *message;

    if (bot && !crm_parties_has(parties, "agent", bot)) {
        crm_input_error(&start->input, "bot_id",
                        crm_ref_rule("agent", start->pool));
    }
    if (start->identity.id && !start->identity.matches->nelts) {
        CRM_ERR(crm_rest_no_ref(&message, start->call, "contact",
                                start->identity.id));
        crm_input_error(&start->input, "contact_id", message);
    }
    if (start->input.error) {
        return start->input.error;
    }
    if (crm_db_value(result, 0, COLUMN_SEQUENCE)) {
        return NULL;
    }
    if (!crm_db_value(result, 0, COLUMN_TEMPLATE)) {
        return crm_rest_no_row(start->call, &crm_resource_sequence_template,
                               "template_id");
    }
    start->template_bot = crm_db_value(result, 0, COLUMN_TEMPLATE_BOT);
    start->template_name = crm_db_value(result, 0, COLUMN_TEMPLATE_NAME);
    return bot || start->template_bot ? NULL : no_bot(start, NULL);
}

/* Return the contact of START, found or created. NULL if the merged values are
 * too large. */
static crm_party_t *put_contact(start_t *start, crm_parties_t *parties,
                                const char *today)
{
    crm_party_t *contact = crm_parties_match(parties, &start->identity);

    if (!contact) {
        return crm_parties_create(parties, &start->identity, &start->values,
                                  start->binds[BOT_ID]
                                  ? start->binds[BOT_ID]
                                  : start->template_bot);
    }
    merge(start, contact, today);
    if (start->input.error) {
        return NULL;
    }
    crm_parties_update(parties, &start->identity, contact, &start->values);
    return contact;
}

/* Start the sequence in the transaction of PARTIES. RESULT is that of make_query(). */
static crm_error_t *start_new(start_t *start, crm_parties_t *parties,
                              const PGresult *result)
{
    char *sequence = apr_palloc(start->pool, CRM_UUID_LEN + 1);
    char *enrollment = apr_palloc(start->pool, CRM_UUID_LEN + 1);
    crm_party_t *contact = put_contact(start, parties,
                                       PQgetvalue(result, 0, COLUMN_TODAY));
    crm_sql_t rows[3];

    if (!contact) {
        crm_parties_abandon(parties);
        return start->input.error;
    }
    crm_uuid_v7(sequence);
    crm_uuid_v7(enrollment);
    make_rows(rows, start, sequence, enrollment, contact);
    answer(start, sequence, enrollment, contact->id,
           contact->is_new ? "created" : "updated",
           start->binds[AUTO_APPROVE] && *start->binds[AUTO_APPROVE] == 't',
           "generating");
    return crm_parties_commit(parties, rows, 3);
}

static crm_error_t *run(start_t *start)
{
    apr_array_header_t *refs = apr_array_make(start->pool, 1,
                                              sizeof(crm_ref_t));
    crm_parties_more_t more;
    crm_parties_t *parties;
    crm_error_t *error;

    memset(&more, 0, sizeof(more));
    more.lock = start->binds[IDEMPOTENCY_KEY];
    if (start->binds[BOT_ID]) {
        crm_ref_t *ref = apr_array_push(refs);

        ref->ref = "agent";
        ref->id = start->binds[BOT_ID];
    }
    make_query(&more.sql, start);
    CRM_ERR(crm_parties_open(&parties, start->call, &crm_party_contacts,
                             &start->identity, 1, 1, refs, &more));
    error = check(start, parties, more.result);
    if (error) {
        crm_parties_abandon(parties);
        return error;
    }
    if (crm_db_value(more.result, 0, COLUMN_SEQUENCE)) {
        return replay(start, parties, more.result);
    }
    return start_new(start, parties, more.result);
}

crm_error_t *crm_sequence_start(crm_call_t *call)
{
    start_t *start = apr_pcalloc(call->pool, sizeof(*start));
    crm_error_t *error;
    json_object *body;

    start->call = call;
    start->pool = call->pool;
    error = crm_rest_body(&body, &start->input, call);
    if (!error) {
        error = read_start(start, body);
    }
    return error ? refuse(start, error) : run(start);
}
