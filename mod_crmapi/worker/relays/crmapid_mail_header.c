/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_mail_header.c: values that may be put into a mail's headers */
#include "crmapid_mail_header.h"

#include <string.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_text.h"

/* Return the length of HOST, 0 if it is not a host name. */
static apr_size_t host_length(const char *host)
{
    apr_size_t len = strlen(host);

    for (apr_size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)host[i];

        if (!(c >= 0x80 || apr_isalnum(c) || c == '-'
              || (c == '.' && i && host[i - 1] != '.'))) {
            return 0;
        }
    }
    return len;
}

int crmd_mail_address(const char *address)
{
    const char *at = strchr(address, '@');
    const char *c;

    if (!at || at == address || at[-1] == '.' || *address == '.'
        || strlen(address) > 254 || !host_length(at + 1)
        || !crm_text_valid_utf8(at, strlen(at))) {
        return 0;
    }
    for (c = address; c < at; c++) {
        if (!apr_isalnum(*c) && !strchr("!#$%&'*+-/=?^_`{|}~.", *c)) {
            return 0;
        }
        if (*c == '.' && c[1] == '.') {
            return 0;
        }
    }
    return 1;
}

int crmd_mail_number(const char *number)
{
    const char *c = number;

    while (apr_isalnum(*c) || *c == '+' || *c == '-' || *c == '.') {
        c++;
    }
    return *number && !*c;
}

const char *crmd_mail_line(const char *text, apr_size_t max, apr_pool_t *pool)
{
    const char *clean = crm_text_one_line(text ? text : "",
                                          text ? strlen(text) : 0, max, pool);
    char *line = apr_pstrdup(pool, clean), *c;

    while ((c = strstr(line, "=?"))) {
        *c = '-';
    }
    return line;
}
