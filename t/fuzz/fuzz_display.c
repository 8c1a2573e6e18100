/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_display.c: HTML of mails, as it is shown: nothing comes out that runs, loads
 * or covers */
/* libFuzzer: -max_len=65536 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apr_general.h"
#include "apr_strings.h"

#include "crm_mail.h"
#include "crm_text.h"
#include "mail_charset.h"

#include "../unit/crm_display_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* HTML, with its marks, has no fault. */
static void must_be_safe(const char *html, int remote, apr_pool_t *pool)
{
    char *shown = apr_pstrdup(pool, html);
    const char *fault;

    display_cut(shown, CRM_MAIL_CID, 0);
    display_cut(shown, CRM_MAIL_REMOTE, remote);
    fault = display_fault(shown, remote);
    if (fault) {
        fprintf(stderr, "%s in %s\n", fault, shown);
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static apr_pool_t *parent;
    apr_pool_t *pool;
    const char *html;
    unsigned cut = 0;
    crm_buf_t buf;

    if (!parent) {
        apr_initialize();
        apr_pool_create(&parent, NULL);
        crm_mail_init();
    }
    apr_pool_create(&pool, parent);
    html = crm_mail_utf8((const char *)data, size, "utf-8", pool);
    crm_buf_init(&buf, 256, pool);
    crm_mail_display(&buf, &cut, html, strlen(html), pool);
    crm_mail_display_text(&buf, &cut, html);
    if (buf.len > 4 * CRM_MAIL_DISPLAY_BYTES) {
        abort();
    }
    crm_buf_putc(&buf, '\0');
    if (!crm_text_valid_utf8(buf.data, strlen(buf.data))
        || strlen(buf.data) != buf.len - 1) {
        abort();
    }
    must_be_safe(buf.data, 0, pool);
    must_be_safe(buf.data, 1, pool);
    apr_pool_destroy(pool);
    return 0;
}
