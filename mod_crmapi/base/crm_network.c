/* SPDX-License-Identifier: Apache-2.0 */
/* crm_network.c: networks of addresses */
#include "crm_network.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

/* The size of an IPv4 address, and of the prefix of one that is mapped into
 * IPv6, in bytes. */
#define V4 4
#define MAPPED 12

apr_size_t crm_network_address(unsigned char net[16], const char *address)
{
    static const unsigned char mapped[MAPPED] = {[10] = 0xff, 0xff};
    char bare[INET6_ADDRSTRLEN] = "";
    size_t len = strcspn(address, "%");

    if (inet_pton(AF_INET, address, net) == 1) {
        return V4;
    }
    if (len < sizeof(bare)) {
        memcpy(bare, address, len);
    }
    if (inet_pton(AF_INET6, bare, net) != 1) {
        return 0;
    }
    if (!memcmp(net, mapped, sizeof(mapped))) {
        memmove(net, net + sizeof(mapped), V4);
        return V4;
    }
    return 16;
}

/* Set *NETWORK from the LEN bytes at TEXT. Return 0 if they are not a
 * network. */
static int parse(crm_network_t *network, const char *text,
                 apr_size_t len)
{
    char copy[64], *slash;
    apr_size_t bytes;
    long bits;

    if (len >= sizeof(copy)) {
        return 0;
    }
    memcpy(copy, text, len);
    copy[len] = '\0';
    slash = strchr(copy, '/');
    if (strchr(copy, '%')) {
        return 0;
    }
    if (slash) {
        *slash++ = '\0';
    }
    memset(network, 0, sizeof(*network));
    bytes = crm_network_address(network->address, copy);
    if (slash && (!*slash || slash[strspn(slash, "0123456789")]
                  || strlen(slash) > 3)) {
        return 0;
    }
    bits = slash ? strtol(slash, NULL, 10) : (long)bytes * 8;
    if (slash && bytes == V4 && strchr(copy, ':')) {
        bits -= 8 * MAPPED;
    }
    if (!bytes || bits < 0 || bits > (long)bytes * 8) {
        return 0;
    }
    network->v6 = bytes != V4;
    network->bits = (unsigned char)bits;
    return 1;
}

int crm_networks_parse(crm_network_t *networks, const char *text)
{
    int count = 0;

    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        apr_size_t len = strcspn(text, " ");

        if (count == CRM_NETWORKS_MAX
            || !parse(&networks[count], text, len)) {
            return -1;
        }
        count++;
        text += len;
    }
    return count;
}

/* Return whether the address NET, of the same version, is in NETWORK. */
static int has(const crm_network_t *network, const unsigned char *net)
{
    apr_size_t bytes = network->bits / 8;
    int rest = network->bits % 8;

    return !memcmp(network->address, net, bytes)
           && (!rest || (network->address[bytes] ^ net[bytes]) >> (8 - rest)
                        == 0);
}

int crm_networks_have(const crm_network_t *networks, int count,
                      const char *address)
{
    unsigned char net[16];
    apr_size_t bytes = crm_network_address(net, address);

    for (int i = 0; bytes && i < count; i++) {
        if (networks[i].v6 == (bytes != V4) && has(&networks[i], net)) {
            return 1;
        }
    }
    return 0;
}
