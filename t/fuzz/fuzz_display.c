/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_display.c: HTML of mails, as it is shown: nothing comes out that runs, loads
 * or covers */
/* libFuzzer: -max_len=65536 */
#include <stdio.h>

#include "apr_strings.h"

#include "fuzz.h"

#include "crm_mail.h"
#include "crm_text.h"
#include "mail_charset.h"

#include "../unit/crm_display_check.h"

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
        must(0);
    }
}

static void init(apr_pool_t *pool)
{
    (void)pool;
    crm_mail_init();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool = fuzz_pool(init);
    const char *html;
    unsigned cut = 0;
    crm_buf_t buf;

    html = crm_mail_utf8((const char *)data, size, "utf-8", pool);
    crm_buf_init(&buf, 256, pool);
    crm_mail_display(&buf, &cut, html, strlen(html), pool);
    crm_mail_display_text(&buf, &cut, html);
    must(buf.len <= 4 * CRM_MAIL_DISPLAY_BYTES);
    crm_buf_putc(&buf, '\0');
    must(strlen(buf.data) == buf.len - 1);
    must(crm_text_valid_utf8(buf.data, buf.len - 1));
    must_be_safe(buf.data, 0, pool);
    must_be_safe(buf.data, 1, pool);
    apr_pool_destroy(pool);
    return 0;
}
