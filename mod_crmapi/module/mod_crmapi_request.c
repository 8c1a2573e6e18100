/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_request.c: claiming requests: hooks before the handler */
#include "mod_crmapi_request.h"

#include <string.h>

#include "apr_strings.h"

#include "http_core.h"
#include "http_protocol.h"
#include "http_request.h"
#include "util_filter.h"

#include "crm_time.h"
#include "crm_uuid.h"

#include "mod_crmapi_config.h"
#include "mod_crmapi_mount.h"

#define HANDLER "crmapi"

/* The maximum length of an X-Request-Id that is kept (contract 5.4). */
#define REQUEST_ID_MAX 128

/* For core's table of ap_custom_response(): an empty text for each status, so
 * that ErrorDocuments are ignored. */
static const char *no_documents[RESPONSE_CODES];

/* Disable (ON 1) or restore (ON 0) the site's ErrorDocuments for R, whose
 * errors are JSON. */
static void shield(request_rec *r, int on)
{
    core_request_config *core = ap_get_core_module_config(r->request_config);

    /* This does what ap_custom_response() does, for all statuses at once. */
    core->response_code_strings =
        on ? apr_pmemdup(r->pool, no_documents, sizeof(no_documents)) : NULL;
}

int crmapi_has_json_errors(const request_rec *r)
{
    const char *rest;
    const crmapi_mount_t *mount = crmapi_mount_find(&rest, r);

    /* a forward proxy's path is another server's */
    return mount && mount->json_errors && r->proxyreq != PROXYREQ_PROXY;
}

crmapi_request_t *crmapi_request_find(const request_rec *r)
{
    return ap_get_module_config(r->request_config, &crmapi_module);
}

/* Return whether ID is a valid X-Request-Id (contract 5.4). */
static int is_valid_id(const char *id)
{
    size_t len = id ? strspn(id, "abcdefghijklmnopqrstuvwxyz"
                             "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") : 0;

    return len && !id[len] && len <= REQUEST_ID_MAX;
}

/* Return R's id. If R is an internal redirect or a subrequest, that is the id
 * of the original request. Otherwise it is the client's if it is valid, or a
 * new one. */
static const char *find_id(request_rec *r)
{
    const request_rec *origin = r->main ? r->main : r->prev;
    const char *sent = apr_table_get(r->headers_in, "X-Request-Id");
    char *made;

    if (origin && crmapi_request_find(origin)) {
        return crmapi_request_find(origin)->id;
    }
    if (is_valid_id(sent)) {
        return sent;
    }
    made = apr_palloc(r->pool, CRM_UUID_LEN + 1);
    crm_uuid_v7(made);
    return made;
}

crmapi_request_t *crmapi_request_begin(request_rec *r)
{
    crmapi_request_t *request = crmapi_request_find(r);

    if (!request) {
        request = apr_pcalloc(r->pool, sizeof(*request));
        request->r = r;
        request->begun = crm_time_monotonic()
                         - (apr_time_now() - r->request_time);
        request->config = crmapi_config(r->server);
        request->id = find_id(r);
        r->log_id = request->id;
        ap_set_module_config(r->request_config, &crmapi_module, request);
        if (crmapi_has_json_errors(r)) {
            shield(r, 1);
        }
    }
    return request;
}

/* The post_read_request hook: R's headers and server are known. */
static int post_read_request(request_rec *r)
{
    if (crmapi_has_json_errors(r)) {
        crmapi_request_begin(r);
    }
    return DECLINED;
}

/* The translate_name hook: R's path is decoded, and mod_rewrite has run, but
 * not mod_proxy. Redirects of mod_alias run later. */
static int translate_name(request_rec *r)
{
    const char *rest;

    if (!r->proxyreq && crmapi_mount_find(&rest, r)) {
        crmapi_request_begin(r)->reached = 1;
    }
    return DECLINED;
}

/* The translate_name hook that runs last but for the core's, which would refuse
 * a path that is too long for the name of a file, and log it. */
static int has_no_file(request_rec *r)
{
    const crmapi_request_t *request = crmapi_request_find(r);
    const char *rest;

    return request && request->reached && crmapi_mount_find(&rest, r)
           ? OK : DECLINED;
}

/* The map_to_storage hook. Paths below a mount are not files: claim the
 * request, so that no other module looks for one. */
static int map_to_storage(request_rec *r)
{
    crmapi_request_t *request = crmapi_request_find(r);

    if (!request) {
        return DECLINED;
    }
    request->mount = crmapi_mount_find(&request->path, r);
    if (!request->reached || !request->mount) {
        /* A rewrite rule has moved the request to a path outside the mounts,
         * where the site's own error pages apply. */
        ap_set_module_config(r->request_config, &crmapi_module, NULL);
        shield(r, 0);
        return DECLINED;
    }
    /* A ProxyPass of the whole site does not apply to the mounts. */
    r->proxyreq = PROXYREQ_NONE;
    r->handler = HANDLER;
    /* The name has no extension, so that mod_mime ignores it. */
    r->filename = apr_pstrdup(r->pool, HANDLER ":");
    r->path_info = NULL;
    request->claimed = 1;
    return OK;
}

/* The insert_filter hook. What the site says of the age of its files, by mod_expires,
 * is not for R: its own Cache-Control would be one of two (contract 5.4). */
static void remove_expires(request_rec *r)
{
    const crmapi_request_t *request = crmapi_request_find(r);
    ap_filter_t *next;

    for (ap_filter_t *f = r->output_filters; request && request->claimed && f;
         f = next) {
        next = f->next;
        if (!strcmp(f->frec->name, "mod_expires")) {
            ap_remove_output_filter(f);
        }
    }
}

void crmapi_request_register(void)
{
    static const char *const rewrite[] = {"mod_rewrite.c", NULL};
    static const char *const proxy[] = {"mod_proxy.c", NULL};

    for (int i = 0; i < RESPONSE_CODES; i++) {
        no_documents[i] = "\"";
    }
    ap_hook_post_read_request(post_read_request, NULL, NULL,
                              APR_HOOK_REALLY_FIRST);
    ap_hook_translate_name(translate_name, rewrite, proxy, APR_HOOK_FIRST);
    ap_hook_translate_name(has_no_file, NULL, NULL, APR_HOOK_LAST);
    ap_hook_insert_filter(remove_expires, NULL, NULL, APR_HOOK_REALLY_LAST);
    ap_hook_map_to_storage(map_to_storage, NULL, NULL, APR_HOOK_REALLY_FIRST);
}
