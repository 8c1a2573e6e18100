/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_line.h: what logs have of a request line */
#ifndef MOD_CRMAPI_LINE_H
#define MOD_CRMAPI_LINE_H

/* Register hooks for the request lines of the mounts, which httpd logs. They leave
 * out what is secret or may say who a person is (contract 14.4):
 * - the query, unless all its parameters are known to be harmless;
 * - a segment of the path that has an address, and what follows it;
 * - the token of a link.
 * mod_status shows the same line if the client wrote the mount's path without
 * "%". */
void crmapi_line_register(void);

#endif /* MOD_CRMAPI_LINE_H */
