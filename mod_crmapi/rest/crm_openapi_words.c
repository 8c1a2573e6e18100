/* SPDX-License-Identifier: Apache-2.0 */
/* crm_openapi_words.c: what fields mean that say nothing else of themselves */
#include "crm_openapi_words.h"

#include <string.h>

#include "crm_array.h"

/* A field that needs other words has a "doc" of its own. */
static const struct {
    const char *name, *words;
} usual[] = {
    {"activity_type", "what kind it is"},
    {"address_line1", "street and number"},
    {"address_line2", "more of the address"},
    {"agent_role", "a free text"},
    {"agent_status", "a free text"},
    {"agent_type", "whom it serves"},
    {"allow_human_takeover", "a teammate may take over"},
    {"annual_revenue", "in a year"},
    {"approved_at", "when it was approved"},
    {"archived", "whether it is archived"},
    {"archived_at", "when it was archived"},
    {"assigned_at", "when it was assigned"},
    {"auto_approve", "without a review"},
    {"bot_id", "the agent that owns it"},
    {"channel", "how it is sent"},
    {"chat_avatar_image_url", "picture in the chat"},
    {"chat_avatar_intro", "words of the picture"},
    {"chat_greeting", "first words of the chat"},
    {"city", "city of the address"},
    {"code", "for programs"},
    {"companies", "the items"},
    {"company", "name of the company"},
    {"company_id", "the company"},
    {"company_type", "a free text"},
    {"contact_action", "what became of the contact"},
    {"contact_id", "the contact"},
    {"contacts", "the items"},
    {"content", "the text"},
    {"conversation_id", "the conversation"},
    {"country", "country of the address"},
    {"created", "what was created"},
    {"created_at", "when it was created"},
    {"custom_fields", "fields of your own"},
    {"data", "what was asked for"},
    {"deleted_at", "when it was deleted"},
    {"description", "a longer text"},
    {"details", "each wrong field"},
    {"email", "an e-mail address"},
    {"email_body", "text of the mail"},
    {"email_outbound_autoreply", "mails are answered"},
    {"email_subject", "subject of the mail"},
    {"emails", "e-mail addresses"},
    {"employee_count", "how many work there"},
    {"enabled_event_type_ids", "what can be booked"},
    {"enrollment_id", "the enrollment"},
    {"error", "what went wrong"},
    {"errors", "what was refused"},
    {"escalation_detection_enabled", "escalations are noticed"},
    {"expires_at", "when the key ends"},
    {"field", "which field is wrong"},
    {"filename", "name of the file"},
    {"first_name", "first name"},
    {"form_id", "the form"},
    {"goal_prompt", "what it shall achieve"},
    {"has_more", "whether there is a next page"},
    {"id", "id of this object"},
    {"idempotency_key", "makes it happen once"},
    {"index", "place in the request, from 0"},
    {"industry", "branch of business"},
    {"is_default", "whether it is the first choice"},
    {"is_primary", "whether it is the first choice"},
    {"is_private", "whether it is private"},
    {"job_title", "position at work"},
    {"last_active_at", "when something last happened"},
    {"last_message_at", "when the last message came"},
    {"last_name", "last name"},
    {"lead_source", "where it comes from"},
    {"linkedin_url", "profile at LinkedIn"},
    {"merged_at", "when it was merged"},
    {"message", "for people"},
    {"name", "its name"},
    {"next_cursor", "the next page; null: none"},
    {"notes", "free notes"},
    {"page", "number of the page, from 1"},
    {"page_size", "rows of a page"},
    {"pagination", "which part of the list it is"},
    {"phone_greeting", "first words of a call"},
    {"phone_number", "a phone number"},
    {"phone_numbers", "phone numbers"},
    {"pipeline_id", "the pipeline"},
    {"pipeline_stage_id", "the stage"},
    {"plan", "what the workspace may use"},
    {"popular_topics", "what people ask about"},
    {"postal_code", "postal code of the address"},
    {"reason", "why"},
    {"scheduled_for", "when it is to be sent"},
    {"scopes", "what the key may do"},
    {"sent_at", "when it was sent"},
    {"sentiment_analysis_enabled", "sentiments are analysed"},
    {"sentiment_summary", "the sentiment in words"},
    {"sequence_id", "the sequence"},
    {"sms", "why texts are not sent"},
    {"sms_body", "text of the SMS"},
    {"sort_order", "place in the sequence, from 1"},
    {"state", "state of the address"},
    {"status", "its state"},
    {"status_url", "path of the enrollment"},
    {"stop_on_reply", "whether an answer stops it"},
    {"stop_reason", "why it was stopped"},
    {"submitted_at", "when it was sent"},
    {"summary", "a short text"},
    {"tags", "labels"},
    {"template_id", "the sequence template"},
    {"timestamp", "when it happened"},
    {"title", "a short text"},
    {"to_identifier", "to whom it is sent"},
    {"tool_arguments", "what the tool was given"},
    {"tool_used", "name of the tool"},
    {"total", "how many there are in all"},
    {"total_pages", "how many pages there are"},
    {"type", "what kind it is"},
    {"updated", "what was updated"},
    {"updated_at", "when it last changed"},
    {"voice_objective", "what the call is for"},
    {"voice_script", "words of the call"},
    {"website", "address of the website"},
    {"workspace_id", "the workspace"},
};

/* Return the usual words of NAME, or NULL. */
static const char *words_of(const char *name)
{
    for (size_t i = 0; i < CRM_NELTS(usual); i++) {
        if (!strcmp(usual[i].name, name)) {
            return usual[i].words;
        }
    }
    return NULL;
}

int crm_openapi_is_usual(const char *text)
{
    for (size_t i = 0; i < CRM_NELTS(usual); i++) {
        if (!strcmp(usual[i].words, text)) {
            return 1;
        }
    }
    return 0;
}

static void add_words(json_object *schema);

/* Give words to PROPERTIES and what is within them. */
static void add_properties_words(json_object *properties)
{
    json_object_object_foreach(properties, name, property) {
        const char *words = words_of(name);

        if (words && !json_object_object_get_ex(property, "description", NULL)
            && !json_object_object_get_ex(property, "$ref", NULL)) {
            json_object_object_add(property, "description",
                                   json_object_new_string(words));
        }
        add_words(property);
    }
}

/* Give words to the properties of SCHEMA and of its items. */
static void add_words(json_object *schema)
{
    json_object *found;

    if (json_object_object_get_ex(schema, "properties", &found)) {
        add_properties_words(found);
    }
    if (json_object_object_get_ex(schema, "items", &found)) {
        add_words(found);
    }
}

void crm_openapi_words(json_object *schemas)
{
    json_object_object_foreach(schemas, name, schema) {
        (void)name;
        add_words(schema);
    }
}
