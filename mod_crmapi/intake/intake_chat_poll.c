/* SPDX-License-Identifier: Apache-2.0 */
/* intake_chat_poll.c: long polls for new messages of a chat */
#include "intake_chat_poll.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_address.h"
#include "crm_intake_site.h"
#include "crm_query.h"
#include "crm_slots.h"
#include "intake_chat_load.h"

#define WAIT_MAX 25             /* seconds */
#define SHARE 4                 /* an address may have this part of the waiting
                                   polls of a process */
/* Interval of queries while waiting. Notifiers do not cover events stored by
 * other hosts, and a closed connection is only noticed at this interval. */
#define QUERY_INTERVAL apr_time_from_sec(5)
#define RETRY_FULL 3            /* seconds, when the maximum of waiting polls is
                                   reached */
#define RETRY_GONE 1            /* seconds, when the process is stopping */

/* The waiting polls of this process. */
static crm_slots_t slots = CRM_SLOTS_INITIALIZER;

/* A poll. */
typedef struct poll_t {
    crm_chat_t *chat;
    crm_chat_cursor_t cursor;
    apr_time_t until;
    crm_waiter_t *waiter;       /* NULL unless waiting */
    int retry_after;            /* seconds; 0: the client may poll again at
                                   once */
    PGresult *messages;
    crm_chat_conversations_t conversations;
    /* The names that are watched, those of the visitor and of CONVERSATIONS,
     * and their counts in the notifier. */
    const char *names[CRM_CHAT_CONVERSATIONS_MAX + 1];
    apr_uint32_t counts[CRM_CHAT_CONVERSATIONS_MAX + 1];
    int count;
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
    int seconds = 0;

    crm_chat_cursor_read(&poll->cursor, NULL);
    crm_query_parse(&params, call->request->query, call->pool);
    for (int i = 0; i < params->nelts; i++) {
        const crm_query_param_t *param = &APR_ARRAY_IDX(params, i,
                                                        crm_query_param_t);
        const char *rule = param->bad;

        if (!rule && !strcmp(param->name, "wait")) {
            rule = read_wait(&seconds, param->value);
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
    poll->until = apr_time_now() + apr_time_from_sec(seconds);
    return error;
}

/* ---- waiting ------------------------------------------------------------- */

static crm_notifier_t *notifier_of(const poll_t *poll)
{
    return crm_intake_site(poll->chat->call)->notifier;
}

/* Set *CLIENT to the networks of CALL's client. An address may have a quarter of
 * the waiting polls of this process, and the /48 of an IPv6 address half of them,
 * unless addresses have no limit (CrmApiAddressLimit 0). */
static void find_client(crm_notifier_client_t *client, const crm_call_t *call)
{
    int limited = call->service->settings.address_limit > 0;
    int pollers = crm_intake_site(call)->pollers;

    crm_address_names(client->nets, call->request->address, call->pool);
    for (int i = 0; i < CRM_NOTIFIER_NETS; i++) {
        int most = pollers * (i + 1) / SHARE;

        client->most[i] = !limited ? 0 : most ? most : 1;
    }
}

/* Return whether POLL may wait: there is room among the waiting polls of this
 * process and among those of its client, and it is its visitor's only one. */
static int enter(poll_t *poll)
{
    const crm_call_t *call = poll->chat->call;
    crm_notifier_client_t client;

    if (poll->waiter) {
        return 1;
    }
    if (!crm_slots_try(&slots, crm_intake_site(call)->pollers)) {
        return 0;
    }
    find_client(&client, call);
    poll->waiter = crm_notifier_enter(notifier_of(poll), poll->chat->visitor,
                                      &client, poll->until);
    if (!poll->waiter) {
        crm_slots_leave(&slots);
    }
    return poll->waiter != NULL;
}

static void leave(poll_t *poll)
{
    if (poll->waiter) {
        crm_notifier_leave(notifier_of(poll), poll->waiter);
        poll->waiter = NULL;
        crm_slots_leave(&slots);
    }
}

static void watch(poll_t *poll, const char *name)
{
    poll->names[poll->count] = name;
    poll->counts[poll->count++] = crm_notifier_count(notifier_of(poll), name);
}

/* Query new messages. The notifier's counts are read before the query, so that
 * no message is missed. If there are none, the page has shown all before the
 * cursor. */
static crm_error_t *query_messages(poll_t *poll)
{
    poll->count = 0;
    watch(poll, poll->chat->visitor);
    CRM_ERR(crm_chat_conversations(&poll->conversations, poll->chat));
    for (int i = 0; i < poll->conversations.count; i++) {
        watch(poll, poll->conversations.ids[i]);
    }
    CRM_ERR(crm_chat_after(&poll->messages, &poll->cursor, poll->chat,
                           &poll->conversations));
    return PQntuples(poll->messages) ? NULL
           : crm_chat_seen(poll->chat, &poll->conversations, &poll->cursor);
}

/* Sleep until a notification, QUERY_INTERVAL or the timeout. Return 0 if the
 * client has closed the connection or the process is stopping. */
static int sleep_until_notified(const poll_t *poll)
{
    const crm_call_t *call = poll->chat->call;
    apr_interval_time_t timeout = poll->until - apr_time_now();

    crm_notifier_wait(notifier_of(poll), poll->waiter, poll->names,
                      poll->counts, poll->count,
                      timeout < QUERY_INTERVAL ? timeout : QUERY_INTERVAL);
    return !call->service->gone(call->request->baton);
}

/* Query until there are new messages or the timeout. POLL has no database
 * connection while it waits. */
static crm_error_t *wait_for_news(poll_t *poll)
{
    for (;;) {
        CRM_ERR(query_messages(poll));
        if (PQntuples(poll->messages) || apr_time_now() >= poll->until) {
            return NULL;
        }
        if (!enter(poll)) {
            poll->retry_after = RETRY_FULL;
            return NULL;
        }
        crm_call_release(poll->chat->call);
        if (!sleep_until_notified(poll)) {
            poll->retry_after = RETRY_GONE;
            return NULL;
        }
    }
}

crm_error_t *crm_chat_poll(crm_chat_t *chat)
{
    crm_buf_t *body = &chat->call->response->body;
    poll_t poll = {.chat = chat};
    crm_error_t *error;

    CRM_ERR(read_query(&poll));
    error = wait_for_news(&poll);
    leave(&poll);
    CRM_ERR(error);
    crm_buf_puts(body, "{\"data\":{");
    crm_chat_write_messages(body, poll.messages, &poll.cursor);
    crm_buf_printf(body, ",\"retry_after\":%d}}", poll.retry_after);
    return NULL;
}
