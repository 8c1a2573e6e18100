/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_permit.c: who may switch on the handlers that show the server
 *
 * SetHandler is allowed in .htaccess files, with AllowOverride FileInfo. A
 * handler's name does not tell who has set it, and neither do <Files> or
 * RewriteRule in such a file. So no .htaccess file may take part at all. */
#include "mod_crmapi_permit.h"

#include <string.h>

#include "http_log.h"
#include "http_protocol.h"
#include "http_request.h"

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

/* Return whether R's handler may answer: no .htaccess file takes part in R, whose
 * owner may have set the handler, or the server's configuration permits that.
 * Otherwise log it. */
static int is_permitted(request_rec *r)
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

int crmapi_asked(request_rec *r, const char *handler)
{
    if (!r->handler || strcmp(r->handler, handler)) {
        return DECLINED;
    }
    if (!is_permitted(r)) {
        return HTTP_NOT_FOUND;
    }
    ap_allow_standard_methods(r, REPLACE_ALLOW, M_GET, -1);
    return r->method_number == M_GET ? OK : HTTP_METHOD_NOT_ALLOWED;
}
