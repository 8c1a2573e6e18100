/* SPDX-License-Identifier: Apache-2.0 */
/* crm_origin.c: origins of web pages */
#include "crm_origin.h"

#include <string.h>

#include "apr_strings.h"

const char *crm_origin_rule(const char *text)
{
    static const char rule[] = "must be an origin such as"
                               " https://www.example.com";
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
        size_t digits = strspn(host + len + 1, "0123456789");

        return digits && digits <= 5 && !host[len + 1 + digits]
               && apr_atoi64(host + len + 1) <= 65535 ? NULL : rule;
    }
    return host[len] ? rule : NULL;
}
