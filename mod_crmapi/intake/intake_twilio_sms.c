/* SPDX-License-Identifier: Apache-2.0 */
/* intake_twilio_sms.c: incoming messages and the status of sent ones */
#include "intake_twilio_sms.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_channel.h"
#include "crm_json.h"
#include "crm_text.h"
#include "crm_twilio_error.h"
#include "crm_uuid.h"
#include "intake_keyword.h"

#define MEDIA_MAX 50            /* Twilio's own limit is 10 */

/* Return what the message of HOOK requests, as crm_intake_keyword() does.
 * Twilio sets OptOutType if its Advanced Opt-Out has recognised a keyword, in
 * the words of the account: that wins. */
static int effect_of(const crm_twilio_hook_t *hook)
{
    const char *type = crm_twilio_get(hook, "OptOutType");
    const char *body = crm_twilio_get(hook, "Body");

    return type && *type ? crm_intake_keyword(type, hook->call->pool)
           : body ? crm_intake_keyword(body, hook->call->pool) : 0;
}

/* Return the SID of the message that HOOK is about, or NULL. */
static const char *sid_of(const crm_twilio_hook_t *hook)
{
    const char *sid = crm_twilio_get(hook, "MessageSid");

    return sid ? sid : crm_twilio_get(hook, "SmsSid");
}

/* Add the media of HOOK's message to OBJECT. */
static void add_media(json_object *object, const crm_twilio_hook_t *hook)
{
    apr_pool_t *pool = hook->call->pool;
    const char *count = crm_twilio_get(hook, "NumMedia");
    apr_int64_t media = count ? apr_atoi64(count) : 0;
    json_object *list = json_object_new_array();

    for (int i = 0; i < media && i < MEDIA_MAX; i++) {
        const char *url = crm_twilio_get(hook, apr_psprintf(pool,
                                                            "MediaUrl%d", i));
        const char *type = apr_psprintf(pool, "MediaContentType%d", i);

        if (url) {
            json_object *one = json_object_new_object();

            crm_json_add_text(one, "url", url);
            crm_json_add_text(one, "type", crm_twilio_get(hook, type));
            json_object_array_add(list, one);
        }
    }
    if (json_object_array_length(list)) {
        json_object_object_add(object, "attachments", list);
    }
    else {
        json_object_put(list);
    }
}

/* A parameter, and its name in the metadata. */
typedef struct known_t {
    const char *parameter, *name;
} known_t;

/* The parts of a place in words, and its coordinates, which it has both. */
static const known_t place[] = {
    {"Label", "label"}, {"Address", "address"},
    {"Latitude", "latitude"}, {"Longitude", "longitude"},
};

/* The ad that a person has come from. */
static const known_t referral[] = {
    {"ReferralSourceUrl", "source_url"}, {"ReferralSourceId", "source_id"},
    {"ReferralSourceType", "source_type"}, {"ReferralHeadline", "headline"},
    {"ReferralBody", "body"}, {"ReferralMediaUrl", "media_url"},
    {"ReferralCtwaClid", "ctwa_clid"},
};

/* The message that is answered, or reacted to. */
static const known_t replied[] = {{"OriginalRepliedMessageSid", "replied_to"}};

/* Return whether HOOK's message shares a place, as people do by WhatsApp. */
static int has_place(const crm_twilio_hook_t *hook)
{
    return crm_twilio_get(hook, "Latitude") && crm_twilio_get(hook, "Longitude");
}

/* Add those of the COUNT parameters KNOWN that HOOK has to OBJECT. */
static void add_known(json_object *object, const known_t *known, size_t count,
                      const crm_twilio_hook_t *hook)
{
    for (size_t i = 0; i < count; i++) {
        const char *value = crm_twilio_get(hook, known[i].parameter);

        if (value) {
            crm_json_add_text(object, known[i].name, value);
        }
    }
}

/* Add those of the COUNT parameters KNOWN that HOOK has as the object NAME to OBJECT,
 * if it has any. */
static void add_group(json_object *object, const char *name,
                      const known_t *known, size_t count,
                      const crm_twilio_hook_t *hook)
{
    json_object *group = json_object_new_object();

    add_known(group, known, count, hook);
    if (json_object_object_length(group)) {
        json_object_object_add(object, name, group);
    }
    else {
        json_object_put(group);
    }
}

/* Return the text of HOOK's message: a place alone has none, and what was chosen of the
 * buttons or the list of a message may have its own alone. */
static const char *content_of(const crm_twilio_hook_t *hook)
{
    static const char *const names[] = {"Body", "ButtonText", "ListTitle"};
    const char *body = NULL, *text = "";

    for (size_t i = 0; i < CRM_NELTS(names) && !body; i++) {
        body = crm_twilio_get(hook, names[i]);
    }
    if (body || !has_place(hook)) {
        return body ? body : "";
    }
    for (size_t i = 0; i < CRM_NELTS(place); i++) {
        const char *value = crm_twilio_get(hook, place[i].parameter);

        if (value) {
            text = crm_text_listed(text, value, hook->call->pool);
        }
    }
    return text;
}

/* Return the metadata of HOOK's message as JSON. EFFECT: what it requests. */
static const char *metadata_of(const crm_twilio_hook_t *hook, int effect)
{
    json_object *object = json_object_new_object();
    const char *from = crm_twilio_get(hook, "From");

    add_media(object, hook);
    if (has_place(hook)) {
        add_group(object, "location", place, CRM_NELTS(place), hook);
    }
    add_group(object, "referral", referral, CRM_NELTS(referral), hook);
    add_known(object, replied, CRM_NELTS(replied), hook);
    if (from && crm_twilio_is_whatsapp(from)) {
        crm_json_add_text(object, "via", "whatsapp");
    }
    if (effect) {
        crm_json_add_text(object, "keyword", effect < 0 ? "stop"
                          : effect == 1 ? "start" : "help");
    }
    return crm_json_end(object, hook->call->pool);
}

/* ---- the greeting -------------------------------------------------------- */

/* Set *IS_P to whether PHONE is suppressed in WORKSPACE_ID. */
static crm_error_t *is_suppressed(int *is_p, const crm_twilio_hook_t *hook,
                                  const char *workspace_id, const char *phone)
{
    const char *values[2];
    PGresult *result;

    values[0] = workspace_id;
    values[1] = phone;
    CRM_ERR(crm_call_run(&result, hook->call,
                         "SELECT crmapi.is_suppressed($1::uuid, 'sms',"
                         " $2::text)", 2, values));
    *is_p = *PQgetvalue(result, 0, 0) == 't';
    return NULL;
}

/* Respond to HOOK, the message SID from PHONE that has opened its conversation
 * (RESULT), with AGENT's greeting, and store that as a message. A repeated
 * request gets the greeting again, since Twilio did not receive the first
 * response. */
static crm_error_t *greet(const crm_twilio_hook_t *hook,
                          const crm_intake_agent_t *agent, const char *sid,
                          const char *phone,
                          const crm_intake_result_t *result)
{
    crm_intake_event_t event = {{NULL}};
    crm_intake_result_t taken;
    int suppressed;

    CRM_ERR(is_suppressed(&suppressed, hook, agent->workspace_id, phone));
    if (suppressed) {
        crm_twilio_answer(hook, NULL);
        return NULL;
    }
    event.binds[CRM_INTAKE_EVENT_ID] =
        apr_pstrcat(hook->call->pool, "twilio:", sid, ":greeting", NULL);
    event.binds[CRM_INTAKE_CONVERSATION] = result->conversation_id;
    event.binds[CRM_INTAKE_DIRECTION] = "outbound";
    event.binds[CRM_INTAKE_ROLE] = "assistant";
    event.binds[CRM_INTAKE_AUTOMATIC] = "t";
    event.binds[CRM_INTAKE_TO_PHONE] = phone;
    event.binds[CRM_INTAKE_CONTENT] = agent->greeting;
    CRM_ERR(crm_twilio_take(&taken, hook, agent->workspace_id, &event));
    crm_twilio_answer(hook, agent->greeting);
    return NULL;
}

/* ---- webhooks ------------------------------------------------------------ */

/* Set *EVENT to the message SID of HOOK for AGENT. EFFECT: what it requests. */
static void fill_event(crm_intake_event_t *event,
                       const crm_twilio_hook_t *hook,
                       const crm_intake_agent_t *agent, const char *sid,
                       int effect)
{
    apr_pool_t *pool = hook->call->pool;
    const char *from = crm_twilio_get(hook, "From");
    const char *phone = crm_twilio_phone(from, pool);

    memset(event, 0, sizeof(*event));
    event->binds[CRM_INTAKE_EVENT_ID] = apr_pstrcat(pool, "twilio:", sid,
                                                    NULL);
    event->binds[CRM_INTAKE_CHANNEL] = CRM_CODE_TEXT;
    event->binds[CRM_INTAKE_BOT_ID] = agent->bot_id;
    event->binds[CRM_INTAKE_FROM_PHONE] = phone;
    event->binds[CRM_INTAKE_FROM_NAME] = crm_twilio_get(hook, "ProfileName");
    if (!phone) {
        /* an alphanumeric sender, or one of WhatsApp who hides the number: there is
         * none to identify the participant */
        event->binds[CRM_INTAKE_THREAD] =
            apr_pstrcat(pool, "twilio:", from ? from : sid, NULL);
        if (!event->binds[CRM_INTAKE_FROM_NAME]) {
            event->binds[CRM_INTAKE_FROM_NAME] = from;
        }
    }
    event->binds[CRM_INTAKE_MESSAGE_KEY] = sid;
    event->binds[CRM_INTAKE_CONTENT] = content_of(hook);
    event->binds[CRM_INTAKE_METADATA] = metadata_of(hook, effect);
    crm_intake_keyword_apply(event, effect);
}

crm_error_t *crm_twilio_sms(const crm_twilio_hook_t *hook)
{
    const char *sid = sid_of(hook), *to = crm_twilio_get(hook, "To");
    int effect = effect_of(hook);
    crm_intake_agent_t agent;
    crm_intake_event_t event;
    crm_intake_result_t result;

    if (!sid) {
        return crm_twilio_missing(hook, "MessageSid");
    }
    CRM_ERR(crm_twilio_agent(&agent, hook, to));
    if (!agent.workspace_id) {
        return crm_twilio_unknown_number(hook, to);
    }
    fill_event(&event, hook, &agent, sid, effect);
    CRM_ERR(crm_twilio_take(&result, hook, agent.workspace_id, &event));
    if (result.opened && !effect && agent.greeting && *agent.greeting
        && event.binds[CRM_INTAKE_FROM_PHONE]) {
        return greet(hook, &agent, sid, event.binds[CRM_INTAKE_FROM_PHONE],
                     &result);
    }
    crm_twilio_answer(hook, NULL);
    return NULL;
}

/* What Twilio's errors mean ("Error and Warning Dictionary"). */
static const struct {
    const char *code;
    const char *text;
} failures[] = {
    {"21211", "the number is not valid"},
    {"21408", "the account may not send to that country"},
    {"21610", "the recipient has opted out"},
    {"21612", "the number cannot be reached from the agent's"},
    {"21614", "the number cannot receive texts"},
    {"30003", "the phone is off or cannot be reached"},
    {"30004", "the recipient or the carrier blocks it"},
    {"30005", "the number does not exist or is out of service"},
    {"30006", "the number is a landline, or its carrier cannot be reached"},
    {"30007", "the carrier filtered it"},
    {"30008", "the carrier did not say why"},
    {"63003", "the recipient cannot be reached by WhatsApp"},
    {"63007", "the agent's number is none of WhatsApp"},
    {"63016", "WhatsApp takes no free text a day after the last message of the"
     " recipient"},
};

/* Return why the message of HOOK was not delivered; NULL if STATUS says no such
 * thing. */
static const char *failure_of(const crm_twilio_hook_t *hook,
                              const char *status)
{
    const char *code = crm_twilio_get(hook, "ErrorCode");

    if (strcmp(status, "failed") && strcmp(status, "undelivered")) {
        return NULL;
    }
    if (!code || strspn(code, "0123456789") != strlen(code)
        || strlen(code) > 6) {
        return "Twilio could not deliver it";
    }
    for (size_t i = 0; i < CRM_NELTS(failures); i++) {
        if (!strcmp(failures[i].code, code)) {
            return apr_psprintf(hook->call->pool, "%s (Twilio's error %s)",
                                failures[i].text, code);
        }
    }
    return apr_psprintf(hook->call->pool, "Twilio could not deliver it (error"
                        " %s)", code);
}

/* Return the id behind NAME, "message=", in the URL of HOOK, as crmapid has written
 * it; NULL if there is none. */
static const char *id_of(const crm_twilio_hook_t *hook, const char *name)
{
    const char *query = hook->call->request->query;
    const char *at = query ? strstr(query, name) : NULL;
    size_t len = strlen(name);
    char *id = apr_palloc(hook->call->pool, CRM_UUID_LEN + 1);

    return at && strlen(at) >= len + CRM_UUID_LEN
           && crm_uuid_parse(id, at + len, CRM_UUID_LEN) ? id : NULL;
}

/* Set *ID_P to the workspace whose status HOOK reports: that of the URL, if HOOK's
 * account may reach it, else of the agent whose number is the sender. The URL goes
 * first: a message may be from a number that many workspaces send from, such as one
 * of a Messaging Service, and an agent of another one has it. NULL: none. */
static crm_error_t *find_workspace(const char **id_p,
                                   const crm_twilio_hook_t *hook)
{
    static const char sql[] = "SELECT w.id FROM crmapi.workspace w"
        " WHERE w.id = $1::uuid AND " CRM_INTAKE_SERVES("$1::uuid");
    const char *values[2] = {id_of(hook, "workspace="),
                             crm_twilio_workspace(hook)};
    crm_intake_agent_t agent;
    PGresult *result;

    if (values[0]) {
        CRM_ERR(crm_call_run(&result, hook->call, sql, 2, values));
        if (PQntuples(result)) {
            *id_p = crm_db_value(result, 0, 0);
            return NULL;
        }
    }
    CRM_ERR(crm_twilio_agent(&agent, hook, crm_twilio_get(hook, "From")));
    *id_p = agent.workspace_id;
    return NULL;
}

crm_error_t *crm_twilio_status(const crm_twilio_hook_t *hook)
{
    const char *sid = sid_of(hook);
    const char *status = crm_twilio_get(hook, "MessageStatus");
    const char *workspace_id;
    crm_intake_event_t event = {{NULL}};

    if (!status) {
        status = crm_twilio_get(hook, "SmsStatus");
    }
    if (!sid || !status) {
        return crm_twilio_missing(hook, sid ? "MessageStatus" : "MessageSid");
    }
    CRM_ERR(find_workspace(&workspace_id, hook));
    if (workspace_id) {
        event.binds[CRM_INTAKE_EVENT_ID] =
            apr_pstrcat(hook->call->pool, "twilio:", sid, ":", status, NULL);
        event.binds[CRM_INTAKE_MESSAGE_KEY] = sid;
        event.binds[CRM_INTAKE_STATUS] = status;
        event.binds[CRM_INTAKE_ANSWER_ID] = id_of(hook, "message=");
        event.binds[CRM_INTAKE_FAILED] = failure_of(hook, status);
        event.binds[CRM_INTAKE_REASON] = event.binds[CRM_INTAKE_FAILED]
            ? crm_twilio_error_suppresses(crm_twilio_get(hook, "ErrorCode"))
            : NULL;
        CRM_ERR(crm_twilio_update(hook, workspace_id, &event));
    }
    /* A message that is not known is not an error. */
    crm_twilio_done(hook);
    return NULL;
}
