/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_mount.h: the mounts of a server, and the mount of a request */
#ifndef MOD_CRMAPI_MOUNT_H
#define MOD_CRMAPI_MOUNT_H

#include "crm_serve.h"

#include "mod_crmapi_config.h"

/* The number of mounts. */
#define CRMAPI_MOUNTS 5

/* A mount: a path under which this module serves requests. Each server may have
 * it. */
typedef struct crmapi_mount_t {
    const char *name;           /* in metrics */
    const char *directive;
    const crm_mount_t *mount;
    /* Return the mount's path on the server of CONFIG, "" if it is off
     * there. */
    const char *(*path)(const crmapi_config_t *config);
    int json_errors;            /* errors from httpd itself are JSON, too
                                   (contract 5.5) */
    int secret_paths;           /* a path below it is a link that proves a
                                   right */
} crmapi_mount_t;

/* Make the routes of all mounts, in PCONF. */
crm_error_t *crmapi_mounts_create(apr_pool_t *pconf);

/* From now on answer all requests to this process with 503. */
void crmapi_mounts_close(void);

/* Return a message, in P, if a mount of S has the path of another one, or one below
 * it: that one would get its requests. NULL if there is none. */
const char *crmapi_mounts_overlap(const server_rec *s, apr_pool_t *p);

/* Return the number of MOUNT, from 0. For NULL return that of the API: httpd
 * refused the request before its mount was known. */
int crmapi_mount_number(const crmapi_mount_t *mount);
const char *crmapi_mount_name(int number);

/* Return the number of the first route of the mount NUMBER. It stands for
 * requests without a route. The others follow in the order of
 * crm_path_number(). For CRMAPI_MOUNTS return the number of all routes. */
int crmapi_mount_first(int number);

/* Return the name of the route NUMBER for logs and metrics. */
const char *crmapi_route_name(int number);

/* Return the mount of R at this stage of its processing, or NULL. If httpd
 * could not parse the request line, its text is used. Set *REST_P to the path
 * below the mount. */
const crmapi_mount_t *crmapi_mount_find(const char **rest_p,
                                        const request_rec *r);

#endif /* MOD_CRMAPI_MOUNT_H */
