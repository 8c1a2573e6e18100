/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_mount.c: the mounts of a server, and the mount of a request */
#include "mod_crmapi_mount.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_api.h"
#include "crm_array.h"
#include "crm_domain.h"
#include "crm_mcp.h"
#include "crm_pages.h"

#include "mod_crmapi_config.h"

static const char *api_path(const crmapi_config_t *config)
{
    return config->enabled == 1 ? CRM_API_BASE : "";
}

static const char *review_path(const crmapi_config_t *config)
{
    return config->review_path;
}

static const char *unsubscribe_path(const crmapi_config_t *config)
{
    return config->unsubscribe_path;
}

static const char *intake_path(const crmapi_config_t *config)
{
    return config->intake_path;
}

static const char *mcp_path(const crmapi_config_t *config)
{
    return config->mcp_path;
}

static const crmapi_mount_t mounts[CRMAPI_MOUNTS] = {
    {"api", "CrmApi", &crm_api_mount, api_path, 1, 0},
    {"review", "CrmApiReview", &crm_review_mount, review_path, 0, 1},
    {"unsubscribe", "CrmApiUnsubscribe", &crm_unsubscribe_mount, unsubscribe_path,
     0, 1},
    {"intake", "CrmApiIntake", &crm_intake_mount, intake_path, 0, 0},
    {"mcp", "CrmApiMcp", &crm_mcp_mount, mcp_path, 1, 0},
};

/* The number of each mount's first route, then the number of all routes. A
 * mount's first route stands for requests that match none of its router's. */
static int first[CRMAPI_MOUNTS + 1];

/* The names of routes by number. */
static const char **names;

/* ---- routes -------------------------------------------------------------- */

/* Set the names of MOUNT's routes. The first has the number FIRST_NUMBER. */
static void name_routes(const crm_mount_t *mount, int first_number)
{
    names[first_number] = "none";
    for (int i = 0; i < mount->router->nelts; i++) {
        const crm_path_t *path = &APR_ARRAY_IDX(mount->router, i, crm_path_t);

        for (int j = 0; path->routes[j]; j++) {
            names[first_number + path->first + j] = path->names[j];
        }
    }
}

crm_error_t *crmapi_mounts_create(apr_pool_t *pconf)
{
    CRM_ERR(crm_api_init(&crm_domain, pconf));
    crm_pages_init(pconf);
    crm_intake_init(pconf);
    CRM_ERR(crm_mcp_init(pconf));
    for (int i = 0; i < CRMAPI_MOUNTS; i++) {
        first[i + 1] = first[i] + 1 + crm_router_count(mounts[i].mount->router);
    }
    names = apr_palloc(pconf, (apr_size_t)first[CRMAPI_MOUNTS]
                       * sizeof(*names));
    for (int i = 0; i < CRMAPI_MOUNTS; i++) {
        name_routes(mounts[i].mount, first[i]);
    }
    return NULL;
}

void crmapi_mounts_close(void)
{
    crm_api_mount.router = crm_review_mount.router = NULL;
    crm_unsubscribe_mount.router = crm_intake_mount.router = NULL;
    crm_mcp_mount.router = NULL;
}

int crmapi_mount_number(const crmapi_mount_t *mount)
{
    return mount ? (int)(mount - mounts) : 0;
}

const char *crmapi_mount_name(int number)
{
    return mounts[number].name;
}

int crmapi_mount_first(int number)
{
    return first[number];
}

const char *crmapi_route_name(int number)
{
    return names[number];
}

/* ---- requests ------------------------------------------------------------ */

/* Return the part of URI after PATH, the path of a mount, with a leading slash.
 * NULL if URI is not below PATH. */
static const char *rest_of(const char *path, const char *uri)
{
    size_t len = strlen(path);

    if (len && path[len - 1] == '/') {
        len--;
    }
    return len && !strncmp(uri, path, len) && strchr("/? ", uri[len])
           ? uri + len : NULL;
}

const crmapi_mount_t *crmapi_mount_find(const char **rest_p,
                                        const request_rec *r)
{
    const crmapi_config_t *config = crmapi_config(r->server);
    const char *uri = r->uri;

    if (!uri) {
        /* httpd could not parse the request line. */
        uri = r->the_request ? strchr(r->the_request, ' ') : NULL;
        uri = uri ? uri + strspn(uri, " ") : "";
    }
    for (size_t i = 0; i < CRM_NELTS(mounts); i++) {
        *rest_p = rest_of(mounts[i].path(config), uri);
        if (*rest_p) {
            return &mounts[i];
        }
    }
    return NULL;
}

/* Return where S is configured, for a message in P. */
static const char *place_of(const server_rec *s, apr_pool_t *p)
{
    return s->defn_name ? apr_psprintf(p, "the virtual host in %s:%u", s->defn_name,
                                       s->defn_line_number)
                        : "the main server";
}

const char *crmapi_mounts_overlap(const server_rec *s, apr_pool_t *p)
{
    crmapi_config_t config = *crmapi_config(s);

    crmapi_config_complete(&config);
    for (int i = 0; i < CRMAPI_MOUNTS; i++) {
        const char *path = mounts[i].path(&config);

        for (int j = 0; j < CRMAPI_MOUNTS; j++) {
            const char *other = mounts[j].path(&config);

            if (i != j && rest_of(path, other)) {
                return apr_psprintf(p, "CRM1111: %s: the path %s of %s is that of "
                                    "%s, %s, or below it: give one of them "
                                    "another path", place_of(s, p), other,
                                    mounts[j].directive, mounts[i].directive,
                                    path);
            }
        }
    }
    return NULL;
}
