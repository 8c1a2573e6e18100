/* SPDX-License-Identifier: Apache-2.0 */
/* crm_hosts.h: connection strings with several hosts */
#ifndef CRM_HOSTS_H
#define CRM_HOSTS_H

#include <libpq-fe.h>

#include "apr_pools.h"
#include "apr_tables.h"

/* Return the value of KEYWORD in OPTIONS (NULL: none), "" if it is not set. */
const char *crm_hosts_value(const PQconninfoOption *options,
                            const char *keyword);

/* Return TEXT, a message of libpq about a connection that failed, on one line in
 * RESULT_POOL: what it says of each host, once, separated by "; ". libpq tries a host
 * with TLS and without. What is not about a server is without what is in quotes: it may
 * be a part of a password. */
const char *crm_hosts_cause(const char *text, apr_pool_t *result_pool);

/* Return whether TEXT, of a log, says why a host cannot be connected to. That it closed
 * the connection is no reason: the next attempt finds one. */
int crm_hosts_tells(const char *text);

/* Return why CONNINFO cannot be used, in RESULT_POOL, or NULL: libpq cannot
 * parse it, or its host contains '@'. The cause is an '@' in the password that
 * was not written as %40; libpq's messages would then show a part of the
 * password. */
const char *crm_hosts_fault(const char *conninfo, apr_pool_t *result_pool);

/* Return where CONNINFO leads, and as whom, for a log: "host=... user=...", never a
 * password, in RESULT_POOL. USER (NULL: none) is the login if it names none. */
const char *crm_hosts_label(const char *conninfo, const char *user,
                            apr_pool_t *result_pool);

/* Return libpq's options for CONNINFO, with those of its service and of the
 * environment, for PQconninfoFree(); NULL: no memory. Nothing is connected to. That
 * costs the values of password and sslmode. */
PQconninfoOption *crm_hosts_options(const char *conninfo);

/* Keywords and values for PQconnectdbParams(), each ended by a NULL. */
typedef struct crm_params_t {
    const char **keywords;
    const char **values;
} crm_params_t;

/* Values for libpq's options of these names, which have a part for each address. All
 * are NULL if there is nothing to look up. */
typedef struct crm_hosts_found_t {
    const char *host, *hostaddr, *port;
} crm_hosts_found_t;

/* Set *FOUND_P, in RESULT_POOL, to the addresses of the hosts of CONNINFO. The name
 * service has until UNTIL: see crm_name_find(). A host that it says nothing about by
 * then is left out. One that it does not know has no address: libpq says why. Return 0
 * if all were left out. */
int crm_hosts_find(crm_hosts_found_t *found_p, const char *conninfo,
                   apr_time_t until, apr_pool_t *result_pool);

/* Return the number of hosts that CONNINFO (libpq's syntax) names, at least
 * 1. */
int crm_hosts_count(const char *conninfo);

/* Begin to look up the names of all hosts of OPTIONS (libpq's) at the same time, so
 * that a silent one leaves time for the others. Scratch memory is in POOL. */
void crm_hosts_ask(const PQconninfoOption *options, apr_pool_t *pool);

/* Return the addresses, as texts in RESULT_POOL, of the host number INDEX, from 0, of
 * CONNINFO. The name service has until UNTIL: see crm_name_find(). If there are none,
 * *FAULT_P is the reason, as libpq says it; otherwise NULL. One NULL: there is nothing
 * to look up, as for the folder of a socket. */
apr_array_header_t *crm_hosts_addresses(const char **fault_p,
                                        const char *conninfo, int index,
                                        apr_time_t until,
                                        apr_pool_t *result_pool);

/* Return whether the name service has said nothing by UNTIL, on the clock of
 * crm_time_monotonic(), about a host of OPTIONS (libpq's), before any of whose
 * addresses it gave. libpq itself would wait for it without a limit. Scratch memory is
 * in POOL. */
int crm_hosts_silent(const PQconninfoOption *options, apr_time_t until,
                     apr_pool_t *pool);

/* What is said of a silent name service, as libpq would. */
extern const char crm_hosts_nameless[];

/* Return the parameters of CONNINFO, in RESULT_POOL, with its host number
 * INDEX, from 0, as the only one, and ADDRESS (NULL: any) as its only address. NAME is
 * the session's application_name if CONNINFO has none. */
crm_params_t crm_hosts_one(const char *conninfo, int index,
                           const char *address, const char *name,
                           apr_pool_t *result_pool);

#endif /* CRM_HOSTS_H */
