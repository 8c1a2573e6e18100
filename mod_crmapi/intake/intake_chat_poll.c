/* SPDX-License-Identifier: Apache-2.0 */
/* intake_chat_poll.c: long polls for new messages of a chat */
#include "intake_chat_poll.h"

#include <string.h>

#include "crm_address.h"
#include "crm_intake_site.h"
#include "crm_query.h"
#include "crm_time.h"
#include "intake_chat_load.h"

#define WAIT_MAX 25             /* seconds */
#define SHARE 4                 /* an address may have this part of the waiting
                                   polls of a process */
#define RETRY_FULL 3            /* seconds, when the maximum of waiting polls is
                                   reached */
#define RETRY_GONE 1            /* seconds, when the process is stopping */

/* A poll: the state of its call, which is served again when there may be
 * news. */
typedef struct poll_t {
    crm_chat_t *chat;           /* of this time */
    crm_chat_cursor_t cursor;
    int seconds;                /* that it may wait */
    crm_place_t *place;         /* NULL unless waiting */
} poll_t;

/* ---- parameters ---------------------------------------------------------- */

/* Set *SECONDS_P from TEXT. Return NULL or the rule that it breaks. */
static const char *read_wait(int *seconds_p, const char *text)
{
    size_t len = strlen(text);

    *seconds_p = 0;
    if (!len || len > 2 || strspn(text, "0123456789") != len) {
        return "must be from 0 to 25";
    }
    for (; *text; text++) {
        *seconds_p = 10 * *seconds_p + (*text - '0');
    }
    return *seconds_p > WAIT_MAX ? "must be from 0 to 25" : NULL;
}

/* Read the parameters of POLL's request. */
static crm_error_t *read_query(poll_t *poll)
{
    crm_call_t *call = poll->chat->call;
    crm_error_t *error = NULL;
    apr_array_header_t *params;

    poll->seconds = 0;
    crm_chat_cursor_read(&poll->cursor, NULL);
    crm_query_parse(&params, call->request->query, call->pool);
    for (int i = 0; i < params->nelts; i++) {
        const crm_query_param_t *param = &APR_ARRAY_IDX(params, i,
                                                        crm_query_param_t);
        const char *rule = param->bad;

        if (!rule && !strcmp(param->name, "wait")) {
            rule = read_wait(&poll->seconds, param->value);
        }
        else if (!rule && !strcmp(param->name, "after")) {
            rule = crm_chat_cursor_read(&poll->cursor, param->value)
                    ? NULL : "must be a cursor of an earlier response";
        }
        else if (!rule) {
            rule = "is not a known parameter";
        }
        if (rule) {
            crm_error_detail(&error, param->name, rule, call->pool);
        }
    }
    return error;
}

/* ---- waiting ------------------------------------------------------------- */

/* Set *CLIENT to POLL's. An address may have a quarter of the waiting polls of
 * this process, and the /48 of an IPv6 address half of them, unless addresses have
 * no limit (CrmApiAddressLimit 0). */
static void find_client(crm_places_client_t *client, const poll_t *poll)
{
    const crm_call_t *call = poll->chat->call;
    int limited = call->service->settings.address_limit > 0;
    int most = crm_intake_site(call)->pollers;

    client->owner = poll->chat->visitor;
    client->most = most;
    crm_address_names(client->nets, call->request->address, call->pool);
    if (call->service->threads) {
        most = call->service->threads(most, call->request->baton);
    }
    for (int i = 0; i < CRM_PLACES_NETS; i++) {
        int part = most * (i + 1) / SHARE;

        client->most_of[i] = !limited ? 0 : part ? part : 1;
    }
}

/* Return whether POLL may wait: there is room among the waiting polls of this
 * process and among those of its client, and it is its visitor's only one. */
static int enter(poll_t *poll)
{
    const crm_call_t *call = poll->chat->call;
    crm_places_client_t client;

    if (!poll->place) {
        find_client(&client, poll);
        poll->place = crm_places_enter(crm_intake_site(call)->places, &client,
                                       call->response->wait_until);
    }
    return poll->place != NULL;
}

static apr_status_t leave(void *baton)
{
    poll_t *poll = baton;

    if (poll->place) {
        crm_places_leave(poll->place);
        poll->place = NULL;
    }
    return APR_SUCCESS;
}

/* There is nothing new: let POLL wait, if it may. Return after how many seconds
 * its client may ask again if it does not wait. */
static int wait_for_news(poll_t *poll)
{
    crm_call_t *call = poll->chat->call;
    apr_time_t until = call->response->wait_until;

    if (!poll->seconds || (until && until <= crm_time_monotonic())) {
        return 0;
    }
    if (!until) {
        return RETRY_GONE;
    }
    if (enter(poll)) {
        call->response->placed = 1;
        crm_call_wait(call);
    }
    return RETRY_FULL;
}

/* Write POLL's response. If there are no new messages, the page has shown all
 * before the cursor. */
static crm_error_t *answer(poll_t *poll)
{
    crm_call_t *call = poll->chat->call;
    crm_buf_t *body = &call->response->body;
    crm_chat_conversations_t conversations;
    PGresult *messages;
    int retry_after = 0;

    crm_call_watch(call, poll->chat->workspace_id, poll->chat->visitor,
                   poll->seconds);
    CRM_ERR(crm_chat_conversations(&conversations, poll->chat));
    CRM_ERR(crm_chat_after(&messages, &poll->cursor, poll->chat,
                           &conversations));
    if (!PQntuples(messages)) {
        CRM_ERR(crm_chat_seen(poll->chat, &conversations, &poll->cursor));
        retry_after = wait_for_news(poll);
    }
    crm_buf_puts(body, "{\"data\":{");
    crm_chat_write_messages(body, messages, &poll->cursor);
    crm_buf_printf(body, ",\"retry_after\":%d}}", retry_after);
    return NULL;
}

crm_error_t *crm_chat_poll(crm_chat_t *chat)
{
    crm_call_t *call = chat->call;
    poll_t *poll = call->state;
    crm_error_t *error;

    if (!poll) {
        CRM_ERR(crm_access_charge_visitor(call, chat->visitor));
        poll = call->state = apr_pcalloc(call->pool, sizeof(*poll));
        apr_pool_cleanup_register(call->pool, poll, leave,
                                  apr_pool_cleanup_null);
    }
    poll->chat = chat;
    CRM_ERR(read_query(poll));
    error = answer(poll);
    if (!call->response->waits) {
        leave(poll);            /* before the client asks again */
    }
    return error;
}
