/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_mail.c: mails that come in, whatever they are */
/* libFuzzer: -max_len=65536 t/mail */
#include <glib.h>

#include "fuzz.h"

#include "crm_mail.h"
#include "crm_text.h"

/* TEXT, which may be NULL, is something that PostgreSQL takes. */
static void must_be_text(const char *text)
{
    must(!text || crm_text_valid_utf8(text, strlen(text)));
}

static void init(apr_pool_t *pool)
{
    (void)pool;
    crm_mail_init();
    g_log_set_always_fatal(G_LOG_LEVEL_CRITICAL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool = fuzz_pool(init);
    crm_mail_options_t options;
    crm_mail_t mail;

    memset(&options, 0, sizeof(options));
    options.attachment_bytes = 1000;
    options.authserv_ids = "mx.example.org";
    crm_mail_read(&mail, (const char *)data, size, &options, pool);
    must_be_text(mail.from);
    must_be_text(mail.from_name);
    must_be_text(mail.subject);
    must_be_text(mail.message_id);
    must_be_text(mail.text);
    apr_pool_destroy(pool);
    return 0;
}
