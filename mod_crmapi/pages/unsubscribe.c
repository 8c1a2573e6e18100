/* SPDX-License-Identifier: Apache-2.0 */
/* unsubscribe.c: one-click unsubscription (RFC 8058) */
#include "unsubscribe.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_channel.h"
#include "crm_form.h"
#include "crm_sequence.h"
#include "crm_text.h"
#include "crm_time.h"

/* The recipient of the step $2. It is kept when the contact is deleted. */
static const char step_sql[] =
    "SELECT s.channel, s.to_identifier, w.name"
    " FROM crmapi.enrollment_step s"
    " JOIN crmapi.workspace w ON w.id = s.workspace_id"
    " WHERE s.workspace_id = $1::uuid AND s.id = $2::uuid"
    " AND s.to_identifier <> ''";

/* The form field that mail programs (RFC 8058, 3.2) and the page send. */
#define FIELD "List-Unsubscribe"
#define VALUE "One-Click"

/* Return ADDRESS masked, in POOL. Mails are forwarded with their links: only
 * people who know the address should recognise it. */
static const char *mask(const char *address, apr_pool_t *pool)
{
    const char *at = strrchr(address, '@');
    size_t len = strlen(address), first = 1;

    if (!at) {
        return apr_pstrcat(pool, "…",
                           address + (len > 4 ? len - 2 : len), NULL);
    }
    while (((unsigned char)address[first] & 0xc0) == 0x80) {
        first++;                /* include the whole UTF-8 character */
    }
    return apr_pstrcat(pool, apr_pstrmemdup(pool, address, first), "…", at,
                       NULL);
}

/* Show PAGE's form for unsubscribing MASKED from the messages of NAME. */
static void ask(crm_page_t *page, const char *masked, const char *name)
{
    crm_buf_t *body = &page->response->body;

    crm_page_begin(page->response, 200, "Unsubscribe", page->pool);
    crm_html_put(body, "<p>Do you want to unsubscribe <strong>", masked,
                 "</strong> from all messages of ", name, "?</p>\n"
                 "<form method=\"post\">\n"
                 "<input type=\"hidden\" name=\"" FIELD "\" value=\"" VALUE
                 "\">\n<p class=\"bar\"><button class=\"main\">Unsubscribe"
                 "</button></p>\n</form>\n"
                 "<p class=\"small\">If you do nothing, nothing changes.</p>"
                 "\n", NULL);
    crm_page_end(page->response);
}

/* Suppress ADDRESS, which the channel with the way WAY uses, and confirm it. */
static crm_error_t *suppress(crm_page_t *page, const char *way,
                             const char *address, const char *name)
{
    crm_sequence_event_t event = {.event = CRM_EVENT_SUPPRESS};
    apr_time_t began;
    crm_error_t *error;
    crm_conn_t *conn;
    int stopped;

    event.workspace_id = page->token.workspace_id;
    if (crm_channel_is(crm_channel_way(way), CRM_CHANNEL_EMAIL)) {
        event.email = address;
    }
    else {
        event.phone_number = address;
    }
    event.reason = "unsubscribed";
    CRM_ERR(crm_call_conn(&conn, page->call));
    began = crm_time_monotonic();
    error = crm_sequence_event(&stopped, conn, &event, page->pool);
    crm_call_count(page->call, began);
    CRM_ERR(error);
    crm_page_begin(page->response, 200, "You are unsubscribed", page->pool);
    crm_html_put(&page->response->body, "<p role=\"status\" class=\"note "
                 "good\"><strong>", mask(address, page->pool), "</strong> "
                 "will get no more messages from ", name, ".</p>\n<p "
                 "class=\"small\">You may close this page.</p>\n", NULL);
    crm_page_end(page->response);
    return NULL;
}

/* Return whether the body of PAGE is that of RFC 8058. Some receivers of mail
 * send none, or one that ends with a line break. */
static int is_confirmed(const crm_page_t *page)
{
    const char *value = crm_form_get(page->fields, FIELD);
    apr_size_t len = value ? strlen(value) : 0;

    if (!page->fields->nelts) {
        return 1;
    }
    if (value) {
        crm_text_trim(&value, &len);
    }
    return len == sizeof(VALUE) - 1 && !memcmp(value, VALUE, len);
}

crm_error_t *crm_page_unsubscribe(crm_page_t *page)
{
    const char *values[2], *way, *address, *name;
    PGresult *result;

    values[0] = page->token.workspace_id;
    values[1] = page->token.subject_id;
    CRM_ERR(crm_call_run(&result, page->call, step_sql, 2, values));
    if (!PQntuples(result)) {
        crm_page_refuse(page->response, page->pool);
        return NULL;
    }
    way = crm_db_value(result, 0, 0);
    address = crm_db_value(result, 0, 1);
    name = crm_db_value(result, 0, 2);
    if (!page->posts) {
        ask(page, mask(address, page->pool), name);
        return NULL;
    }
    if (!is_confirmed(page)) {
        return crm_error_create(CRM_E_BAD_REQUEST, "The form must have "
                                FIELD "=" VALUE, page->pool);
    }
    return suppress(page, way, address, name);
}
