/* SPDX-License-Identifier: Apache-2.0 */
/* crm_intake.c: intake of events: reading and storing them */
#include "crm_intake.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_bare.h"
#include "crm_buf.h"
#include "crm_db.h"
#include "crm_number.h"
#include "crm_text.h"
#include "crm_type_channel.h"
#include "crm_type_list.h"

#define NAME_MAX_CHARS 255

/* A field of an event. OBJECT is the member of the event's JSON that contains
 * it, NULL for the event itself. A field without a name is not in the JSON.
 * ITEM is its name in crmapi.intake_item. */
typedef struct place_t {
    const char *object;
    crm_field_t field;
    const char *item;
} place_t;

static const char *const directions[] = {"inbound", "outbound", NULL};

static void phone_parse(const char **bind_p, crm_input_t *input,
                        const crm_field_t *field, const char *path,
                        json_object *value);

/* A phone number in any notation (contract 6.3). */
static const crm_type_t phone_type = {
    .name = "phone", .cast = "text", .parse = phone_parse,
};

static void phone_parse(const char **bind_p, crm_input_t *input,
                        const crm_field_t *field, const char *path,
                        json_object *value)
{
    const char *text = NULL, *rule;

    crm_type_text.parse(&text, input, field, path, value);
    if (text) {
        rule = crm_text_phone(text, strlen(text));
        if (rule) {
            crm_input_error(input, path, rule);
        }
        else {
            *bind_p = text;
        }
    }
}

#define F(object_, name_, item_, ...) \
    {object_, {.name = name_, .flags = CRM_F_NULLABLE, .type = &__VA_ARGS__}, item_}
#define TEXT(object_, name_, item_) F(object_, name_, item_, crm_type_text)
/* An id of the sender's, never empty (contract 6.5): whoever has none would be one
 * and the same. */
#define ID(object_, name_, item_, max_) \
    {object_, {.name = name_, .type = &crm_type_text, \
               .flags = CRM_F_NULLABLE | CRM_F_UNIQUE, .max = max_}, item_}

static const place_t places[CRM_INTAKE_FIELDS] = {
    [CRM_INTAKE_EVENT_ID] =
        {NULL, {.name = "event_id", .type = &crm_type_text,
                .flags = CRM_F_REQUIRED, .max = NAME_MAX_CHARS}, "event_id"},
    [CRM_INTAKE_CHANNEL] = F(NULL, "channel", "channel", crm_type_channel),
    [CRM_INTAKE_BOT_ID] =
        F(NULL, "bot_id", "bot_id", crm_type_ref, .ref = "agent"),
    [CRM_INTAKE_OCCURRED_AT] =
        F(NULL, "occurred_at", "occurred_at", crm_type_time),
    [CRM_INTAKE_DIRECTION] =
        F(NULL, "direction", NULL, crm_type_enum, .values = directions),
    [CRM_INTAKE_FROM_EMAIL] = F("from", "email", NULL, crm_type_email),
    [CRM_INTAKE_FROM_PHONE] = F("from", "phone_number", NULL, phone_type),
    [CRM_INTAKE_FROM_NAME] = TEXT("from", "name", NULL),
    [CRM_INTAKE_FROM_VISITOR] = ID("from", "visitor_id", NULL, NAME_MAX_CHARS),
    [CRM_INTAKE_FROM_USER] = ID("from", "user_id", NULL, NAME_MAX_CHARS),
    [CRM_INTAKE_TO_EMAIL] = F("to", "email", NULL, crm_type_email),
    [CRM_INTAKE_TO_PHONE] = F("to", "phone_number", NULL, phone_type),
    [CRM_INTAKE_TO_NAME] = TEXT("to", "name", NULL),
    [CRM_INTAKE_TO_VISITOR] = ID("to", "visitor_id", NULL, NAME_MAX_CHARS),
    [CRM_INTAKE_TO_USER] = ID("to", "user_id", NULL, NAME_MAX_CHARS),
    [CRM_INTAKE_CONVERSATION] =
        F("conversation", "id", "conversation_id", crm_type_ref,
          .ref = "conversation"),
    [CRM_INTAKE_THREAD] =
        ID("conversation", "external_id", "thread", NAME_MAX_CHARS),
    [CRM_INTAKE_SUBJECT] = TEXT("conversation", "subject", "subject"),
    [CRM_INTAKE_MESSAGE_KEY] = ID("message", "external_id", "external_id", 0),
    [CRM_INTAKE_ROLE] = TEXT("message", "role", "role"),
    [CRM_INTAKE_CONTENT] =
        F("message", "content", "content", crm_type_text, .max = 65536),
    [CRM_INTAKE_CONTENT_TYPE] = TEXT("message", "content_type", "content_type"),
    [CRM_INTAKE_STATUS] = TEXT("message", "status", "status"),
    [CRM_INTAKE_TOOL_USED] = TEXT("message", "tool_used", "tool_used"),
    [CRM_INTAKE_TOOL_ARGUMENTS] =
        F("message", "tool_arguments", "tool_arguments", crm_type_object),
    [CRM_INTAKE_METADATA] =
        F("message", "metadata", "metadata", crm_type_object),
    [CRM_INTAKE_MINUTES] = F("call", "minutes", "minutes", crm_type_number),
    [CRM_INTAKE_AUDIO_URL] =
        F("call", "audio_url", "audio_url", crm_type_text, .max = 2048),
    [CRM_INTAKE_ENDED] = F("call", "ended", "ended", crm_type_boolean),
    [CRM_INTAKE_POSITIVE] =
        F("sentiment", "positive", "positive", crm_type_boolean),
    [CRM_INTAKE_SCORE] = F("sentiment", "score", "score", crm_type_number),
    [CRM_INTAKE_SUMMARY] =
        F("sentiment", "summary", "summary", crm_type_text, .max = 65536),
    [CRM_INTAKE_TAKEOVER] =
        F(NULL, "human_takeover", "takeover", crm_type_boolean),
    [CRM_INTAKE_VERIFIED] = F(NULL, "verified", "verified", crm_type_boolean),
    /* internal sources only */
    [CRM_INTAKE_REFERENCES] = F(NULL, NULL, "refs", crm_type_array),
    [CRM_INTAKE_STEP_ID] = F(NULL, NULL, "step_id", crm_type_uuid),
    [CRM_INTAKE_ANSWER_ID] = F(NULL, NULL, "answer_id", crm_type_uuid),
    [CRM_INTAKE_AUTOMATIC] = F(NULL, NULL, "automatic", crm_type_boolean),
    [CRM_INTAKE_SUPPRESS] = TEXT(NULL, NULL, "suppress"),
    [CRM_INTAKE_BOUNCED] =
        F(NULL, NULL, "bounced", crm_type_text, .max = 65536),
    [CRM_INTAKE_FAILED] = TEXT(NULL, NULL, "failed"),
    [CRM_INTAKE_REASON] = TEXT(NULL, NULL, "reason"),
    [CRM_INTAKE_LIFT] = TEXT(NULL, NULL, "lift"),
    [CRM_INTAKE_FORM_ID] = F(NULL, NULL, "form_id", crm_type_uuid),
    [CRM_INTAKE_RESPONSES] = F(NULL, NULL, "responses", crm_type_object),
    [CRM_INTAKE_INTERNAL] = F(NULL, NULL, "internal", crm_type_boolean),
    [CRM_INTAKE_CONTACT] = F(NULL, NULL, "contact", crm_type_object),
};

/* Members of an item that describe the participant, and their fields in inbound
 * and outbound events. */
static const struct {
    const char *item;
    crm_intake_field_t from, to;
} participant[] = {
    {"email", CRM_INTAKE_FROM_EMAIL, CRM_INTAKE_TO_EMAIL},
    {"phone_number", CRM_INTAKE_FROM_PHONE, CRM_INTAKE_TO_PHONE},
    {"name", CRM_INTAKE_FROM_NAME, CRM_INTAKE_TO_NAME},
    {"visitor_id", CRM_INTAKE_FROM_VISITOR, CRM_INTAKE_TO_VISITOR},
};

/* ---- reading ------------------------------------------------------------- */

/* Return whether PLACE is a field of OBJECT (NULL: top level). */
static int is_of(const place_t *place, const char *object)
{
    return place->field.name
           && (object ? place->object && !strcmp(place->object, object)
               : !place->object);
}

/* Return the index of the field NAME of OBJECT (NULL: top level), -1 if there
 * is none. */
static int find_place(const char *object, const char *name)
{
    for (int i = 0; i < CRM_INTAKE_FIELDS; i++) {
        if (is_of(&places[i], object) && !strcmp(places[i].field.name, name)) {
            return i;
        }
    }
    return -1;
}

/* Refuse NAME at PATH: it is no field of OBJECT (NULL: top level). */
static void refuse_name(crm_input_t *input, const char *path,
                        const char *object, const char *name)
{
    const char *names[CRM_INTAKE_FIELDS + 1];
    int count = 0;

    for (int i = 0; i < CRM_INTAKE_FIELDS; i++) {
        if (is_of(&places[i], object)) {
            names[count++] = places[i].field.name;
        }
    }
    names[count] = NULL;
    crm_input_unknown(input, path, name, NULL, names);
}

/* Return whether NAME is an object with fields. */
static int is_object(const char *name)
{
    for (int i = 0; i < CRM_INTAKE_FIELDS; i++) {
        if (places[i].object && !strcmp(places[i].object, name)) {
            return 1;
        }
    }
    return 0;
}

/* Read the members of VALUE, the object OBJECT (NULL: the event). */
static void parse_members(crm_intake_event_t *event, crm_input_t *input,
                          json_object *value, const char *object)
{
    json_object_object_foreach(value, name, member) {
        const char *path = object ? apr_pstrcat(input->pool, object, ".",
                                                name, NULL)
                                  : apr_pstrdup(input->pool, name);
        int i = find_place(object, name);

        if (i >= 0) {
            crm_type_parse(&event->binds[i], input, &places[i].field, path,
                           member);
        }
        else if (object || !is_object(name)) {
            refuse_name(input, path, object, name);
        }
        else if (json_object_is_type(member, json_type_object)) {
            parse_members(event, input, member, name);
        }
        else if (member) {
            crm_input_error(input, path, "must be an object");
        }
    }
}

/* Return whether EVENT was sent to the participant. */
static int is_outbound(const crm_intake_event_t *event)
{
    const char *direction = event->binds[CRM_INTAKE_DIRECTION];
    const char *role = event->binds[CRM_INTAKE_ROLE];

    return direction ? !strcmp(direction, "outbound")
           : role && (!strcmp(role, "assistant") || !strcmp(role, "human"));
}

/* Return whether VALUE, an event's JSON, has the member NAME of its object OBJECT
 * (NULL: its own), and not null. */
static int has(json_object *value, const char *object, const char *name)
{
    json_object *member = value;

    return (!object || (json_object_object_get_ex(value, object, &member)
                        && json_object_is_type(member, json_type_object)))
           && json_object_object_get_ex(member, name, &member) && member;
}

/* Return whether VALUE, an event's JSON, only tells the status of a message. */
static int is_status(json_object *value)
{
    return has(value, "message", "status")
           && has(value, "message", "external_id")
           && !has(value, "message", "content") && !has(value, "message", "role")
           && !has(value, "message", "tool_used");
}

/* Add errors to INPUT, which has some, for what EVENT, whose JSON is VALUE, lacks if
 * it names no conversation. Of an event without errors the database says that: it
 * knows whether the conversation that an id of the sender's names is there. */
static void check_missing(const crm_intake_event_t *event, crm_input_t *input,
                          json_object *value)
{
    static const char rule[] = "is required unless a conversation is named";
    const char *who = is_outbound(event) ? "to" : "from";

    if (has(value, "conversation", "id")
        || has(value, "conversation", "external_id") || is_status(value)) {
        return;
    }
    if (!has(value, NULL, "bot_id")) {
        crm_input_error(input, "bot_id", rule);
    }
    if (!has(value, NULL, "channel")) {
        crm_input_error(input, "channel", rule);
    }
    if (!has(value, who, "email") && !has(value, who, "phone_number")
        && !has(value, who, "visitor_id") && !has(value, who, "user_id")
        && (!has(value, NULL, who) || json_object_is_type(
                json_object_object_get(value, who), json_type_object))) {
        crm_input_error(input, who, "must have an email, a phone_number, a "
                        "visitor_id or a user_id unless a conversation is "
                        "named");
    }
}

/* Add errors to INPUT that the types of single fields of VALUE, the JSON of
 * EVENT, do not find. */
static void check(const crm_intake_event_t *event, crm_input_t *input,
                  json_object *value)
{
    const char *const *binds = event->binds;

    if (!json_object_object_get_ex(value, "event_id", NULL)) {
        crm_input_error(input, "event_id", "is required");
    }
    if (binds[CRM_INTAKE_ROLE] && !*binds[CRM_INTAKE_ROLE]) {
        crm_input_error(input, "message.role", "must not be empty");
    }
    if (binds[CRM_INTAKE_SCORE]
        && (crm_number_compare(binds[CRM_INTAKE_SCORE], "-1") < 0
            || crm_number_compare(binds[CRM_INTAKE_SCORE], "1") > 0)) {
        crm_input_error(input, "sentiment.score", "must be from -1 to 1");
    }
    if (binds[CRM_INTAKE_MINUTES] && *binds[CRM_INTAKE_MINUTES] == '-') {
        crm_input_error(input, "call.minutes", "must not be negative");
    }
    if (crm_input_errors(input)) {
        check_missing(event, input, value);
    }
}

void crm_intake_parse(crm_intake_event_t *event, crm_input_t *input,
                      json_object *value)
{
    memset(event, 0, sizeof(*event));
    if (!json_object_is_type(value, json_type_object)) {
        crm_input_error(input, "", "must be an object");
        return;
    }
    parse_members(event, input, value, NULL);
    check(event, input, value);
    if (!event->binds[CRM_INTAKE_VERIFIED]) {
        event->binds[CRM_INTAKE_VERIFIED] = "t";
    }
}

/* ---- internal sources ---------------------------------------------------- */

/* Return TEXT, truncated to MAX characters, in POOL. NULL if it is not valid
 * UTF-8. */
static const char *shorten(const char *text, apr_size_t max, apr_pool_t *pool)
{
    const char *end = text;

    if (!crm_text_valid_utf8(text, strlen(text))) {
        return NULL;
    }
    if (strlen(text) <= max) {
        return text;
    }
    while (*end && max) {
        end++;
        while ((*end & 0xc0) == 0x80) {
            end++;
        }
        max--;
    }
    return *end ? apr_pstrmemdup(pool, text, (apr_size_t)(end - text)) : text;
}

void crm_intake_tidy(crm_intake_event_t *event, apr_pool_t *pool)
{
    for (int i = 0; i < CRM_INTAKE_FIELDS; i++) {
        const crm_field_t *field = &places[i].field;
        const char **bind = &event->binds[i];

        if (!*bind) {
            continue;
        }
        if (field->type == &crm_type_text) {
            *bind = shorten(*bind, field->max ? field->max : 1000, pool);
        }
        else if ((field->type == &crm_type_email
                  && crm_text_email(*bind, strlen(*bind)))
                 || (field->type == &phone_type
                     && crm_text_phone(*bind, strlen(*bind)))) {
            *bind = NULL;
        }
    }
}

/* ---- storing ------------------------------------------------------------- */

/* Add the member NAME of an item to BUF: BIND itself if TYPE is JSON, a string
 * otherwise. */
static void write_member(crm_buf_t *buf, const char *name, const char *bind,
                         const crm_type_t *type)
{
    if (bind) {
        crm_buf_printf(buf, "%s\"%s\":", buf->data[buf->len - 1] == '{'
                       ? "" : ",", name);
        if (type && !strcmp(type->cast, "jsonb")) {
            crm_buf_puts(buf, bind);
        }
        else {
            crm_buf_json_text(buf, bind);
        }
    }
}

/* Return NAME (may be NULL) without blanks around it, in POOL; NULL if it shows
 * nothing. */
static const char *name_of(const char *name, apr_pool_t *pool)
{
    apr_size_t len = name ? strlen(name) : 0;

    if (!name || !crm_text_shows(name)) {
        return NULL;
    }
    crm_text_trim_blanks(&name, &len);
    return apr_pstrmemdup(pool, name, len);
}

/* Add EVENT to BUF in the format of crmapi.intake_item. */
static void write_item(crm_buf_t *buf, const crm_intake_event_t *event)
{
    const char *const *binds = event->binds;
    int outbound = is_outbound(event);
    const char *author = binds[CRM_INTAKE_FROM_USER];

    crm_buf_putc(buf, '{');
    for (int i = 0; i < CRM_INTAKE_FIELDS; i++) {
        if (places[i].item) {
            write_member(buf, places[i].item, binds[i],
                         places[i].field.type);
        }
    }
    for (size_t i = 0; i < CRM_NELTS(participant); i++) {
        const char *bind = binds[outbound ? participant[i].to
                                          : participant[i].from];

        if (!bind && participant[i].from == CRM_INTAKE_FROM_VISITOR) {
            /* The user_id replaces a missing visitor_id. */
            bind = outbound ? binds[CRM_INTAKE_TO_USER] : author;
        }
        if (participant[i].from == CRM_INTAKE_FROM_NAME) {
            bind = name_of(bind, buf->pool);
        }
        write_member(buf, participant[i].item, bind, NULL);
    }
    write_member(buf, "outbound", outbound ? "t" : "f", NULL);
    write_member(buf, "author", author, NULL);
    crm_buf_putc(buf, '}');
}

/* Return the COUNT EVENTS as a JSON array in POOL. */
static const char *write_items(const crm_intake_event_t *events, int count,
                               apr_pool_t *pool)
{
    crm_buf_t buf;

    crm_buf_init(&buf, 512 * (apr_size_t)count, pool);
    for (int i = 0; i < count; i++) {
        crm_buf_putc(&buf, i ? ',' : '[');
        write_item(&buf, &events[i]);
    }
    crm_buf_add(&buf, "]", 2);
    return buf.data;
}

/* Set *TAKEN from ROW of crmapi.intake()'s RESULT. */
static void read_result(crm_intake_result_t *taken, const PGresult *result,
                        int row)
{
    taken->conversation_id = crm_db_value(result, row, 0);
    taken->message_id = crm_db_value(result, row, 1);
    taken->contact_id = crm_db_value(result, row, 2);
    taken->submission_id = crm_db_value(result, row, 3);
    taken->again = *PQgetvalue(result, row, 4) == 't';
    taken->opened = *PQgetvalue(result, row, 5) == 't';
    taken->field = crm_db_value(result, row, 6);
    taken->message = crm_db_value(result, row, 7);
}

void crm_intake_refused(crm_error_t **error_p,
                        const crm_intake_result_t *result, apr_pool_t *pool)
{
    char *fields = apr_pstrdup(pool, result->field ? result->field : "");
    char *rules = apr_pstrdup(pool, result->message ? result->message : "");
    char *next_field, *next_rule;
    const char *field = apr_strtok(fields, "\n", &next_field);
    const char *rule = apr_strtok(rules, "\n", &next_rule);

    while (field && rule) {
        crm_error_detail(error_p, field, rule, pool);
        field = apr_strtok(NULL, "\n", &next_field);
        rule = apr_strtok(NULL, "\n", &next_rule);
    }
}

/* As crm_intake(). BEGIN: in a transaction that begins before it and stays
 * open. */
static crm_error_t *store(crm_intake_batch_t *batch, crm_conn_t *conn,
                          int begin, apr_pool_t *result_pool)
{
    const char *values[3] = {
        batch->workspace_id, batch->key_hash,
        write_items(batch->events, batch->count, result_pool)
    };
    crm_stmt_t stmts[2] = {{"BEGIN", 0, NULL}, {
        "SELECT conversation_id, message_id, contact_id, submission_id, again,"
        " opened, field, message FROM crmapi.intake($1::uuid, $2::bytea,"
        " $3::jsonb)", 3, values
    }};
    PGresult *all[2], *result;
    crm_error_t *error;

    error = begin ? crm_db_pipeline(all, conn, stmts, 2, result_pool)
                  : crm_db_query(&all[1], conn, &stmts[1], result_pool);
    if (crm_error_is(error, "23503")) {
        /* A referenced row was deleted meanwhile: the client may retry. */
        error->code = CRM_E_UNAVAILABLE;
        error->message = crm_code_info(CRM_E_UNAVAILABLE)->message;
        error->retry_after = 1;
    }
    CRM_ERR(error);
    result = all[1];
    batch->known = PQntuples(result) == batch->count;
    for (int i = 0; batch->known && i < batch->count; i++) {
        read_result(&batch->results[i], result, i);
    }
    return NULL;
}

crm_error_t *crm_intake(crm_intake_batch_t *batch, crm_conn_t *conn,
                        apr_pool_t *result_pool)
{
    return store(batch, conn, 0, result_pool);
}

crm_error_t *crm_intake_begin(crm_intake_batch_t *batch, crm_conn_t *conn,
                              apr_pool_t *result_pool)
{
    return store(batch, conn, 1, result_pool);
}

/* The end of a look-up of agents: f are those with an address, in the workspace
 * $2 (id or slug; NULL: any). Those that are not held come first, then those whose
 * own it is, then those with exactly this spelling. Two rows are enough. */
#define AGENTS_SQL \
    " SELECT f.workspace_id, f.id, f.text_greeting," \
    " h.workspace_id IS NOT NULL, f.own, f.exact FROM found f" \
    " JOIN crmapi.workspace w ON w.id = f.workspace_id" \
    " LEFT JOIN crmapi.workspace_hold h ON h.workspace_id = f.workspace_id" \
    " WHERE $2::text IS NULL OR w.id::text = lower($2::text)" \
    " OR w.slug = $2::text ORDER BY 4, 5 DESC, 6 DESC LIMIT 2"

/* The spellings of the e-mail address $1. */
#define SPELLINGS " IN (crmapi.email_key($1::text)," \
    " crmapi.email_base($1::text))"

/* The agents that receive mail at $1. An agent_email goes before an
 * email_outbound_email, which agents of a workspace may share: of those it is
 * the oldest. */
static const char by_email_sql[] =
    "WITH found AS ((SELECT a.workspace_id, a.id, a.text_greeting, true AS own,"
    " crmapi.email_key(a.agent_email) = crmapi.email_key($1::text) AS exact"
    " FROM crmapi.agent a WHERE crmapi.email_key(a.agent_email)" SPELLINGS
    ") UNION ALL (SELECT DISTINCT ON (a.workspace_id) a.workspace_id, a.id,"
    " a.text_greeting, false, true FROM crmapi.agent a"
    " WHERE crmapi.email_key(a.email_outbound_email)" SPELLINGS
    " ORDER BY a.workspace_id, a.created_at, a.id))" AGENTS_SQL;

/* The agents with the number $1. */
static const char by_phone_sql[] =
    "WITH found AS (SELECT a.workspace_id, a.id, a.text_greeting, true AS own,"
    " true AS exact FROM crmapi.agent a WHERE crmapi.phone_key(a.agent_phone)"
    " = crmapi.phone_key($1::text))" AGENTS_SQL;

/* Return why the rows of RESULT name no agent for now, or NULL. Two agents of one
 * workspace may have an address with and without a "+". */
static const char *why_not_now(const PGresult *result)
{
    int two = PQntuples(result) == 2 && *PQgetvalue(result, 1, 3) == 'f'
              && *PQgetvalue(result, 0, 4) == *PQgetvalue(result, 1, 4);

    if (PQntuples(result) && *PQgetvalue(result, 0, 3) == 't') {
        return "its workspace is held";
    }
    return two && (*PQgetvalue(result, 0, 5) == *PQgetvalue(result, 1, 5)
                   || strcmp(PQgetvalue(result, 0, 0),
                             PQgetvalue(result, 1, 0)))
           ? "more than one agent has it" : NULL;
}

crm_error_t *crm_intake_agent(crm_intake_agent_t *agent, crm_conn_t *conn,
                              const char *email, const char *phone,
                              const char *workspace, apr_pool_t *result_pool)
{
    const char *values[2];
    crm_stmt_t stmt = {email ? by_email_sql : by_phone_sql, 2, values};
    PGresult *result;

    memset(agent, 0, sizeof(*agent));
    values[0] = email ? email : phone;
    values[1] = workspace;
    CRM_ERR(crm_db_query(&result, conn, &stmt, result_pool));
    agent->not_now = why_not_now(result);
    if (PQntuples(result) && !agent->not_now) {
        agent->workspace_id = crm_db_value(result, 0, 0);
        agent->bot_id = crm_db_value(result, 0, 1);
        agent->greeting = crm_db_value(result, 0, 2);
    }
    return NULL;
}
