/* SPDX-License-Identifier: Apache-2.0 */
/* mail_person.c: who a mail is from (contract 18.2) */
#include "mail_person.h"

#include <string.h>
#include <strings.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_email.h"
#include "crm_text.h"
#include "mail_address.h"
#include "mail_read.h"

/* ---- mailing lists ------------------------------------------------------- */

int crm_mail_precedence(GMimeMessage *mime, const char *word,
                        apr_pool_t *pool)
{
    static const char *const names[] = {"Precedence", "X-Precedence"};
    size_t len = strlen(word);

    for (size_t i = 0; i < CRM_NELTS(names); i++) {
        const char *value = crm_mail_header(mime, names[i], 200, pool);

        if (value && !strncasecmp(value, word, len)
            && (!value[len] || strchr(" ;,\t(", value[len]))) {
            return 1;
        }
    }
    return 0;
}

int crm_mail_is_list(GMimeMessage *mime, apr_pool_t *pool)
{
    static const char *const names[] = {
        "List-Id", "List-Post", "Mailing-List", "X-Google-Group-Id"
    };

    for (size_t i = 0; i < CRM_NELTS(names); i++) {
        if (crm_mail_header(mime, names[i], 200, pool)) {
            return 1;
        }
    }
    return crm_mail_precedence(mime, "list", pool);
}

/* Return the addresses that MIME, by a mailing list, may name the list by. */
static const apr_array_header_t *list_addresses(GMimeMessage *mime,
                                                apr_pool_t *pool)
{
    static const char *const names[] = {
        "List-Post", "Mailing-List", "X-Mailing-List", "To", "X-BeenThere"
    };
    apr_array_header_t *list = apr_array_make(pool, 2, sizeof(const char *));

    for (size_t i = 0; i < CRM_NELTS(names); i++) {
        crm_mail_addresses(list, mime, names[i], pool);
    }
    return list;
}

/* ---- people -------------------------------------------------------------- */

static int is_same(const char *address, const char *other)
{
    return address && other && !strcasecmp(address, other);
}

static int is_in(const apr_array_header_t *list, const char *address)
{
    for (int i = 0; i < list->nelts; i++) {
        if (is_same(APR_ARRAY_IDX(list, i, const char *), address)) {
            return 1;
        }
    }
    return 0;
}

/* Set MAIL's from and from_name. */
static void read_from(crm_mail_t *mail, GMimeMessage *mime,
                      const crm_mail_options_t *options, apr_pool_t *pool)
{
    static const char *const names[] = {
        "From", "Sender", "Reply-To", "Return-Path"
    };

    for (size_t i = 0; i < CRM_NELTS(names); i++) {
        if (crm_mail_mailbox(&mail->from, &mail->from_name, mime, names[i],
                             pool)) {
            return;
        }
    }
    if (options->sender
        && !crm_text_email(options->sender, strlen(options->sender))) {
        mail->from = apr_pstrdup(pool, options->sender);
    }
}

/* Add a person with ADDRESS (may be NULL) and NAME to MAIL, unless it is there.
 * Without a name, it is that of another header with the same address. */
static void add_person(crm_mail_t *mail, const char *address,
                       const char *name)
{
    crm_mail_person_t *person;

    if (!address || mail->people->nelts >= CRM_MAIL_LIST_MAX) {
        return;
    }
    for (int i = 0; i < mail->people->nelts; i++) {
        if (is_same(APR_ARRAY_IDX(mail->people, i, crm_mail_person_t).address,
                    address)) {
            return;
        }
    }
    person = apr_array_push(mail->people);
    person->address = address;
    person->name = name ? name : is_same(address, mail->from)
                   ? mail->from_name : NULL;
}

/* Read who MIME, by a mailing list if IS_LIST, says wrote it. */
static void read_writer(crm_mail_t *mail, GMimeMessage *mime, int is_list,
                        apr_pool_t *pool)
{
    const char *address = NULL, *name = NULL, *from = NULL, *from_name;

    crm_mail_mailbox(&address, &name, mime, "X-Original-Sender", pool);
    if (crm_mail_mailbox(&from, &from_name, mime, "X-Original-From", pool)
        && (!address || is_same(address, from))) {
        address = from;
        name = name ? name : from_name;
    }
    if (address && !name) {     /* Reply-To may have it */
        crm_mail_mailbox(&from, &from_name, mime, "Reply-To", pool);
        name = is_same(address, from) ? from_name : NULL;
    }
    mail->original_sender = address;
    if (is_list) {
        add_person(mail, address, name);
    }
}

/* Add the person of Cc whom From names as "NAME via LIST": some lists move the
 * writer there. */
static void add_via(crm_mail_t *mail, GMimeMessage *mime, apr_pool_t *pool)
{
    const char *via = mail->from_name ? strcasestr(mail->from_name, " via ")
                      : NULL;
    apr_size_t len = via ? (apr_size_t)(via - mail->from_name) : 0;
    apr_array_header_t *copies = apr_array_make(pool, 2,
                                                sizeof(crm_mail_person_t));

    if (via) {
        crm_mail_mailboxes(copies, mime, "Cc", pool);
    }
    for (int i = 0; i < copies->nelts; i++) {
        const crm_mail_person_t *one = &APR_ARRAY_IDX(copies, i,
                                                      crm_mail_person_t);

        if (one->name && strlen(one->name) == len
            && !strncasecmp(one->name, mail->from_name, len)) {
            add_person(mail, one->address, one->name);
        }
    }
}

void crm_mail_people(crm_mail_t *mail, GMimeMessage *mime,
                     const crm_mail_options_t *options, apr_pool_t *pool)
{
    apr_array_header_t *replies = apr_array_make(pool, 2,
                                                 sizeof(crm_mail_person_t));
    int is_list = crm_mail_is_list(mime, pool);
    const apr_array_header_t *lists = is_list ? list_addresses(mime, pool)
                                              : NULL;

    mail->people = apr_array_make(pool, 3, sizeof(crm_mail_person_t));
    read_from(mail, mime, options, pool);
    read_writer(mail, mime, is_list, pool);
    crm_mail_mailboxes(replies, mime, "Reply-To", pool);
    for (int i = 0; i < replies->nelts; i++) {
        const crm_mail_person_t *one = &APR_ARRAY_IDX(replies, i,
                                                      crm_mail_person_t);

        mail->reply_to = mail->reply_to ? mail->reply_to : one->address;
        if (crm_email_canonical(one->address, pool)     /* can be answered */
            && (!lists || (!is_in(lists, one->address)
                           && !is_same(one->address, mail->from)))) {
            add_person(mail, one->address, one->name);
        }
    }
    if (is_list) {
        add_via(mail, mime, pool);
    }
    add_person(mail, mail->from, mail->from_name);
}
