/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_address.h: is an address public? (contract 12.4) */
#ifndef CRMAPID_ADDRESS_H
#define CRMAPID_ADDRESS_H

#include <sys/socket.h>

/* Return whether ADDRESS, of LEN bytes, is one that the whole internet
 * reaches: not this machine, its networks, a provider's insides, a multicast
 * group, documentation, or what nobody has (IANA's registries of special
 * purpose IPv4 and IPv6 addresses, RFC 6890). Families other than IPv4 and
 * IPv6 are not. */
int crmd_address_public(const struct sockaddr *address, socklen_t len);

#endif /* CRMAPID_ADDRESS_H */
