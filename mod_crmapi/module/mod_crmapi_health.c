/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_health.c: the handler crmapi-health: whether httpd serves requests
 * and the vhost's database answers (contract 15.2) */
#include "mod_crmapi_health.h"

#include <string.h>

#include "http_protocol.h"
#include "http_request.h"

#include "mod_crmapi_config.h"
#include "mod_crmapi_permit.h"
#include "mod_crmapi_usable.h"

#define HANDLER "crmapi-health"

/* All processes use a verdict for this time. It leaves some of the second within
 * which a database that was stopped is noticed. */
#define SHARED_FOR apr_time_from_msec(750)

static const struct {
    int status;
    const char *word;
} answers[] = {
    [CRMAPI_NEVER_CHECKED] = {HTTP_SERVICE_UNAVAILABLE, "unknown"},
    [CRMAPI_USABLE] = {HTTP_OK, "ready"},
    [CRMAPI_NO_CONFIGURATION] = {HTTP_SERVICE_UNAVAILABLE, "configuration"},
    [CRMAPI_NO_DATABASE] = {HTTP_SERVICE_UNAVAILABLE, "database"},
    [CRMAPI_DATABASE_FULL] = {HTTP_SERVICE_UNAVAILABLE, "connections"},
    [CRMAPI_OTHER_SCHEMA] = {HTTP_SERVICE_UNAVAILABLE, "schema"},
};

/* Respond to R with STATUS and WORD. */
static int respond(request_rec *r, int status, const char *word)
{
    r->status = status;
    r->no_local_copy = 1;
    ap_set_content_type(r, "text/plain; charset=utf-8");
    apr_table_setn(r->headers_out, "Cache-Control", "no-store");
    ap_set_content_length(r, (apr_off_t)strlen(word) + 1);
    if (!r->header_only) {
        ap_rvputs(r, word, "\n", NULL);
    }
    return OK;
}

/* Return whether R's path ends with NAME. */
static int ends_with(const request_rec *r, const char *name)
{
    size_t len = strlen(r->uri), more = strlen(name);

    return len >= more && !strcmp(r->uri + len - more, name);
}

int crmapi_health_handler(request_rec *r)
{
    int status = crmapi_asked(r, HANDLER);
    crmapi_verdict_t verdict;

    if (status != OK) {
        return status;
    }
    if (ends_with(r, "/live")) {
        return respond(r, HTTP_OK, "live");
    }
    if (!ends_with(r, "/ready")) {
        return HTTP_NOT_FOUND;
    }
    verdict = crmapi_usable(crmapi_config(r->server)->pool, SHARED_FOR,
                            r->server, r->pool);
    return respond(r, answers[verdict].status, answers[verdict].word);
}
