/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_permit.c: who may switch on the handlers that show the server
 *
 * SetHandler is allowed in .htaccess files, with AllowOverride FileInfo. A
 * handler's name does not tell who has set it, and neither do <Files> or
 * RewriteRule in such a file. So no .htaccess file may take part at all. */
#include "mod_crmapi_permit.h"

#include "http_log.h"

APLOG_USE_MODULE(crmapi);

/* The configuration of a folder or location. */
typedef struct permit_t {
    int on;                     /* -1: not set */
} permit_t;

void *crmapi_permit_create(apr_pool_t *p, char *dir)
{
    permit_t *permit = apr_palloc(p, sizeof(*permit));

    (void)dir;
    permit->on = -1;
    return permit;
}

void *crmapi_permit_merge(apr_pool_t *p, void *base, void *more)
{
    permit_t *permit = more;

    (void)p;
    return permit->on >= 0 ? more : base;
}

const char *crmapi_set_permit(cmd_parms *cmd, void *config, int on)
{
    (void)cmd;
    ((permit_t *)config)->on = on;
    return NULL;
}

int crmapi_permitted(request_rec *r)
{
    const permit_t *permit = ap_get_module_config(r->per_dir_config,
                                                  &crmapi_module);

    for (const struct htaccess_result *one = r->htaccess;
         one && permit->on <= 0; one = one->next) {
        if (one->htaccess) {
            ap_log_rerror(APLOG_MARK, APLOG_WARNING, 0, r, "CRM1202: %s does"
                          " not answer where .htaccess files take part (%s):"
                          " CrmApiHtaccessHandlers is off", r->handler,
                          one->dir);
            return 0;
        }
    }
    return 1;
}
