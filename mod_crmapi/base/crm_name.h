/* SPDX-License-Identifier: Apache-2.0 */
/* crm_name.h: the addresses of a host, from a name service that may be silent */
#ifndef CRM_NAME_H
#define CRM_NAME_H

#include <sys/socket.h>

#include "apr.h"

/* What crm_name_find() returns if the name service gives no answer in time. */
#define CRM_NAME_LATE "the name service gave no answer in time"
extern const char crm_name_late[];

/* Set ADDRESSES and LENGTHS to the first addresses of HOST for streams, at most MOST,
 * with PORT (decimal; NULL: 0). The unused LENGTHS are 0. Wait for the name service up
 * to UNTIL, on the clock of crm_time_monotonic(). Return NULL, crm_name_late, or why
 * there is no address, a constant.
 *
 * A thread asks, because getaddrinfo() has no time limit. If it is late, who asks for
 * the same soon gets its answer. Not for a process that unloads this library and goes
 * on, as httpd's parent does. */
const char *crm_name_find(struct sockaddr_storage *addresses,
                          socklen_t *lengths, int most, const char *host,
                          const char *port, apr_int64_t until);

#endif /* CRM_NAME_H */
