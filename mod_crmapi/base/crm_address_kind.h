/* SPDX-License-Identifier: Apache-2.0 */
/* crm_address_kind.h: whether an address is public (contract 12.4) */
#ifndef CRM_ADDRESS_KIND_H
#define CRM_ADDRESS_KIND_H

#include <sys/socket.h>

/* Where an address can be reached. */
typedef enum crm_address_kind_t {
    CRM_ADDRESS_PUBLIC,         /* globally: a unicast address that is not
                                   special-purpose in IANA's registries
                                   (RFC 6890) */
    CRM_ADDRESS_PRIVATE,        /* from this machine or network, such as
                                   loopback, private, link-local; or it is
                                   unassigned */
    CRM_ADDRESS_NEVER           /* nowhere by TCP: unspecified, multicast,
                                   broadcast, documentation, reserved */
} crm_address_kind_t;

/* Return the kind of ADDRESS, of LEN bytes. Address families other than IPv4 and
 * IPv6 are private. */
crm_address_kind_t crm_address_kind(const struct sockaddr *address,
                                    socklen_t len);

#endif /* CRM_ADDRESS_KIND_H */
