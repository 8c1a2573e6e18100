/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_mount.c: the mounts of a server, and the mount of a request */
#include "mod_crmapi.h"

#include <string.h>

#include "crm_api.h"
#include "crm_array.h"
#include "crm_pages.h"
#include "crm_rest.h"

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

static const crmapi_mount_t mounts[] = {
    {&crm_api_mount, api_path, 1},
    {&crm_review_mount, review_path, 0},
    {&crm_unsubscribe_mount, unsubscribe_path, 0},
    {&crm_intake_mount, intake_path, 0},
};

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
        /* httpd could not parse the request line */
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
