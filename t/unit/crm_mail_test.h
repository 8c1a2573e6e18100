/* SPDX-License-Identifier: Apache-2.0 */
/* crm_mail_test.h: what tests of mails share */
#ifndef CRM_MAIL_TEST_H
#define CRM_MAIL_TEST_H

#include <stdlib.h>
#include <string.h>

#include <libxml/parser.h>

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

#endif /* CRM_MAIL_TEST_H */
