/* SPDX-License-Identifier: Apache-2.0 */
/* crm_mail_test.h: what tests of mails share */
#ifndef CRM_MAIL_TEST_H
#define CRM_MAIL_TEST_H

#include <stdlib.h>
#include <string.h>

#include <libxml/parser.h>

#include "apr_strings.h"

#include "crm_check.h"
#include "crm_mail.h"

static const crm_mail_options_t options = {.attachment_bytes = 65536};

/* Begin a program. */
static inline void mail_init(void)
{
    crm_check_pool();           /* APR comes first */
    crm_mail_init();
    atexit(xmlCleanupParser);
}

/* Read BYTES into MAIL. */
static inline void read_mail(crm_mail_t *mail, const char *bytes)
{
    crm_mail_read(mail, bytes, strlen(bytes), &options, crm_check_pool());
}

/* WHAT of MAIL is GOT and must be WANT; each may be NULL. */
static inline void same(const char *mail, const char *what,
                        const char *got, const char *want)
{
    ck_assert_msg(want ? got && !strcmp(got, want) : !got,
                  "%s: its %s is \"%s\", not \"%s\"", mail, what,
                  got ? got : "(none)", want ? want : "(none)");
}

/* Return the text of the mail BYTES. */
static inline const char *text_of(const char *bytes)
{
    crm_mail_t mail;

    read_mail(&mail, bytes);
    return mail.text;
}

#define HEAD "From: ada@example.org\nDate: Wed, 25 Nov 2026 12:00:00 +0000\n" \
             "Subject: S\nMessage-ID: <x@example.org>\n"
#define ALTERNATIVES "--b\nContent-Type: text/plain\n\nplain\n--b\n" \
                     "Content-Type: text/html\n\n<p>rich</p>\n--b--\n"

/* Return the text of a mail that is HTML. */
static inline const char *text_of_html(const char *html)
{
    return text_of(apr_pstrcat(crm_check_pool(), HEAD
                               "Content-Type: text/html\n\n", html, NULL));
}

#endif /* CRM_MAIL_TEST_H */
