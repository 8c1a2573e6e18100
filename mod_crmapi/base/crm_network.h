/* SPDX-License-Identifier: Apache-2.0 */
/* crm_network.h: networks of addresses, to which keys can be limited (contract
 * 14.5) */
#ifndef CRM_NETWORK_H
#define CRM_NETWORK_H

#include "apr.h"

/* The maximum number of networks of a key. */
#define CRM_NETWORKS_MAX 32

/* Addresses with the same first BITS bits. */
typedef struct crm_network_t {
    unsigned char address[16];  /* IPv4: in its first 4 bytes */
    unsigned char v6;
    unsigned char bits;         /* 0..32, or 0..128 if V6 */
} crm_network_t;

/* Write the bytes of ADDRESS ("203.0.113.7") to NET. Return their number: 4 for
 * IPv4, also if it is mapped into IPv6 (::ffff:203.0.113.7), 16 for IPv6, also
 * with a zone ("fe80::1%eth0", RFC 4007), 0 if it is not an address. */
apr_size_t crm_network_address(unsigned char net[16], const char *address);

/* Set NETWORKS, which has room for CRM_NETWORKS_MAX, to those in TEXT
 * ("203.0.113.0/24 2001:db8::/32"). Return their number, or -1 if one of them
 * is invalid or there are too many. */
int crm_networks_parse(crm_network_t *networks, const char *text);

/* Return whether ADDRESS is in one of the COUNT NETWORKS. */
int crm_networks_have(const crm_network_t *networks, int count,
                      const char *address);

#endif /* CRM_NETWORK_H */
