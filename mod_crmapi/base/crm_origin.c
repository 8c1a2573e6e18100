/* SPDX-License-Identifier: Apache-2.0 */
/* crm_origin.c: origins of web pages */
#include "crm_origin.h"

#include <string.h>

#include "apr_strings.h"

/* Return the port that TEXT, decimal digits, names; -1 if it names none. */
static int port_of(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    apr_int64_t port = apr_atoi64(text);

    return *text != '0' && digits && digits <= 5 && !text[digits]
           && port <= 65535 ? (int)port : -1;
}

/* Set *PORT_P to the port of TEXT, an origin; 0: it names none. Return 0 if TEXT is no
 * origin. */
static int parse(int *port_p, const char *text)
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
    *port_p = host[len] == ':' ? port_of(host + len + 1) : 0;
    return scheme && len && len <= 255 && *host != '.' && *host != '-'
           && (*port_p ? *port_p > 0 : !host[len]);
}

int crm_origin_is_one(const char *text)
{
    int port;

    return parse(&port, text);
}

const char *crm_origin_rule(const char *text)
{
    int port;

    if (!parse(&port, text)) {
        return "must be an origin such as https://www.example.com";
    }
    return port != (text[4] == 's' ? 443 : 80) ? NULL : "must leave out the"
           " port, which browsers do not send if it is that of the scheme";
}
