/* SPDX-License-Identifier: Apache-2.0 */
/* mail_event.c: what a mail to an agent is: the event of it (contract 17.5, 18.3) */
#include "mail_event.h"

#include <string.h>
#include <strings.h>

#include "apr_strings.h"

#include "crm_channel.h"
#include "crm_db.h"
#include "crm_email.h"
#include "crm_sql.h"
#include "mail_id.h"
#include "mail_json.h"

/* ---- the state in the database ------------------------------------------- */

/* One row about a mail:
 * - the step whose mail it answers or returns;
 * - whether it is one of crmapid's own;
 * - the number of the first of its people $9 that is not the agent itself, with or
 *   without a suffix of the local part;
 * - the number of mails from its sender with its Reply-To within an hour, at most $6;
 *   of one whose sender is known, because a trusted host says so ($10) or the contact
 *   answers, without claims, which anybody can send in the sender's name;
 * - the address that this step, or an answer, was sent to; the answer's id; the
 *   addresses of the answer's copies. */
#define STATE_SQL \
    "SELECT o.step_id," \
    " EXISTS (SELECT FROM crmapi.mail_named($1::uuid, ARRAY[$5::text]," \
    " NULL))," \
    " (SELECT p.n FROM unnest($9::text[]) WITH ORDINALITY p(address, n)" \
    " WHERE NOT ARRAY[crmapi.email_key(p.address)," \
    " crmapi.email_base(p.address)]" \
    " && ARRAY[crmapi.email_key(a.agent_email)," \
    " crmapi.email_key(a.email_outbound_email)]" \
    " ORDER BY p.n LIMIT 1)," \
    " (SELECT count(*) FROM (SELECT FROM crmapi.conversation c" \
    " JOIN crmapi.message m ON m.workspace_id = c.workspace_id" \
    " AND m.conversation_id = c.id WHERE c.workspace_id = $1::uuid" \
    " AND c.last_message_at > now() - interval '1 hour'" \
    " AND c.bot_id = a.id AND c.type = " CRM_CODE_EMAIL \
    " AND m.created_at > now() - interval '1 hour'" \
    " AND m.metadata ->> 'from' = $3::text AND m.metadata ->> 'reply_to'" \
    " IS NOT DISTINCT FROM $8::text AND (NOT known.so OR m.metadata" \
    " ->> 'verified' IS NULL) LIMIT $6::integer) t)," \
    " o.to_identifier, o.answer_id, (SELECT string_agg(copy, ' ')" \
    " FROM crmapi.message m, jsonb_array_elements_text(m.metadata -> 'cc') copy" \
    " WHERE m.workspace_id = $1::uuid AND m.id = o.answer_id)" \
    " FROM crmapi.agent a LEFT JOIN" \
    " crmapi.mail_named($1::uuid, $4::text[], $7::text[]) o ON true" \
    " CROSS JOIN LATERAL (SELECT $10::boolean OR EXISTS (" \
    "SELECT FROM crmapi.contact c WHERE c.workspace_id = $1::uuid" \
    " AND crmapi.email_key($3::text) = ANY (crmapi.email_keys(c.emails))" \
    " AND c.id IN ((SELECT e.contact_id FROM crmapi.enrollment_step s" \
    " JOIN crmapi.enrollment e ON e.workspace_id = s.workspace_id" \
    " AND e.id = s.enrollment_id" \
    " WHERE s.workspace_id = $1::uuid AND s.id = o.step_id)," \
    " (SELECT k.contact_id FROM crmapi.message m JOIN crmapi.conversation k" \
    " ON k.workspace_id = m.workspace_id AND k.id = m.conversation_id" \
    " WHERE m.workspace_id = $1::uuid AND m.id = o.answer_id)))) known(so)" \
    " WHERE a.workspace_id = $1::uuid AND a.id = $2::uuid"

/* Return the reply tokens of DELIVERY: in the addresses that the mail was sent
 * to; of a report, also those of the mails that it returns. */
static const apr_array_header_t *tokens_of(const crm_mail_delivery_t *delivery)
{
    const crm_mail_t *mail = delivery->mail;
    apr_array_header_t *tokens = apr_array_copy(delivery->pool, mail->tokens);

    for (int i = 0; i < mail->recipients->nelts; i++) {
        crm_mail_address_token(tokens, APR_ARRAY_IDX(mail->recipients, i,
                                                     const char *));
    }
    crm_mail_address_token(tokens, delivery->recipient);
    return tokens;
}

/* Return the addresses of the people that DELIVERY's mail may be from. */
static const apr_array_header_t *addresses_of(
    const crm_mail_delivery_t *delivery)
{
    const apr_array_header_t *people = delivery->mail->people;
    apr_array_header_t *addresses = apr_array_make(
        delivery->pool, people->nelts, sizeof(const char *));

    for (int i = 0; i < people->nelts; i++) {
        APR_ARRAY_PUSH(addresses, const char *) =
            APR_ARRAY_IDX(people, i, crm_mail_person_t).address;
    }
    return addresses;
}

/* Return whether a copy of the mail that DELIVERY's returns went to ADDRESS. */
static int is_copy(const crm_mail_delivery_t *delivery, const char *address)
{
    const char *rest = delivery->copies ? delivery->copies : "";

    while (*rest) {
        size_t len = strcspn(rest, " ");

        if (crm_email_equal(address, apr_pstrmemdup(delivery->pool, rest, len),
                            delivery->pool)) {
            return 1;
        }
        rest += len + (rest[len] == ' ');
    }
    return 0;
}

/* What a bounce says of those whom the returned mail was sent to. */
typedef struct returned_t {
    crm_mail_failure_t failure; /* of SENT_TO */
    const char *status;
    int copies;                 /* there are copies that were not delivered */
    const char *gone;           /* the addresses of copies that do not exist,
                                   with blanks between them, or NULL */
} returned_t;

/* Return ADDRESSES (NULL: none) with blanks between them, and before them ADDRESS, in
 * POOL. */
static const char *with_address(const char *addresses, const char *address,
                                apr_pool_t *pool)
{
    return apr_pstrcat(pool, address, addresses ? " " : NULL, addresses, NULL);
}

/* Add what ONE says of a copy to RETURNED, in POOL. */
static void add_copy(returned_t *returned, const crm_mail_bounce_t *one,
                     apr_pool_t *pool)
{
    returned->copies |= one->failure != CRM_MAIL_NO_FAILURE;
    if (one->failure == CRM_MAIL_NO_ADDRESS) {
        returned->gone = with_address(returned->gone, one->address, pool);
    }
}

/* Set RETURNED to what DELIVERY's mail, a bounce of the mail to SENT_TO, says: of
 * that address the entry for it; without one, the mildest, because a list or a
 * forwarding may have had several recipients. What names nobody may speak of a
 * copy: it does not say that SENT_TO does not exist. */
static void read_returned(returned_t *returned,
                          const crm_mail_delivery_t *delivery)
{
    const crm_mail_t *mail = delivery->mail;
    int known = 0, others = 0;

    memset(returned, 0, sizeof(*returned));
    for (int i = 0; i < mail->bounces->nelts; i++) {
        crm_mail_bounce_t one = APR_ARRAY_IDX(mail->bounces, i,
                                              crm_mail_bounce_t);
        int own = crm_email_equal(one.address, delivery->sent_to,
                                  delivery->pool);

        if (mail->failure > one.failure) {      /* it is the only one */
            one.failure = mail->failure;
            one.status = mail->status;
        }
        if (!own && is_copy(delivery, one.address)) {
            add_copy(returned, &one, delivery->pool);
        }
        else if (!known && (own || !others++
                            || one.failure < returned->failure)) {
            returned->failure = one.failure;
            returned->status = one.status;
            known = own;
        }
    }
    if (!mail->bounces->nelts) {
        returned->failure = mail->failure;
        returned->status = mail->status;
    }
    if (!known && delivery->copies
        && returned->failure == CRM_MAIL_NO_ADDRESS) {
        returned->failure = CRM_MAIL_FAILED;
    }
}

/* Return the member "automatic" of DELIVERY, whose other members are set. OWN: the
 * mail is one of crmapid's own. COUNT: that of mails from its sender. */
static const char *automatic_of(const crm_mail_delivery_t *delivery, int own,
                                int count)
{
    const crm_mail_t *mail = delivery->mail;
    const char *automatic = mail->automatic;
    int hourly = delivery->options->hourly;

    if (own || (mail->people->nelts && !delivery->person)) {
        return "loop";
    }
    if (!automatic && hourly && count >= hourly) {
        return "flood";
    }
    if (delivery->named && mail->failure != CRM_MAIL_NO_FAILURE) {
        return "bounce";
    }
    /* A reply to one of ours counts, whatever way it came. */
    return automatic && delivery->named
           && (!strcmp(automatic, "list") || !strcmp(automatic, "bulk"))
           ? NULL : automatic;
}

/* Set the members of DELIVERY that depend on the database: the step, and
 * whether the mail is automatic. */
static crm_error_t *read_state(crm_mail_delivery_t *delivery)
{
    const crm_mail_t *mail = delivery->mail;
    const char *values[10] = {
        delivery->workspace_id, delivery->bot_id, mail->from,
        crm_sql_array(mail->references, delivery->pool), mail->message_id,
        apr_itoa(delivery->pool, delivery->options->hourly),
        crm_sql_array(tokens_of(delivery), delivery->pool), mail->reply_to,
        crm_sql_array(addresses_of(delivery), delivery->pool),
        mail->verified ? "t" : "f"
    };
    crm_stmt_t stmt = {STATE_SQL, 10, values};
    PGresult *result;

    delivery->automatic = mail->automatic;
    CRM_ERR(crm_db_query(&result, delivery->conn, &stmt, delivery->pool));
    if (!PQntuples(result)) {
        return NULL;            /* the agent was just deleted: intake refuses
                                   the mail */
    }
    delivery->step_id = crm_db_value(result, 0, 0);
    delivery->sent_to = crm_db_value(result, 0, 4);
    delivery->answer_id = crm_db_value(result, 0, 5);
    delivery->copies = crm_db_value(result, 0, 6);
    delivery->named = delivery->step_id || delivery->answer_id;
    if (!PQgetisnull(result, 0, 2)) {
        delivery->person = &APR_ARRAY_IDX(mail->people, atoi(
                                              PQgetvalue(result, 0, 2)) - 1,
                                          crm_mail_person_t);
    }
    delivery->automatic = automatic_of(delivery,
                                       *PQgetvalue(result, 0, 1) == 't',
                                       atoi(PQgetvalue(result, 0, 3)));
    return NULL;
}

/* ---- the event ----------------------------------------------------------- */

/* Return whether DELIVERY's mail is a bounce or a complaint. */
static int returns_mail(const crm_mail_delivery_t *delivery)
{
    return delivery->mail->complaint
        || (delivery->automatic && !strcmp(delivery->automatic, "bounce"));
}

/* Set the participant of EVENT. A bounce or a complaint belongs to the
 * conversation with whom the returned mail was sent to, not with the server. */
static void set_participant(crm_intake_event_t *event,
                            const crm_mail_delivery_t *delivery)
{
    const crm_mail_t *mail = delivery->mail;

    if (delivery->named && returns_mail(delivery)) {
        event->binds[CRM_INTAKE_FROM_EMAIL] = delivery->sent_to;
        event->binds[CRM_INTAKE_ROLE] = "system";
    }
    else if (mail->bounces->nelts) {
        event->binds[CRM_INTAKE_FROM_EMAIL] =
            APR_ARRAY_IDX(mail->bounces, 0, crm_mail_bounce_t).address;
        event->binds[CRM_INTAKE_ROLE] = "system";
    }
    else if (delivery->person && !delivery->step_id) {
        event->binds[CRM_INTAKE_FROM_EMAIL] = delivery->person->address;
        event->binds[CRM_INTAKE_FROM_NAME] = delivery->person->name;
    }
    else if (mail->from) {
        /* Whether a reply is the contact's own depends on From. */
        event->binds[CRM_INTAKE_FROM_EMAIL] = mail->from;
        event->binds[CRM_INTAKE_FROM_NAME] = mail->from_name;
    }
    else if (!delivery->step_id) {
        /* All mails without a sender share one conversation. */
        event->binds[CRM_INTAKE_THREAD] = "mail:nobody";
    }
}

static void fill_event(crm_intake_event_t *event,
                       const crm_mail_delivery_t *delivery)
{
    const crm_mail_t *mail = delivery->mail;
    const char **binds = event->binds;

    binds[CRM_INTAKE_SUBJECT] = mail->subject;
    binds[CRM_INTAKE_MESSAGE_KEY] = mail->message_id;
    /* A subject alone is a message (contract 18.3). */
    binds[CRM_INTAKE_CONTENT] = *mail->text || !mail->subject ? mail->text
                                : mail->subject;
    binds[CRM_INTAKE_CONTENT_TYPE] = "text/plain";
    binds[CRM_INTAKE_METADATA] = crm_mail_metadata(
        mail, delivery->ids, delivery->recipient, delivery->automatic,
        delivery->pool);
}

/* Return the status that DELIVERY's mail, a report, gives the mail to SENT_TO:
 * "delivered" (RFC 3464, 2.3.3), or "sent" if it was only passed on; NULL if it says
 * something else. */
static const char *reported(const crm_mail_delivery_t *delivery)
{
    const apr_array_header_t *entries = delivery->mail->bounces;
    int good = entries->nelts > 0;

    for (int i = 0; i < entries->nelts; i++) {
        const crm_mail_bounce_t *one = &APR_ARRAY_IDX(entries, i,
                                                      crm_mail_bounce_t);
        const char *action = one->action ? one->action : "";
        const char *status = !strncasecmp(action, "delivered", 9)
            ? "delivered" : !strncasecmp(action, "relayed", 7)
            || !strncasecmp(action, "expanded", 8) ? "sent" : NULL;

        if (crm_email_equal(one->address, delivery->sent_to,
                            delivery->pool)) {
            return status;
        }
        good &= status != NULL;
    }
    return good ? "sent" : NULL;
}

/* Let EVENT be a new STATUS of the message that DELIVERY's mail speaks of, and no
 * message: its server reports on each mail that it was asked to. */
static void set_status(crm_intake_event_t *event,
                       const crm_mail_delivery_t *delivery, const char *status)
{
    const char **binds = event->binds;

    binds[CRM_INTAKE_STATUS] = status;
    binds[CRM_INTAKE_MESSAGE_KEY] = binds[CRM_INTAKE_EVENT_ID]; /* no message's */
    binds[CRM_INTAKE_ANSWER_ID] = delivery->answer_id ? delivery->answer_id
                                  : delivery->step_id;
    binds[CRM_INTAKE_STEP_ID] = NULL;
    binds[CRM_INTAKE_ROLE] = NULL;
    binds[CRM_INTAKE_CONTENT] = NULL;
    binds[CRM_INTAKE_CONTENT_TYPE] = NULL;
    binds[CRM_INTAKE_METADATA] = NULL;
}

/* Set what EVENT says of ADDRESSES, with blanks between them: that is why they are
 * suppressed, BECAUSE. */
static void set_suppressed(crm_intake_event_t *event, const char *addresses,
                           const char *because)
{
    if (addresses) {
        event->binds[CRM_INTAKE_BOUNCED] = addresses;
        event->binds[CRM_INTAKE_REASON] = because;
    }
}

/* Set what EVENT, a complaint about the mail of a step or answer, says of it: a copy
 * may be whose recipient complains (RFC 5965, 3.2). */
static void set_complaint(crm_intake_event_t *event,
                          const crm_mail_delivery_t *delivery)
{
    const char *by = delivery->mail->complainer;

    if (by && !crm_email_equal(by, delivery->sent_to, delivery->pool)
        && is_copy(delivery, by)) {
        set_suppressed(event, by, "complaint");
        return;
    }
    set_suppressed(event, delivery->sent_to, "complaint");
    if (delivery->answer_id) {
        event->binds[CRM_INTAKE_FAILED] = "the recipient complained";
    }
}

/* Set what EVENT, which returns the mail of a step or answer, says of it and of its
 * copies (contract 17.5). */
static void set_failure(crm_intake_event_t *event,
                        const crm_mail_delivery_t *delivery)
{
    returned_t returned;
    const char *status;

    read_returned(&returned, delivery);
    if (returned.failure != CRM_MAIL_NO_FAILURE) {
        event->binds[CRM_INTAKE_FAILED] = apr_pstrcat(
            delivery->pool, "the mail was returned: ",
            returned.status ? returned.status : "5.0.0", NULL);
    }
    else if (!returned.copies && (status = reported(delivery))) {
        set_status(event, delivery, status);
    }
    set_suppressed(event, returned.failure != CRM_MAIL_NO_ADDRESS ? returned.gone
                   : with_address(returned.gone, delivery->sent_to,
                                  delivery->pool), "bounced");
}

/* Return whether a trusted host vouches for the participant: it verified From,
 * not who else a mail may be from. */
static int is_verified(const crm_mail_delivery_t *delivery)
{
    const crm_mail_t *mail = delivery->mail;

    return mail->verified && mail->from
           && (delivery->step_id || !delivery->person
               || crm_email_equal(delivery->person->address, mail->from,
                                  delivery->pool));
}

/* Fill EVENT from DELIVERY. A bounce or a complaint can be forged. It counts
 * only for the address of a step or answer whose mail it names or returns: only the
 * recipient's server can do that. */
static void make_event(crm_intake_event_t *event,
                       const crm_mail_delivery_t *delivery)
{
    const char **binds = event->binds;

    memset(event, 0, sizeof(*event));
    binds[CRM_INTAKE_EVENT_ID] = apr_pstrcat(
        delivery->pool, "mail:", delivery->key, ":", delivery->bot_id, NULL);
    binds[CRM_INTAKE_CHANNEL] = CRM_CODE_EMAIL;
    binds[CRM_INTAKE_BOT_ID] = delivery->bot_id;
    binds[CRM_INTAKE_AUTOMATIC] = delivery->automatic ? "t" : NULL;
    binds[CRM_INTAKE_STEP_ID] = delivery->step_id;
    binds[CRM_INTAKE_ANSWER_ID] = delivery->answer_id;
    binds[CRM_INTAKE_VERIFIED] = is_verified(delivery) ? "t" : NULL;
    if (delivery->mail->references->nelts) {
        binds[CRM_INTAKE_REFERENCES] = crm_mail_references(
            delivery->mail, delivery->pool);
    }
    set_participant(event, delivery);
    fill_event(event, delivery);
    if (delivery->sent_to && delivery->mail->complaint) {
        set_complaint(event, delivery);
    }
    else if (delivery->sent_to && returns_mail(delivery)) {
        set_failure(event, delivery);
    }
    crm_intake_tidy(event, delivery->pool);
}

crm_error_t *crm_mail_event(crm_intake_event_t *event,
                            crm_mail_delivery_t *delivery)
{
    CRM_ERR(read_state(delivery));
    make_event(event, delivery);
    return NULL;
}
