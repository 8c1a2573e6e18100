/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_mount.c: paths of ours beside the API, from httpd and back */
#include "mod_crmapi.h"

#include <string.h>

#include "apr_strings.h"

#include "http_core.h"
#include "http_protocol.h"
#include "http_request.h"

#include "crm_array.h"
#include "crm_uuid.h"

APLOG_USE_MODULE(crmapi);

#define HANDLER "crmapi-mount"

/* A note of a request that no rewriting has led elsewhere: it is ours. */
#define NOTE "crmapi-mount"

/* What lives where the configuration says. */
typedef struct mount_t {
    size_t path;                /* offset of its path in the configuration */
    /* Fill REQUEST's response; REST is what follows the path. */
    void (*serve)(crmapi_request_t *request, const char *rest);
} mount_t;

static const mount_t mounts[] = {
    {offsetof(crmapi_config_t, review_path), crmapi_serve_review},
    {offsetof(crmapi_config_t, unsubscribe_path), crmapi_serve_unsubscribe},
    {offsetof(crmapi_config_t, intake_path), crmapi_serve_intake},
};

/* Why this process can serve nothing, told in the log. */
static int refusing;

void crmapi_mounts_refuse_all(void)
{
    refusing = 1;
}

/* Return the mount that R is for and set *REST_P to what follows its path in
 * R's; NULL if R is for something else. */
static const mount_t *find_mount(const char **rest_p, const request_rec *r)
{
    const char *config = (const char *)crmapi_config(r->server);

    for (size_t i = 0; i < CRM_NELTS(mounts); i++) {
        const char *path = *(const char *const *)(const void *)(
            config + mounts[i].path);
        size_t len = path ? strlen(path) : 0;

        if (len && r->uri && !strncmp(r->uri, path, len)) {
            *rest_p = r->uri + len;
            return &mounts[i];
        }
    }
    return NULL;
}

/* A hook: R's path is decoded, mod_rewrite has had its say, mod_proxy not yet.
 * What mod_alias redirects comes after. */
static int translate_name(request_rec *r)
{
    const char *rest;

    if (!r->proxyreq && find_mount(&rest, r)) {
        apr_table_setn(r->notes, NOTE, "");
    }
    return DECLINED;
}

/* A hook: what is ours is no file: no module is to look for one. */
static int map_to_storage(request_rec *r)
{
    const char *rest;

    if (!apr_table_get(r->notes, NOTE) || !find_mount(&rest, r)) {
        return DECLINED;
    }
    /* A ProxyPass of all that a site has does not take it along. */
    r->proxyreq = PROXYREQ_NONE;
    r->handler = HANDLER;
    /* Nothing that mod_mime would see a file's extension in. */
    r->filename = apr_pstrdup(r->pool, HANDLER ":");
    r->path_info = NULL;
    return OK;
}

/* Fill REQUEST, what the API's functions know a request by, with R. It is not
 * found by crmapi_request_find(): errors of httpd's stay httpd's here. */
static void begin(crmapi_request_t *request, request_rec *r)
{
    char *id = apr_palloc(r->pool, CRM_UUID_LEN + 1);

    crm_uuid_v7(id);
    memset(request, 0, sizeof(*request));
    request->r = r;
    request->config = crmapi_config(r->server);
    request->id = id;
}

/* The core's levels are httpd's. No line has a token in it. */
static void write_log(const crmapi_request_t *request)
{
    const crm_response_t *response = &request->response;

    if (response->log) {
        ap_log_rerror(APLOG_MARK, (int)response->level, 0, request->r,
                      "%s [%s, request %s]", response->log, response->route,
                      request->id);
    }
}

/* What the access log may show. */
static void set_notes(const crmapi_request_t *request)
{
    const crm_response_t *response = &request->response;
    apr_table_t *notes = request->r->notes;

    if (response->workspace_id) {
        apr_table_setn(notes, "crmapi-workspace", response->workspace_id);
    }
    apr_table_setn(notes, "crmapi-route", response->route);
    apr_table_setn(notes, "crmapi-db-us",
                   apr_psprintf(request->r->pool, "%" APR_INT64_T_FMT,
                                response->db_us));
}

/* Set NAME to VALUE, once. */
static int set_header(void *r, const char *name, const char *value)
{
    apr_table_unset(((request_rec *)r)->err_headers_out, name);
    apr_table_setn(((request_rec *)r)->headers_out, name, value);
    return 1;
}

/* Send the answer; its body lives as long as the request. */
static int send_answer(crmapi_request_t *request)
{
    const crm_response_t *response = &request->response;
    request_rec *r = request->r;
    apr_bucket_alloc_t *alloc = r->connection->bucket_alloc;
    apr_bucket_brigade *bb = apr_brigade_create(r->pool, alloc);
    int rest = crmapi_spare_body(request);

    r->status = response->status;
    r->status_line = NULL;
    r->no_local_copy = 1;
    apr_table_do(set_header, r, response->headers, NULL);
    ap_set_content_length(r, (apr_off_t)response->body.len);
    if (response->body.len) {
        const char *type = apr_table_get(response->headers, "Content-Type");

        ap_set_content_type(r, type ? type : "text/html; charset=utf-8");
        APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_pool_create(
                                    response->body.data, response->body.len,
                                    r->pool, alloc));
    }
    if (rest) {
        APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_flush_create(alloc));
    }
    APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_eos_create(alloc));
    return ap_pass_brigade(r->output_filters, bb) == APR_SUCCESS
           || r->connection->aborted ? OK : AP_FILTER_ERROR;
}

/* A hook: serve R if it is ours. */
static int handler(request_rec *r)
{
    crmapi_request_t *request;
    const mount_t *mount;
    const char *rest;

    if (!r->handler || strcmp(r->handler, HANDLER)) {
        return DECLINED;
    }
    mount = find_mount(&rest, r);
    if (!mount || !apr_table_get(r->notes, NOTE)) {
        return DECLINED;
    }
    if (refusing) {
        return HTTP_SERVICE_UNAVAILABLE;
    }
    request = apr_palloc(r->pool, sizeof(*request));
    begin(request, r);
    mount->serve(request, rest);
    set_notes(request);
    write_log(request);
    return send_answer(request);
}

void crmapi_mounts_register(void)
{
    static const char *const rewrite[] = {"mod_rewrite.c", NULL};
    static const char *const proxy[] = {"mod_proxy.c", NULL};

    ap_hook_translate_name(translate_name, rewrite, proxy, APR_HOOK_FIRST);
    ap_hook_map_to_storage(map_to_storage, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_handler(handler, NULL, NULL, APR_HOOK_FIRST);
}
