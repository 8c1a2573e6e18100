/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_prompt.c: prompts: tasks that a user may choose (contract 21.4) */
#include "mcp_prompt.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"

#include "mcp_list.h"

/* A prompt. It has no data of the workspace, only names of tools. */
typedef struct prompt_t {
    const char *name;
    const char *description;
    const char *argument;       /* it has one, which is required; or NULL */
    const char *argument_doc;
    const char *text;           /* with %s for the argument */
} prompt_t;

static const prompt_t prompts[] = {
    {"contact_brief", "Prepare for talking to a person",
     "contact", "a name, an address, a number or an id",
     "Find the contact \"%s\" with contacts_find, or take it as an id if it is"
     " one. Read contacts_timeline. Tell me in a few lines: who this is, what"
     " was said last and by whom, what is open, and what I should do next."
     " If several contacts match, ask me which one I mean."},
    {"draft_reply", "Draft an answer in a conversation, without sending it",
     "conversation", "the id of the conversation",
     "Read the conversation \"%s\" with conversations_read. Draft an answer in"
     " the language and the tone of the conversation, as the agent's. Show it"
     " to me. Do not call conversations_reply before I say so."},
    {"pipeline_review", "Find deals that have come to a stop", NULL, NULL,
     "Read pipelines_list, pipelines_stages_list and pipeline_cards_list, and"
     " contacts_list with the ids of their contacts. For each stage tell me how"
     " many cards there are, and what the deals of their contacts are worth. List"
     " the cards that nobody has touched for two weeks, with their contact, and"
     " what could be done about each."},
    {"unanswered", "Find people who wait for an answer", NULL, NULL,
     "Read conversations_list with unanswered true and active true, by the time"
     " of the last message, the oldest first, and each of these with"
     " conversations_read. List them with the time since the person's last"
     " message, the longest first, and in one line what each person wants."},
};

static void add_string(crm_buf_t *out, const char *name, const char *text)
{
    crm_buf_printf(out, "\"%s\":", name);
    crm_buf_json_text(out, text);
}

static void add_prompt(crm_buf_t *out, const prompt_t *prompt)
{
    crm_buf_putc(out, '{');
    add_string(out, "name", prompt->name);
    crm_buf_putc(out, ',');
    add_string(out, "description", prompt->description);
    if (prompt->argument) {
        crm_buf_puts(out, ",\"arguments\":[{");
        add_string(out, "name", prompt->argument);
        crm_buf_putc(out, ',');
        add_string(out, "description", prompt->argument_doc);
        crm_buf_puts(out, ",\"required\":true}]");
    }
    crm_buf_putc(out, '}');
}

/* A mcp_list_write_t. */
static void write_prompts(crm_buf_t *out, const crm_call_t *call,
                          const mcp_rights_t *rights)
{
    (void)call;
    (void)rights;
    for (size_t i = 0; i < CRM_NELTS(prompts); i++) {
        crm_buf_puts(out, i ? "," : "");
        add_prompt(out, &prompts[i]);
    }
}

crm_error_t *mcp_prompts_list(crm_call_t *call)
{
    return mcp_list(call, "prompts", write_prompts);
}

/* Return the prompt NAME (NULL: none), or NULL. */
static const prompt_t *find_prompt(const char *name)
{
    for (size_t i = 0; name && i < CRM_NELTS(prompts); i++) {
        if (!strcmp(prompts[i].name, name)) {
            return &prompts[i];
        }
    }
    return NULL;
}

/* Return, in POOL, the text of PROMPT with VALUE, its argument. */
static const char *fill(const prompt_t *prompt, const char *value,
                        apr_pool_t *pool)
{
    const char *place = strstr(prompt->text, "%s");

    return !place ? prompt->text
           : apr_pstrcat(pool, apr_pstrmemdup(pool, prompt->text, (apr_size_t)
                                              (place - prompt->text)),
                         value, place + 2, NULL);
}

static void answer_prompt(crm_call_t *call, const prompt_t *prompt,
                          const char *value)
{
    crm_buf_t *out = &call->response->body;

    mcp_begin_result(out, mcp_of(call));
    add_string(out, "description", prompt->description);
    crm_buf_puts(out, ",\"messages\":[{\"role\":\"user\",\"content\":{"
                 "\"type\":\"text\",");
    add_string(out, "text", fill(prompt, value, call->pool));
    crm_buf_puts(out, "}}]");
    mcp_end_result(out);
}

crm_error_t *mcp_prompts_get(crm_call_t *call)
{
    const mcp_message_t *message = &mcp_of(call)->message;
    const prompt_t *prompt = find_prompt(message->name);
    const char *value = prompt && prompt->argument
        ? mcp_short_text(crm_json_find(message->arguments,
                                       prompt->argument), call->pool) : NULL;
    mcp_rights_t rights;

    CRM_ERR(mcp_rights_read(&rights, call));
    call->response->route = "mcp prompts/get";
    if (!prompt) {
        mcp_answer_error(call, 200, MCP_INVALID_PARAMS, message->name
                         ? "Unknown prompt: prompts/list has their names"
                         : "The name of the prompt must be a string", NULL);
    }
    else if (prompt->argument && (!value || !*value)) {
        mcp_answer_error(call, 200, MCP_INVALID_PARAMS, apr_pstrcat(
                             call->pool, "The argument ", prompt->argument,
                             " is required: a text of at most 1024 bytes",
                             NULL), NULL);
    }
    else {
        answer_prompt(call, prompt, value);
    }
    return NULL;
}
