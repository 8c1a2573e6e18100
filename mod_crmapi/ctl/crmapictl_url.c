/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_url.c: whether the address of a webhook can be reached */
#include "crmapictl_url.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apr_lib.h"
#include "apr_strings.h"
#include "apr_uri.h"

#include "crm_address_kind.h"
#include "crm_array.h"
#include "crm_text.h"
#include "crmapictl_output.h"

/* Top-level names that the DNS does not have: RFC 6761, 7686, 9476. */
static const char *const nowhere[] = {"invalid", "onion", "alt"};

/* Return whether NAME is TOP or ends with "." and TOP. */
static int is_below(const char *name, const char *top)
{
    size_t len = strlen(name), top_len = strlen(top);

    return len >= top_len && !strcasecmp(name + len - top_len, top)
           && (len == top_len || name[len - top_len - 1] == '.');
}

/* Return HOST in POOL without the zone of an IPv6 address and the dot at the end. */
static char *bare_host(const char *host, apr_pool_t *pool)
{
    char *bare = apr_pstrmemdup(pool, host, strchr(host, ':')
                                ? strcspn(host, "%") : strlen(host));
    size_t len = strlen(bare);

    if (len && bare[len - 1] == '.') {
        bare[len - 1] = '\0';
    }
    return bare;
}

/* Return whether HOST, which is no address, is no name either. A name has no character
 * that libcurl refuses. No label of it is empty or has more than 63 characters, and
 * the name has at most 253 (RFC 1035, 2.3.4). Its last label is no number (RFC 3696,
 * 2). What is not ASCII is the database's to refuse. */
static int is_no_name(const char *host)
{
    const char *label = host;
    size_t len = strcspn(label, ".");

    for (const char *c = host; *c; c++) {
        if (!(*c & 0x80) && !apr_isalnum(*c) && !strchr("-_.", *c)) {
            return 1;
        }
    }
    while (len && crm_text_length(label, len) <= 63) {
        if (!label[len]) {
            return strspn(label, "0123456789") == len
                   || crm_text_length(host, strlen(host)) > 253;
        }
        label += len + 1;
        len = strcspn(label, ".");
    }
    return 1;
}

/* Return the kind of HOST, a name or any form of an address. Only names of this
 * machine are known not to be public. */
static crm_address_kind_t kind_of(const char *host)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST,
                             .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    crm_address_kind_t kind;

    for (size_t i = 0; i < CRM_NELTS(nowhere); i++) {
        if (is_below(host, nowhere[i])) {
            return CRM_ADDRESS_NEVER;
        }
    }
    if (is_below(host, "localhost")) {
        return CRM_ADDRESS_PRIVATE;
    }
    if (getaddrinfo(host, NULL, &hints, &found)) {
        return is_no_name(host) ? CRM_ADDRESS_NEVER : CRM_ADDRESS_PUBLIC;
    }
    kind = crm_address_kind(found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return kind;
}

crm_error_t *ctl_url_check(const char **private_p, ctl_t *ctl,
                           const char *url)
{
    apr_uri_t parts;
    const char *host;
    long port;
    char *end;

    *private_p = NULL;
    if (apr_uri_parse(ctl->pool, url, &parts)) {
        return ctl_fault(ctl, "nothing can be reached at %s",
                         ctl_clean(url, ctl->pool));
    }
    host = parts.hostname;
    if (host && !*host && *parts.hostinfo == '[') {
        host = parts.hostinfo;  /* [] */
    }
    if (!host || !*host) {
        return NULL;            /* the database says what a URL is */
    }
    port = strtol(parts.port_str ? parts.port_str : "", &end, 10);
    if (parts.port_str && *parts.port_str
        && (*end || !apr_isdigit(*parts.port_str) || port < 1 || port > 65535)) {
        return ctl_fault(ctl, "no port is %s",
                         ctl_clean(parts.port_str, ctl->pool));
    }
    switch (kind_of(bare_host(host, ctl->pool))) {
    case CRM_ADDRESS_NEVER:
        return ctl_fault(ctl, "nothing can be reached at %s",
                         ctl_clean(host, ctl->pool));
    case CRM_ADDRESS_PRIVATE:
        *private_p = ctl_clean(host, ctl->pool);
        break;
    case CRM_ADDRESS_PUBLIC:
        break;
    }
    return NULL;
}

void ctl_url_tell(const char *private)
{
    if (private) {
        fprintf(stderr, "crmapictl: warning: %s is not public: crmapid sends"
                " nothing there unless its webhook_private is on\n", private);
    }
}
