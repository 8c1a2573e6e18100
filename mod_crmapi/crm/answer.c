/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c: POST /conversations/{id}/messages (contract 19.1, 19.2) */
#include <string.h>
#include <strings.h>

#include "apr_strings.h"

#include "answer_file.h"
#include "crm_bare.h"
#include "crm_body.h"
#include "crm_channel.h"
#include "crm_email_wire.h"
#include "crm_json.h"
#include "crm_operations.h"
#include "crm_resources.h"
#include "crm_rest.h"
#include "crm_text.h"
#include "crm_type_address.h"
#include "crm_type_list.h"
#include "crm_uuid.h"

static const char *const content_types[] = {
    "text/plain", "text/markdown", NULL
};
static const char *const roles[] = {"human", "assistant", NULL};

/* The body. "attachments" is read by crm_answer_files(); the other fields are those
 * of a message that are read only. */
static const crm_field_t fields[] = {
    {.name = "content", .type = &crm_type_text, .max = 65536,
     .flags = CRM_F_REQUIRED | CRM_F_CREATE},
    {.name = "content_type", .type = &crm_type_enum, .values = content_types,
     .initial = "text/plain", .flags = CRM_F_NULLABLE | CRM_F_CREATE},
    {.name = "role", .type = &crm_type_enum, .values = roles,
     .initial = "human", .flags = CRM_F_CREATE},
    {.name = "subject", .type = &crm_type_text,
     .flags = CRM_F_NULLABLE | CRM_F_CREATE},
    {.name = "cc", .type = &crm_type_emails, .flags = CRM_F_CREATE},
    {.name = "attachments", .type = &crm_type_array},
    {.name = "id", .type = &crm_type_uuid},
    {.name = "conversation_id", .type = &crm_type_uuid},
    {.name = "status", .type = &crm_type_text},
    {.name = "tool_used", .type = &crm_type_text},
    {.name = "tool_arguments", .type = &crm_type_object},
    {.name = "created_at", .type = &crm_type_time},
    {.name = "metadata", .type = &crm_type_object},
    {.name = NULL}
};

enum { CONTENT, CONTENT_TYPE, ROLE, SUBJECT, COPIES };

static const crm_resource_t body = {
    .name = "message", .title = "Message", .fields = fields,
};

/* An answer that is being posted. */
typedef struct answer_t {
    crm_call_t *call;
    crm_values_t values;
    const char *id;
    apr_array_header_t *copied; /* addresses that get a copy */
    const char *copies;         /* their bind, or NULL */
    json_object *shown;         /* what the metadata have of attachments, or
                                   NULL */
    const char *files;          /* bind of the attachments, or NULL */
    const char *metadata;       /* JSON */
    apr_array_header_t *checks;
} answer_t;

/* Set ANSWER's metadata from its values. */
static void set_metadata(answer_t *answer)
{
    const char **binds = answer->values.binds;
    apr_pool_t *pool = answer->call->pool;
    json_object *metadata = json_object_new_object(), *copies;

    crm_json_add_text(metadata, "subject", binds[SUBJECT]);
    if (answer->copies) {
        copies = json_object_new_array();
        for (int i = 0; i < answer->copied->nelts; i++) {
            json_object_array_add(copies, json_object_new_string(
                APR_ARRAY_IDX(answer->copied, i, const char *)));
        }
        json_object_object_add(metadata, "cc", copies);
    }
    if (answer->shown) {
        json_object_object_add(metadata, "attachments", answer->shown);
    }
    answer->metadata = crm_json_end(metadata, pool);
}

/* Add to ANSWER's checks that the conversation r is answered by mail, or if PAGE
 * is true by its page; else FIELD gets MESSAGE. */
static void add_check(answer_t *answer, int page, const char *field,
                      const char *message)
{
    crm_check_t *check = apr_array_push(answer->checks);
    const char *codes = NULL;

    for (int i = 0; i < CRM_CHANNELS; i++) {
        const crm_channel_t *channel = &crm_channels[i];

        if (channel->answer == CRM_ANSWER_EMAIL
            || (page && channel->answer == CRM_ANSWER_PAGE)) {
            codes = crm_text_listed(codes, channel->code, answer->call->pool);
        }
    }

    crm_check_path_row(check, answer->call, &crm_resource_conversation);
    check->more_sql = apr_pstrcat(answer->call->pool, " AND r.type IN (",
                                  codes, "))", NULL);
    check->field = field;
    check->message = message;
}

static int has_subject(const answer_t *answer)
{
    const char *subject = answer->values.binds[SUBJECT];

    return subject && *subject;
}

/* Add an error to INPUT if STATUS, which is ignored like all fields that are read only
 * (contract 6.2), says that the answer is not to be sent. */
static void refuse_draft(crm_input_t *input, json_object *status)
{
    const char *text = crm_json_text(status);

    if (text && !strcasecmp(text, "draft")) {
        crm_input_error(input, "status", "cannot be draft: an answer goes out at"
                        " once");
    }
}

/* Add an error to INPUT if ANSWER shows nothing and has no files. */
static void refuse_blank(crm_input_t *input, const answer_t *answer)
{
    const char *content = answer->values.binds[CONTENT];

    if (content && !answer->files && !crm_text_shows(content)) {
        crm_input_error(input, "content", "must not be blank, unless there are"
                        " attachments");
    }
}

/* Set ANSWER's copies from its values. Add an error to INPUT for each that no mail can
 * be sent to. */
static void read_copies(answer_t *answer, crm_input_t *input)
{
    const char *text = answer->values.binds[COPIES];
    json_object *list = text ? json_tokener_parse(text) : NULL;
    apr_pool_t *pool = answer->call->pool;

    answer->copied = apr_array_make(pool, 4, sizeof(const char *));
    for (size_t i = 0; i < crm_json_count(list); i++) {
        const char *address = json_object_get_string(
            json_object_object_get(json_object_array_get_idx(list, i), "email"));
        const char *rule = crm_email_wire_to(address, pool);

        APR_ARRAY_PUSH(answer->copied, const char *) = apr_pstrdup(pool, address);
        if (rule) {
            crm_input_error(input, apr_psprintf(input->pool, "cc[%d]", (int)i), rule);
        }
    }
    json_object_put(list);
    if (answer->copied->nelts) {
        answer->copies = crm_sql_array(answer->copied, pool);
    }
}

/* Read ANSWER's body, and fill its checks. */
static crm_error_t *read_answer(answer_t *answer)
{
    crm_call_t *call = answer->call;
    json_object *object;
    crm_input_t input;

    answer->checks = apr_array_make(call->pool, 2, sizeof(crm_check_t));
    crm_check_path(answer->checks, call, &crm_resource_conversation);
    CRM_ERR(crm_rest_body(&object, &input, call));
    crm_answer_files(&answer->files, &answer->shown, &input,
                     json_object_object_get(object, "attachments"));
    json_object_object_del(object, "attachments");
    refuse_draft(&input, json_object_object_get(object, "status"));
    crm_body_read(&answer->values, &input, &body, object, CRM_BODY_CREATE, "");
    refuse_blank(&input, answer);
    read_copies(answer, &input);
    if (input.error) {
        json_object_put(answer->shown);
        return input.error;
    }
    set_metadata(answer);
    if (answer->copies) {
        add_check(answer, 0, "cc", "is for mail only");
    }
    if (has_subject(answer)) {
        add_check(answer, 0, "subject", "is for mail only");
    }
    if (answer->files) {
        add_check(answer, 1, "attachments", "is for mail and chat only");
    }
    return NULL;
}

/* Make the statement that adds ANSWER, if the key permits it. */
static void make_add(crm_sql_t *sql, answer_t *answer, const char *location)
{
    crm_call_t *call = answer->call;
    const char **binds = answer->values.binds;
    const crm_endpoint_t *endpoint = crm_rest(call)->endpoint;

    crm_rest_sql(sql, call);
    crm_sql_adds(sql, "SELECT ", endpoint->shape->row_columns,
                 " FROM crmapi.message_answer(" CRM_SQL_WORKSPACE, NULL);
    crm_sql_template(sql, ", ?", crm_rest(call)->path_id, "uuid");
    crm_sql_template(sql, ", ?", answer->id, "uuid");
    crm_sql_template(sql, ", ?", binds[ROLE], "text");
    crm_sql_template(sql, ", ?", binds[CONTENT], "text");
    crm_sql_template(sql, ", ?", binds[CONTENT_TYPE], "text");
    crm_sql_template(sql, ", ?", answer->copies, "text[]");
    crm_sql_template(sql, ", ?", answer->metadata, "jsonb");
    crm_sql_template(sql, ", ?) t WHERE ", answer->files, "json");
    crm_rest_permit(sql, call, CRM_PERMIT_BEFORE);
    crm_idempotency_keep_row(sql, call,
                             crm_kind_of(endpoint->operation)->status,
                             location, endpoint->shape);
}

/* Return why ANSWER was not added: what its checks say, or that the conversation
 * takes none. NULL: it takes one now. */
static crm_error_t *refusal_of(answer_t *answer)
{
    crm_call_t *call = answer->call;
    const char *values[3] = {
        call->key.workspace_id, crm_rest(call)->path_id, answer->copies
    };
    const char *why;
    PGresult *result;

    CRM_ERR(crm_rest_refuse(call, NULL, answer->checks));
    CRM_ERR(crm_call_run(&result, call, "SELECT crmapi.answer_refusal($1::uuid,"
                         " $2::uuid, $3::text[])", 3, values));
    why = crm_db_value(result, 0, 0);
    return why ? crm_error_create(CRM_E_CONFLICT, why, call->pool) : NULL;
}

/* Add ANSWER; set *ROWS to it. */
static crm_error_t *add(crm_rows_t *rows, answer_t *answer,
                        const char *location)
{
    crm_sql_t sql;

    for (int i = 0; i < 2; i++) {
        make_add(&sql, answer, location);
        CRM_ERR(crm_idempotency_write(rows, answer->call, &sql));
        if (rows->count) {
            return NULL;
        }
        CRM_ERR(refusal_of(answer));
    }
    return crm_error_create(CRM_E_UNAVAILABLE, NULL, answer->call->pool);
}

crm_error_t *crm_message_answer(crm_call_t *call)
{
    int status = crm_kind_of(crm_rest(call)->endpoint->operation)->status;
    answer_t answer = {.call = call};
    crm_error_t *error = read_answer(&answer);
    const char *location;
    crm_rows_t rows;
    char *id;

    if (error || !crm_rest(call)->path_id) {
        return crm_rest_refuse(call, error, answer.checks);
    }
    id = apr_palloc(call->pool, CRM_UUID_LEN + 1);
    crm_uuid_v7(id);
    answer.id = id;
    location = apr_pstrcat(call->pool, CRM_API_BASE, "/conversations/",
                           crm_rest(call)->path_id, "/messages/", id, NULL);
    CRM_ERR(add(&rows, &answer, location));
    crm_rest_answer(call, status, rows.result, rows.first);
    crm_rows_drop(&rows);
    apr_table_setn(call->response->headers, "Location", location);
    return NULL;
}
