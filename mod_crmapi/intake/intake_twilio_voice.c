/* SPDX-License-Identifier: Apache-2.0 */
/* intake_twilio_voice.c: the status of calls and recordings */
#include "intake_twilio_voice.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_channel.h"

#define SECONDS_DIGITS 8

/* The statuses of a call that has ended. */
static const char *const over[] = {
    "completed", "busy", "failed", "no-answer", "canceled",
};

/* The conversation of the call $1 in the workspace $2 (id or slug; NULL: any),
 * if it is not held.
 * A recording's status does not name the number that was called. */
static const char call_sql[] =
    "SELECT w.id, c.id FROM crmapi.workspace w, LATERAL ("
    "SELECT t.id FROM crmapi.conversation t WHERE t.workspace_id = w.id"
    " AND t.thread = $1::text AND t.type = " CRM_CODE_PHONE
    " AND t.deleted IS NOT TRUE ORDER BY t.created_at DESC, t.id DESC"
    " LIMIT 1) c"
    " WHERE " CRM_INTAKE_SERVES("w.id") " LIMIT 2";

int crm_twilio_minutes(char *out, apr_size_t size, const char *seconds)
{
    size_t len = strlen(seconds);
    apr_int64_t parts;

    if (!len || len > SECONDS_DIGITS
        || strspn(seconds, "0123456789") != len) {
        return 0;
    }
    /* no floating point: a locale may print a decimal comma */
    parts = (apr_atoi64(seconds) * 10000 + 30) / 60;
    apr_snprintf(out, size, "%" APR_INT64_T_FMT ".%04d", parts / 10000,
                 (int)(parts % 10000));
    return 1;
}

/* Return the URL of the recording in HOOK, or NULL: also of one that is not there
 * yet, or never will be. */
static const char *recording_of(const crm_twilio_hook_t *hook)
{
    const char *url = crm_twilio_get(hook, "RecordingUrl");
    const char *status = crm_twilio_get(hook, "RecordingStatus");

    return url && (!status || !strcmp(status, "completed"))
           && (!strncmp(url, "https://", 8) || !strncmp(url, "http://", 7))
           ? url : NULL;
}

/* Return whether HOOK tells the words of a call. */
static int says_words(const crm_twilio_hook_t *hook)
{
    const char *status = crm_twilio_get(hook, "TranscriptionStatus");
    const char *text = crm_twilio_get(hook, "TranscriptionText");

    return text && *text && (!status || !strcmp(status, "completed"));
}

/* Set EVENT's id to that of WHAT about CALL_SID. */
static void name_event(crm_intake_event_t *event,
                       const crm_twilio_hook_t *hook, const char *call_sid,
                       const char *what)
{
    event->binds[CRM_INTAKE_EVENT_ID] =
        apr_pstrcat(hook->call->pool, "twilio:", call_sid, ":", what, NULL);
}

/* Fill EVENT with what was said in the call of HOOK, as it was transcribed: by the
 * caller, or, in a call of ours, by both. */
static void fill_words(crm_intake_event_t *event, const crm_twilio_hook_t *hook)
{
    const char *direction = crm_twilio_get(hook, "Direction");

    event->binds[CRM_INTAKE_DIRECTION] = "inbound";
    event->binds[CRM_INTAKE_ROLE] = direction && !strncmp(direction,
                                                          "outbound", 8)
                                    ? "system" : NULL;
    event->binds[CRM_INTAKE_MESSAGE_KEY] = crm_twilio_get(hook,
                                                          "TranscriptionSid");
    event->binds[CRM_INTAKE_CONTENT] = crm_twilio_get(hook,
                                                      "TranscriptionText");
}

/* Store what HOOK has of the call CALL_SID, recording and words, as the event of WHAT
 * with SID (may be NULL). The request need not have phone numbers, so the workspace is
 * found by CALL_SID. */
static crm_error_t *take_part(const crm_twilio_hook_t *hook,
                              const char *call_sid, const char *what,
                              const char *sid)
{
    crm_intake_event_t event = {{NULL}};
    const char *values[2];
    PGresult *result;

    values[0] = call_sid;
    values[1] = crm_twilio_workspace(hook);
    CRM_ERR(crm_call_run(&result, hook->call, call_sql, 2, values));
    if (PQntuples(result) != 1) {
        return NULL;
    }
    name_event(&event, hook, call_sid,
               apr_pstrcat(hook->call->pool, what, sid ? ":" : "", sid, NULL));
    event.binds[CRM_INTAKE_CONVERSATION] = crm_db_value(result, 0, 1);
    event.binds[CRM_INTAKE_AUDIO_URL] = recording_of(hook);
    if (says_words(hook)) {
        fill_words(&event, hook);
    }
    return crm_twilio_update(hook, crm_db_value(result, 0, 0), &event);
}

/* Store the recording of CALL_SID. */
static crm_error_t *take_recording(const crm_twilio_hook_t *hook,
                                   const char *call_sid)
{
    return recording_of(hook)
           ? take_part(hook, call_sid, "recording",
                       crm_twilio_get(hook, "RecordingSid")) : NULL;
}

/* Set EVENT to the call CALL_SID of HOOK with STATUS. OURS: the agent was the
 * caller. */
static void fill_event(crm_intake_event_t *event,
                       const crm_twilio_hook_t *hook, const char *call_sid,
                       const char *status, int ours)
{
    apr_pool_t *pool = hook->call->pool;
    const char *seconds = crm_twilio_get(hook, "CallDuration");
    const char *them = crm_twilio_phone(crm_twilio_get(hook, ours ? "To"
                                                       : "From"), pool);
    char *minutes = apr_palloc(pool, 32);

    event->binds[CRM_INTAKE_CHANNEL] = CRM_CODE_PHONE;
    event->binds[CRM_INTAKE_THREAD] = call_sid;
    event->binds[CRM_INTAKE_DIRECTION] = ours ? "outbound" : "inbound";
    event->binds[ours ? CRM_INTAKE_TO_PHONE : CRM_INTAKE_FROM_PHONE] = them;
    event->binds[CRM_INTAKE_FROM_NAME] = crm_twilio_get(hook, "CallerName");
    event->binds[CRM_INTAKE_AUDIO_URL] = recording_of(hook);
    if (CRM_IS_ONE_OF(status, over)) {
        event->binds[CRM_INTAKE_ENDED] = "t";
        if (seconds && !strcmp(status, "completed")
            && crm_twilio_minutes(minutes, 32, seconds)) {
            event->binds[CRM_INTAKE_MINUTES] = minutes;
        }
    }
    name_event(event, hook, call_sid, status);
}

/* Store the STATUS of the call CALL_SID. */
static crm_error_t *take_status(const crm_twilio_hook_t *hook,
                                const char *call_sid, const char *status)
{
    const char *direction = crm_twilio_get(hook, "Direction");
    int ours = direction && !strncmp(direction, "outbound", 8);
    const char *our_number = crm_twilio_get(hook, ours ? "From" : "To");
    crm_intake_event_t event = {{NULL}};
    crm_intake_agent_t agent;
    crm_intake_result_t result;

    CRM_ERR(crm_twilio_agent(&agent, hook, our_number));
    if (!agent.workspace_id) {
        return crm_twilio_unknown_number(hook, our_number);
    }
    event.binds[CRM_INTAKE_BOT_ID] = agent.bot_id;
    fill_event(&event, hook, call_sid, status, ours);
    return crm_twilio_take(&result, hook, agent.workspace_id, &event);
}

crm_error_t *crm_twilio_voice(const crm_twilio_hook_t *hook)
{
    const char *call_sid = crm_twilio_get(hook, "CallSid");
    const char *status = crm_twilio_get(hook, "CallStatus");

    if (!call_sid || (!status && !crm_twilio_get(hook, "RecordingUrl"))) {
        return crm_twilio_missing(hook, call_sid ? "CallStatus" : "CallSid");
    }
    CRM_ERR(says_words(hook)
            ? take_part(hook, call_sid, "words",
                        crm_twilio_get(hook, "TranscriptionSid"))
            : status ? take_status(hook, call_sid, status)
                     : take_recording(hook, call_sid));
    crm_twilio_answer(hook, NULL);
    return NULL;
}
