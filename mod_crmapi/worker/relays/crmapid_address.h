/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_address.h: whether an address is public (contract 12.4) */
#ifndef CRMAPID_ADDRESS_H
#define CRMAPID_ADDRESS_H

#include <sys/socket.h>

/* Return whether ADDRESS, of LEN bytes, is globally reachable: a unicast
 * address that is not special-purpose in IANA's registries (RFC 6890), such as
 * loopback, private, link-local, multicast, documentation or unassigned.
 * Address families other than IPv4 and IPv6 are never public. */
int crmd_address_public(const struct sockaddr *address, socklen_t len);

#endif /* CRMAPID_ADDRESS_H */
