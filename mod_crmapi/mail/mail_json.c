/* SPDX-License-Identifier: Apache-2.0 */
/* mail_json.c: the stored properties of a mail, as JSON */
#include "mail_json.h"

#include <json-c/json.h>

#include "crm_array.h"
#include "crm_json.h"

/* Return a new array of MAIL's attachments, whose ids are IDS. */
static json_object *attachments_of(const crm_mail_t *mail,
                                   const apr_array_header_t *ids)
{
    json_object *list = json_object_new_array();

    for (int i = 0; i < mail->attachments->nelts; i++) {
        const crm_mail_attachment_t *one =
            &APR_ARRAY_IDX(mail->attachments, i, crm_mail_attachment_t);
        json_object *object = json_object_new_object();

        crm_json_add_text(object, "id", APR_ARRAY_IDX(ids, i, const char *));
        json_object_object_add(object, "filename", one->name
                               ? json_object_new_string(one->name) : NULL);
        crm_json_add_text(object, "content_type", one->type);
        json_object_object_add(object, "size",
                               json_object_new_int64((int64_t)one->size));
        json_object_object_add(object, "stored",
                               json_object_new_boolean(one->body != NULL));
        json_object_array_add(list, object);
    }
    return list;
}

/* Add NUMBER to OBJECT as NAME, unless it is 0. */
static void add_number(json_object *object, const char *name, apr_size_t number)
{
    if (number) {
        json_object_object_add(object, name,
                               json_object_new_int64((int64_t)number));
    }
}

static json_object *bounces_of(const crm_mail_t *mail)
{
    json_object *list = json_object_new_array();

    for (int i = 0; i < mail->bounces->nelts; i++) {
        const crm_mail_bounce_t *one =
            &APR_ARRAY_IDX(mail->bounces, i, crm_mail_bounce_t);
        json_object *object = json_object_new_object();

        crm_json_add_text(object, "address", one->address);
        crm_json_add_text(object, "status", one->status);
        crm_json_add_text(object, "action", one->action);
        crm_json_add_text(object, "diagnostic", one->diagnostic);
        json_object_array_add(list, object);
    }
    return list;
}

/* Return a new array of the texts in LIST. */
static json_object *list_of(const apr_array_header_t *list)
{
    json_object *made = json_object_new_array();

    for (int i = 0; i < list->nelts; i++) {
        json_object_array_add(made, json_object_new_string(
                                  APR_ARRAY_IDX(list, i, const char *)));
    }
    return made;
}

/* Return a new array of the names of what was left out of MAIL. */
static json_object *truncated_of(const crm_mail_t *mail)
{
    static const struct {
        unsigned bit;
        const char *name;
    } names[] = {
        {CRM_MAIL_CUT_LEVELS, "levels"}, {CRM_MAIL_CUT_PARTS, "parts"},
        {CRM_MAIL_CUT_HEADERS, "headers"}, {CRM_MAIL_CUT_HTML, "html"},
        {CRM_MAIL_CUT_ATTRIBUTES, "attributes"}, {CRM_MAIL_CUT_TEXT, "text"},
    };
    json_object *list = json_object_new_array();

    for (size_t i = 0; i < CRM_NELTS(names); i++) {
        if (mail->cut & names[i].bit) {
            json_object_array_add(list, json_object_new_string(
                                      names[i].name));
        }
    }
    return list;
}

const char *crm_mail_metadata(const crm_mail_t *mail,
                              const apr_array_header_t *ids,
                              const char *recipient, const char *automatic,
                              apr_pool_t *pool)
{
    json_object *object = json_object_new_object();

    crm_json_add_text(object, "from", mail->from);
    crm_json_add_text(object, "reply_to", mail->reply_to);
    crm_json_add_text(object, "original_sender", mail->original_sender);
    crm_json_add_text(object, "message_id", mail->message_id);
    crm_json_add_text(object, "in_reply_to", mail->in_reply_to);
    if (mail->references_header->nelts) {
        json_object_object_add(object, "references",
                               list_of(mail->references_header));
    }
    crm_json_add_text(object, "thread_index", mail->thread_index);
    crm_json_add_text(object, "to", mail->to);
    crm_json_add_text(object, "cc", mail->cc);
    crm_json_add_text(object, "recipient", recipient);
    crm_json_add_text(object, "subject", mail->subject);
    crm_json_add_text(object, "date", mail->date);
    crm_json_add_text(object, "automatic", automatic);
    if (mail->generated && automatic && !strcmp(automatic, "auto-reply")) {
        json_object_object_add(object, "generated", json_object_new_boolean(1));
    }
    if (mail->html) {
        crm_json_add_text(object, "made_from", "text/html");
    }
    add_number(object, "characters_cut", mail->text_cut);
    if (mail->cut) {
        json_object_object_add(object, "truncated", truncated_of(mail));
    }
    if (mail->bounces->nelts) {
        json_object_object_add(object, "bounces", bounces_of(mail));
    }
    if (mail->attachments->nelts) {
        json_object_object_add(object, "attachments", attachments_of(
                                   mail, ids));
    }
    add_number(object, "more_attachments", mail->more_attachments);
    return crm_json_end(object, pool);
}

const char *crm_mail_references(const crm_mail_t *mail, apr_pool_t *pool)
{
    return crm_json_end(list_of(mail->references), pool);
}
