/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_address.c: whether an address is public (contract 12.4) */
#include "crmapid_address.h"

#include <netinet/in.h>
#include <string.h>

#include "crm_array.h"

/* A range of addresses: the first BITS are those of PREFIX. */
typedef struct range_t {
    unsigned char prefix[16];
    int bits;
} range_t;

/* Ranges of IANA's IPv4 Special-Purpose Address Registry that are not globally
 * reachable, multicast, and a public address that a cloud uses internally. */
static const range_t private4[] = {
    {{0}, 8},                   /* this network */
    {{10}, 8},                  /* private */
    {{100, 64}, 10},            /* carrier-grade NAT */
    {{127}, 8},                 /* loopback */
    {{168, 63, 129, 16}, 32},   /* Azure's internal services */
    {{169, 254}, 16},           /* link-local; metadata of clouds */
    {{172, 16}, 12},            /* private */
    {{192, 0, 0}, 24},          /* protocol assignments */
    {{192, 0, 2}, 24},          /* documentation */
    {{192, 88, 99}, 24},        /* relays of 6to4, deprecated */
    {{192, 168}, 16},           /* private */
    {{198, 18}, 15},            /* benchmarks */
    {{198, 51, 100}, 24},       /* documentation */
    {{203, 0, 113}, 24},        /* documentation */
    {{224}, 4},                 /* multicast */
    {{240}, 4},                 /* reserved; broadcast */
};

/* Ranges whose last four bytes are an IPv4 address, which is checked instead:
 * IPv4-mapped addresses (RFC 4291, 2.5.5.2), and the well-known NAT64 prefix
 * (RFC 6052), by which networks without IPv4 reach all IPv4 hosts. */
static const range_t embedded4[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96},
    {{0, 0x64, 0xff, 0x9b}, 96},
};

/* IANA assigns global unicast addresses from this range only. Outside it, and
 * not public, are ::, loopback, IPv4-compatible, 64:ff9b:1::/48, 100::/64,
 * 5f00::/16, fc00::/7, fe80::/10, fec0::/10 and ff00::/8. */
static const range_t unicast6 = {{0x20}, 3};

/* Ranges of IANA's IPv6 Special-Purpose Address Registry within that range that
 * are not globally reachable. */
static const range_t private6[] = {
    {{0x20, 0x01, 0}, 23},      /* protocol assignments: Teredo, benchmarks,
                                   ORCHID ... */
    {{0x20, 0x01, 0x0d, 0xb8}, 32}, /* documentation */
    {{0x20, 0x02}, 16},         /* 6to4: contains any IPv4 address */
    {{0x3f, 0xfe}, 16},         /* 6bone, returned */
    {{0x3f, 0xff, 0}, 20},      /* documentation */
};

static int within(const unsigned char *address, const range_t *range)
{
    int bytes = range->bits / 8;
    int rest = range->bits % 8;

    if (memcmp(address, range->prefix, (size_t)bytes)) {
        return 0;
    }
    return !rest || !((address[bytes] ^ range->prefix[bytes])
                      >> (8 - rest));
}

static int within_any(const unsigned char *address, const range_t *ranges,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (within(address, &ranges[i])) {
            return 1;
        }
    }
    return 0;
}

#define WITHIN_ANY(address, ranges) \
    within_any(address, ranges, CRM_NELTS(ranges))

static int public4(const unsigned char *address)
{
    return !WITHIN_ANY(address, private4);
}

static int public6(const unsigned char *address)
{
    if (WITHIN_ANY(address, embedded4)) {
        return public4(address + 12);
    }
    return within(address, &unicast6) && !WITHIN_ANY(address, private6);
}

int crmd_address_public(const struct sockaddr *address, socklen_t len)
{
    if (address->sa_family == AF_INET && len >= sizeof(struct sockaddr_in)) {
        struct sockaddr_in in;
        unsigned char bytes[4];

        memcpy(&in, address, sizeof(in));
        memcpy(bytes, &in.sin_addr, sizeof(bytes));
        return public4(bytes);
    }
    if (address->sa_family == AF_INET6
        && len >= sizeof(struct sockaddr_in6)) {
        struct sockaddr_in6 in;

        memcpy(&in, address, sizeof(in));
        return public6(in.sin6_addr.s6_addr);
    }
    return 0;
}
