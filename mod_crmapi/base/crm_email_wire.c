/* SPDX-License-Identifier: Apache-2.0 */
/* crm_email_wire.c: e-mail addresses as they are in envelopes and headers */
#include "crm_email_wire.h"

#include <string.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_email.h"
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

/* Return whether ADDRESS has a host name, and a local part of the characters of a
 * dot-atom; with UTF8, those beyond ASCII may be among them (RFC 6532, 3.2). */
static int has_parts(const char *address, int utf8)
{
    const char *at = strchr(address, '@');
    unsigned code;

    if (!at || at == address || strlen(address) > 254 || !host_length(at + 1)
        || !crm_text_valid_utf8(address, strlen(address))) {
        return 0;
    }
    for (const char *c = address; c < at; c++) {
        int beyond = (unsigned char)*c >= 0x80;

        if (beyond ? !utf8 || crm_text_steers(&code, c)
            : !apr_isalnum(*c) && !strchr("!#$%&'*+-/=?^_`{|}~.", *c)) {
            return 0;
        }
    }
    return 1;
}

/* Return whether each dot of the local part of ADDRESS is between two other
 * characters. */
static int is_dotted(const char *address)
{
    const char *at = strchr(address, '@'), *dots = strstr(address, "..");

    return *address != '.' && at[-1] != '.' && (!dots || dots > at);
}

int crm_email_wire(const char *address)
{
    return has_parts(address, 0) && is_dotted(address);
}

const char *crm_email_wire_quoted(const char *address, apr_pool_t *pool)
{
    size_t len = strcspn(address, "@");

    if (!has_parts(address, 1)) {
        return NULL;
    }
    return is_dotted(address) ? address
           : apr_psprintf(pool, "\"%.*s\"%s", (int)len, address,
                          address + len);
}

int crm_email_wire_is_ascii(const char *address)
{
    size_t len = strcspn(address, "@");

    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)address[i] >= 0x80) {
            return 0;
        }
    }
    return 1;
}

const char *crm_email_wire_from(const char *address, apr_pool_t *scratch_pool)
{
    const char *rule = crm_email_check(address, strlen(address), scratch_pool);

    return rule ? rule : crm_email_wire(address) ? NULL
           : "must have only a-z, A-Z, 0-9, !#$%&'*+-/=?^_`{|}~ and single dots before"
             " its @: mails are sent from it";
}

const char *crm_email_wire_to(const char *address, apr_pool_t *scratch_pool)
{
    const char *rule = crm_email_check(address, strlen(address), scratch_pool);

    return rule ? rule : crm_email_wire_quoted(address, scratch_pool) ? NULL
           : "must have only letters, digits, !#$%&'*+-/=?^_`{|}~ and dots before its"
             " @: mails are sent to it";
}
