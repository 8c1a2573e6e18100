/* SPDX-License-Identifier: Apache-2.0 */
/* crm_origin.c: origins of web pages */
#include "crm_origin.h"

#include <string.h>

#include "apr_strings.h"

static const char rule[] = "must be an origin such as https://www.example.com";

/* Return the rule that TEXT breaks, what follows the host's colon, or NULL. Browsers
 * leave out PORT, that of the scheme. */
static const char *port_rule(const char *text, int port)
{
    size_t digits = strspn(text, "0123456789");
    apr_int64_t number = apr_atoi64(text);

    if (*text == '0' || !digits || digits > 5 || text[digits]
        || number > 65535) {
        return rule;
    }
    return number != port ? NULL : "must leave out the port, which browsers do"
           " not send if it is that of the scheme";
}

const char *crm_origin_rule(const char *text)
{
    size_t scheme = !strncmp(text, "https://", 8) ? 8
                    : !strncmp(text, "http://", 7) ? 7 : 0;
    const char *host = text + scheme;
    size_t len = strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUV"
                        "WXYZ0123456789-._");

    if (*host == '[') {
        len = 1 + strspn(host + 1, "0123456789abcdefABCDEF:.");
        len = host[len] == ']' ? len + 1 : 0;
    }
    if (!scheme || !len || len > 255 || *host == '.' || *host == '-') {
        return rule;
    }
    if (host[len] == ':') {
        return port_rule(host + len + 1, scheme == 8 ? 443 : 80);
    }
    return host[len] ? rule : NULL;
}
