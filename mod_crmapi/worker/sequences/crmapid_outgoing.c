/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_outgoing.c: a step or an answer that is being sent */
#include "crmapid_outgoing.h"

#include <string.h>

#include "apr_base64.h"

#include "crm_db.h"
#include "crm_json.h"
#include "crm_phone.h"
#include "crm_value.h"
#include "crmapid_link.h"
#include "crmapid_markdown.h"

/* The columns of a source's "read". */
enum {
    CHANNEL, TO, SUBJECT, TEXT, OBJECTIVE, FROM_EMAIL, AGENT_EMAIL, FROM_PHONE,
    FROM_NAME, TO_NAME, PART, TAKEN, CONTENT_TYPE, COPIES, HAS_FILES, VOICE,
    VIA
};

/* The columns of a source's "files". */
enum { FILE_NAME, FILE_TYPE, FILE_DATA };

/* Return VALUE if it is not NULL, else DEFAULT_VALUE if it is not "", else
 * NULL. */
static const char *or_else(const char *value, const char *default_value)
{
    return value ? value : *default_value ? default_value : NULL;
}

/* Return the E.164 form of the number NUMBER (may be NULL), in POOL; NUMBER itself
 * if it has none: senders may have short codes and names. */
static const char *number_of(const char *number, apr_pool_t *pool)
{
    return number ? crm_phone_key(number, pool) : NULL;
}

/* Set the copies of MESSAGE to those of JSON, an array of addresses or NULL, as
 * they go over the wire, without its recipient. One without such a form makes it
 * unusable. */
static void set_copies(crmd_message_t *message, const char *json,
                       apr_pool_t *pool)
{
    json_object *list = json ? json_tokener_parse(json) : NULL;
    size_t count = crm_json_count(list);
    const char **copies = apr_pcalloc(pool, (count + 1) * sizeof(*copies));

    message->copies = copies;
    for (size_t i = 0; i < count && message->to; i++) {
        *copies = crmd_relay_wire(message->channel, json_object_get_string(
            json_object_array_get_idx(list, i)), pool);
        if (!*copies) {
            message->to = NULL;
        }
        else if (strcmp(*copies, message->to)) {
            copies++;
        }
    }
    *copies = NULL;
    json_object_put(list);
}

int crmd_outgoing_is_mail(const crmd_message_t *message)
{
    return crm_channel_is(message->channel, CRM_CHANNEL_EMAIL);
}

/* Set what only a mail has, from the first row of RESULT. */
static void make_mail(crmd_outgoing_t *sending, const PGresult *result)
{
    const crmd_config_t *config = sending->work->config;
    const char *type = crm_db_value(result, 0, CONTENT_TYPE);
    crmd_message_t *message = &sending->message;
    apr_pool_t *pool = sending->work->pool;

    message->from = or_else(crm_db_value(result, 0, FROM_EMAIL),
                            config->mail_from);
    sending->own = crm_db_value(result, 0, FROM_EMAIL);
    sending->agent_email = crm_db_value(result, 0, AGENT_EMAIL);
    message->subject = crm_db_value(result, 0, SUBJECT);
    message->subject_whole = sending->source->subject_whole;
    set_copies(message, crm_db_value(result, 0, COPIES), pool);
    if (message->text && type && !strcmp(type, "text/markdown")) {
        message->html = crmd_markdown_html(message->text, pool);
    }
    if (sending->source->unsubscribe) {
        sending->link = crmd_link_unsubscribe_head(
            config, message->workspace_id, sending->id, pool);
    }
}

/* Fill SENDING's message from the first row of RESULT. */
static void make_message(crmd_outgoing_t *sending, const PGresult *result)
{
    const crmd_config_t *config = sending->work->config;
    crmd_message_t *message = &sending->message;
    apr_pool_t *pool = sending->work->pool;
    int sms;

    sending->part = PQgetvalue(result, 0, PART);
    sending->was_sending = *PQgetvalue(result, 0, TAKEN) == 't';
    message->channel = crm_channel_way(PQgetvalue(result, 0, CHANNEL));
    message->id = sending->id;
    message->workspace_id = sending->work->job->workspace_id;
    message->to = crmd_relay_wire(message->channel,
                                  crm_db_value(result, 0, TO), pool);
    message->to_name = crm_db_value(result, 0, TO_NAME);
    if (message->to_name) {     /* a stranger may have given name and address */
        message->to_name = crm_value_show(message->to_name, pool);
    }
    message->from_name = crm_db_value(result, 0, FROM_NAME);
    message->text = crm_db_value(result, 0, TEXT);
    if (crmd_outgoing_is_mail(message)) {
        make_mail(sending, result);
    }
    else {
        sms = crm_channel_is(message->channel, CRM_CHANNEL_TEXT);
        message->from = number_of(or_else(crm_db_value(result, 0, FROM_PHONE),
                                          sms ? config->sms_from
                                          : config->voice_from), pool);
        message->objective = crm_db_value(result, 0, OBJECTIVE);
        message->voice = crm_db_value(result, 0, VOICE);
        message->via = sms ? crm_db_value(result, 0, VIA) : NULL;
    }
    sending->relay = crmd_relay_of(config, message->channel);
}

/* Set the files of SENDING's message. Errors: those of a query. */
static crm_error_t *read_files(crmd_outgoing_t *sending,
                               const char *const *values)
{
    crmd_work_t *work = sending->work;
    PGresult *result;
    crmd_file_t *files;
    int count;

    CRM_ERR(crmd_query(&result, work, sending->source->files, 2, values));
    count = PQntuples(result);
    files = apr_pcalloc(work->pool, (apr_size_t)(count + 1) * sizeof(*files));
    for (int i = 0; i < count; i++) {
        const char *data = PQgetvalue(result, i, FILE_DATA);
        char *bytes = apr_palloc(work->pool, strlen(data) + 1);

        files[i].name = PQgetvalue(result, i, FILE_NAME);
        files[i].type = PQgetvalue(result, i, FILE_TYPE);
        files[i].len = (apr_size_t)apr_base64_decode_binary(
            (unsigned char *)bytes, data);
        files[i].data = bytes;
    }
    sending->message.files = files;
    sending->message.file_count = count;
    return NULL;
}

crm_error_t *crmd_outgoing_read(int *exists_p, crmd_outgoing_t *sending,
                                crmd_work_t *work,
                                const crmd_source_t *source)
{
    const char *values[2];
    PGresult *result;

    memset(sending, 0, sizeof(*sending));
    sending->work = work;
    sending->source = source;
    sending->group = crmd_payload(work, source->group_member);
    sending->id = crmd_payload(work, source->id_member);
    values[0] = work->job->workspace_id;
    values[1] = sending->id;
    CRM_ERR(crmd_query(&result, work, source->read, 2, values));
    *exists_p = PQntuples(result) > 0;
    if (*exists_p) {
        make_message(sending, result);
        if (source->files && *PQgetvalue(result, 0, HAS_FILES) == 't') {
            return read_files(sending, values);
        }
    }
    return NULL;
}
