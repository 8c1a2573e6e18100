/* SPDX-License-Identifier: Apache-2.0 */
/* crm_address_kind.c: whether an address is public (contract 12.4) */
#include "crm_address_kind.h"

#include <netinet/in.h>
#include <string.h>

#include "crm_array.h"

/* A range of addresses, those whose first BITS are those of PREFIX, and their
 * kind. */
typedef struct range_t {
    unsigned char prefix[16];
    int bits;
    crm_address_kind_t kind;
} range_t;

#define PRIVATE CRM_ADDRESS_PRIVATE
#define NEVER CRM_ADDRESS_NEVER

/* Ranges of IANA's IPv4 Special-Purpose Address Registry that are not globally
 * reachable, multicast, and a public address that a cloud uses internally. Those
 * that the registry lets be no destination are never reached. */
static const range_t special4[] = {
    {{0}, 8, NEVER},                    /* this network */
    {{10}, 8, PRIVATE},                 /* private */
    {{100, 64}, 10, PRIVATE},           /* carrier-grade NAT */
    {{127}, 8, PRIVATE},                /* loopback */
    {{168, 63, 129, 16}, 32, PRIVATE},  /* Azure's internal services */
    {{169, 254}, 16, PRIVATE},          /* link-local; metadata of clouds */
    {{172, 16}, 12, PRIVATE},           /* private */
    {{192, 0, 0}, 24, PRIVATE},         /* protocol assignments */
    {{192, 0, 2}, 24, NEVER},           /* documentation */
    {{192, 88, 99}, 24, PRIVATE},       /* relays of 6to4, deprecated */
    {{192, 168}, 16, PRIVATE},          /* private */
    {{198, 18}, 15, PRIVATE},           /* benchmarks */
    {{198, 51, 100}, 24, NEVER},        /* documentation */
    {{203, 0, 113}, 24, NEVER},         /* documentation */
    {{224}, 4, NEVER},                  /* multicast */
    {{240}, 4, NEVER},                  /* reserved; broadcast */
};

/* Ranges whose last four bytes are an IPv4 address, which is looked at instead:
 * IPv4-mapped addresses (RFC 4291, 2.5.5.2), and the well-known NAT64 prefix
 * (RFC 6052), by which networks without IPv4 reach all IPv4 hosts. */
static const range_t embedded4[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, PRIVATE},
    {{0, 0x64, 0xff, 0x9b}, 96, PRIVATE},
};

/* The same for IPv6. IANA assigns global unicast addresses from 2000::/3 only.
 * Outside it, and not public, are also IPv4-compatible, 64:ff9b:1::/48, 5f00::/16,
 * fc00::/7, fe80::/10 and fec0::/10. */
static const range_t unicast6 = {{0x20}, 3, CRM_ADDRESS_PUBLIC};
static const range_t special6[] = {
    {{0}, 128, NEVER},                  /* unspecified */
    {{1, 0}, 64, NEVER},                /* discard-only */
    {{0x20, 0x01, 0}, 23, PRIVATE},     /* protocol assignments: Teredo,
                                           benchmarks, ORCHID ... */
    {{0x20, 0x01, 0x0d, 0xb8}, 32, NEVER},  /* documentation */
    {{0x20, 0x02}, 16, PRIVATE},        /* 6to4: contains any IPv4 address */
    {{0x3f, 0xfe}, 16, PRIVATE},        /* 6bone, returned */
    {{0x3f, 0xff, 0}, 20, NEVER},       /* documentation */
    {{0xff}, 8, NEVER},                 /* multicast */
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

/* Return the first of the COUNT RANGES that ADDRESS is in, or NULL. */
static const range_t *range_of(const unsigned char *address,
                               const range_t *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (within(address, &ranges[i])) {
            return &ranges[i];
        }
    }
    return NULL;
}

#define RANGE_OF(address, ranges) \
    range_of(address, ranges, CRM_NELTS(ranges))

static crm_address_kind_t kind4(const unsigned char *address)
{
    const range_t *special = RANGE_OF(address, special4);

    return special ? special->kind : CRM_ADDRESS_PUBLIC;
}

static crm_address_kind_t kind6(const unsigned char *address)
{
    const range_t *special = RANGE_OF(address, special6);

    if (RANGE_OF(address, embedded4)) {
        return kind4(address + 12);
    }
    if (special) {
        return special->kind;
    }
    return within(address, &unicast6) ? CRM_ADDRESS_PUBLIC
           : CRM_ADDRESS_PRIVATE;
}

crm_address_kind_t crm_address_kind(const struct sockaddr *address,
                                    socklen_t len)
{
    if (address->sa_family == AF_INET && len >= sizeof(struct sockaddr_in)) {
        struct sockaddr_in in;
        unsigned char bytes[4];

        memcpy(&in, address, sizeof(in));
        memcpy(bytes, &in.sin_addr, sizeof(bytes));
        return kind4(bytes);
    }
    if (address->sa_family == AF_INET6
        && len >= sizeof(struct sockaddr_in6)) {
        struct sockaddr_in6 in;

        memcpy(&in, address, sizeof(in));
        return kind6(in.sin6_addr.s6_addr);
    }
    return CRM_ADDRESS_PRIVATE;
}
