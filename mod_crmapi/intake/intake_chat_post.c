/* SPDX-License-Identifier: Apache-2.0 */
/* intake_chat_post.c: messages sent by visitors of a chat */
#include "intake_chat_post.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_bare.h"
#include "crm_channel.h"
#include "crm_intake_site.h"
#include "crm_text.h"
#include "intake_chat_load.h"
#include "intake_chat_parts.h"

/* The fields of a message. */
enum { ID, CONTENT, NAME, EMAIL, PAGE_URL, FIELDS };

static const crm_field_t fields[FIELDS] = {
    [ID] = {.name = "id", .type = &crm_type_text, .flags = CRM_F_REQUIRED,
            .max = 64},
    [CONTENT] = {.name = "content", .type = &crm_type_text,
                 .flags = CRM_F_REQUIRED, .max = CRM_CHAT_CONTENT_MAX},
    [NAME] = {.name = "name", .type = &crm_type_text,
              .flags = CRM_F_NULLABLE, .max = 200},
    [EMAIL] = {.name = "email", .type = &crm_type_email,
               .flags = CRM_F_NULLABLE},
    [PAGE_URL] = {.name = "page_url", .type = &crm_type_text,
                  .flags = CRM_F_NULLABLE, .max = 2048},
};

/* Return the index of the field NAME, -1 if it is unknown. */
static int find_field(const char *name)
{
    for (int i = 0; i < FIELDS; i++) {
        if (!strcmp(fields[i].name, name)) {
            return i;
        }
    }
    return -1;
}

/* Add to INPUT the errors of BODY, whose fields are BINDS, that their types do not
 * have: an id or text that is missing or shows nothing, and characters that an id must
 * not have. A field that its type has refused has no bind. */
static void check(const char *const *binds, json_object *body,
                  crm_input_t *input)
{
    for (int i = ID; i <= CONTENT; i++) {
        if (!json_object_object_get_ex(body, fields[i].name, NULL)) {
            crm_input_error(input, fields[i].name, "is required");
        }
        else if (binds[i] && !crm_text_shows(binds[i])) {
            crm_input_error(input, fields[i].name, "must not be empty");
        }
        else if (i == ID && binds[i] && !crm_chat_id_ok(binds[i])) {
            crm_input_error(input, "id", "must be 1 to 64 characters of "
                            "[A-Za-z0-9_-]");
        }
    }
}

/* Set *BIND_P to MEMBER, an address, without the blanks around it that a page's field
 * may have; NULL if nothing is left. Errors go to INPUT. */
static void read_address(const char **bind_p, crm_input_t *input,
                         json_object *member)
{
    const char *text;
    apr_size_t len;
    json_object *bare;

    if (!json_object_is_type(member, json_type_string)) {
        crm_type_parse(bind_p, input, &fields[EMAIL], "email", member);
        return;
    }
    text = json_object_get_string(member);
    len = (apr_size_t)json_object_get_string_len(member);
    crm_text_trim_blanks(&text, &len);
    if (!len) {
        return;
    }
    bare = json_object_new_string_len(text, (int)len);
    crm_type_parse(bind_p, input, &fields[EMAIL], "email", bare);
    *bind_p = *bind_p ? apr_pstrdup(input->pool, *bind_p) : NULL;
    json_object_put(bare);
}

/* Set BINDS[0..FIELDS-1] from CHAT's body. */
static crm_error_t *read_message(const char **binds, crm_chat_t *chat)
{
    crm_input_t input = {chat->call->pool, NULL, 0};

    memset(binds, 0, FIELDS * sizeof(*binds));
    json_object_object_foreach(chat->body, name, member) {
        int i = find_field(name);

        if (i < 0) {
            crm_input_error(&input, apr_pstrdup(input.pool, name),
                            "is not a known field");
        }
        else if (i == EMAIL) {
            read_address(&binds[i], &input, member);
        }
        else {
            crm_type_parse(&binds[i], &input, &fields[i], fields[i].name,
                           member);
        }
    }
    check(binds, chat->body, &input);
    return input.error;
}

/* Return the metadata to store with the message in BINDS, a JSON object. */
static const char *metadata_of(const char *const *binds, apr_pool_t *pool)
{
    crm_buf_t buf;

    crm_buf_init(&buf, 256, pool);
    crm_buf_putc(&buf, '{');
    crm_chat_write_text(&buf, "client_id", binds[ID]);
    if (binds[PAGE_URL]) {
        crm_chat_write_text(&buf, "page_url", binds[PAGE_URL]);
    }
    crm_buf_add(&buf, "}", 2);
    return buf.data;
}

/* Store the message in BINDS and set *RESULT. */
static crm_error_t *take(crm_intake_result_t *result, crm_chat_t *chat,
                         const char *const *binds)
{
    crm_call_t *call = chat->call;
    crm_intake_event_t event;

    memset(&event, 0, sizeof(event));
    event.binds[CRM_INTAKE_EVENT_ID] = apr_pstrcat(call->pool, "chat:",
                                                   chat->visitor, ":",
                                                   binds[ID], NULL);
    event.binds[CRM_INTAKE_CHANNEL] = CRM_CODE_CHAT;
    event.binds[CRM_INTAKE_BOT_ID] = chat->bot_id;
    event.binds[CRM_INTAKE_FROM_VISITOR] = chat->visitor;
    event.binds[CRM_INTAKE_FROM_NAME] = binds[NAME];
    event.binds[CRM_INTAKE_FROM_EMAIL] = binds[EMAIL];
    event.binds[CRM_INTAKE_ROLE] = "user";
    event.binds[CRM_INTAKE_CONTENT] = binds[CONTENT];
    event.binds[CRM_INTAKE_METADATA] = metadata_of(binds, call->pool);
    return crm_intake_take(result, call, chat->workspace_id, &event);
}

crm_error_t *crm_chat_post(crm_chat_t *chat)
{
    crm_call_t *call = chat->call;
    crm_buf_t *body = &call->response->body;
    const char *binds[FIELDS];
    crm_intake_result_t result;
    PGresult *message;

    CRM_ERR(read_message(binds, chat));
    CRM_ERR(take(&result, chat, binds));
    CRM_ERR(crm_chat_message(&message, chat, result.message_id));
    if (!PQntuples(message)) {
        return crm_error_create(CRM_E_CONFLICT, "This message was sent before "
                                "and has been deleted", call->pool);
    }
    call->response->status = 201;
    crm_buf_puts(body, "{\"data\":");
    crm_chat_write_message(body, message, 0);
    crm_buf_putc(body, '}');
    return NULL;
}
