/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_httpd.h: the configuration of httpd for a database */
#ifndef CRMAPICTL_HTTPD_H
#define CRMAPICTL_HTTPD_H

#include "crmapictl.h"

/* The sample crmapi.conf, without the line of its license: build/embed. */
extern const char ctl_httpd_sample[];

/* "httpd-conf": print the sample with DBDParams of this database and of the
 * operand, a login of crmapi_api; without one, of the only such login. */
crm_error_t *ctl_httpd_conf(ctl_t *ctl);

#endif /* CRMAPICTL_HTTPD_H */
