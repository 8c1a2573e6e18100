/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_line.c: what logs have of a request line */
#include "mod_crmapi_line.h"

#include <string.h>

#include "apr_strings.h"

#include "http_protocol.h"

#include "crm_array.h"

#include "mod_crmapi_config.h"
#include "mod_crmapi_mount.h"

/* Parameters that say nothing of a person. */
static const char *const harmless[] = {
    "active", "archived", "assigned", "completed", "cursor", "domain", "enabled",
    "has_company", "human_takeover", "ids", "include", "include_archived",
    "include_deleted", "include_internal", "industry", "is_agent",
    "lead_source", "order", "page", "page_size", "role", "slug", "sort",
    "status", "tags", "tags_match", "type", "unanswered", "wait",
    "bot_id", "company_id", "contact_id", "conversation_id", "form_id",
    "pipeline_id", "pipeline_stage_id", "template_id",
};

/* Endings of the names of others, which are times and kinds. */
static const char *const endings[] = {"_after", "_before", "_type"};

/* Return whether a parameter whose name is the LEN bytes at NAME is one of
 * these. */
static int is_harmless(const char *name, size_t len)
{
    for (size_t i = 0; i < CRM_NELTS(harmless); i++) {
        if (strlen(harmless[i]) == len && !memcmp(harmless[i], name, len)) {
            return 1;
        }
    }
    for (size_t i = 0; i < CRM_NELTS(endings); i++) {
        size_t end = strlen(endings[i]);

        if (len > end && !memcmp(name + len - end, endings[i], end)) {
            return 1;
        }
    }
    return 0;
}

/* Return where an address is in the LEN bytes at TEXT: its "@", or NULL. */
static const char *find_address(const char *text, size_t len)
{
    for (const char *at = text; at < text + len; at++) {
        if (*at == '@' || (*at == '%' && text + len - at > 2 && at[1] == '4'
                           && at[2] == '0')) {
            return at;
        }
    }
    return NULL;
}

/* Return whether the LEN bytes at QUERY may say who a person is. */
static int tells_person(const char *query, size_t len)
{
    const char *end = query + len;

    if (find_address(query, len)) {
        return 1;
    }
    while (query < end) {
        size_t pair = strcspn(query, "&; #");

        if (!is_harmless(query, strcspn(query, "=&; #"))) {
            return 1;
        }
        query += pair + 1;
    }
    return 0;
}

/* Return where the path from PATH to END, which a client has sent to MOUNT, begins
 * to be none of a log's business, or NULL. CONFIG is the server's. */
static const char *find_secret(const crmapi_mount_t *mount, const char *path,
                               const char *end, const crmapi_config_t *config)
{
    const char *at = find_address(path, (size_t)(end - path));

    if (mount->secret_paths) {
        const char *base = mount->path(config);
        size_t len = strlen(base) - 1;      /* a slash may be the last */

        /* the client may have written the mount's path otherwise */
        at = strncmp(path, base, len) ? path : path + len;
        at = memchr(at, '/', (size_t)(end - at));
        return at && at + 1 < end ? at + 1 : NULL;
    }
    while (at && at > path && at[-1] != '/') {
        at--;
    }
    return at;
}

/* Return, in P, what TEXT has before FROM, then INSTEAD and REST. */
static char *put_instead(const char *text, const char *from,
                         const char *instead, const char *rest, apr_pool_t *p)
{
    return apr_pstrcat(p, apr_pstrmemdup(p, text, (apr_size_t)(from - text)),
                       instead, rest, NULL);
}

/* Leave out of the request line of R, which is MOUNT's, what logs must not have. A
 * client may have sent blanks in its path or query, where httpd may have cut the
 * line, and a fragment. */
static void hide(request_rec *r, const crmapi_mount_t *mount)
{
    const char *line = r->the_request;
    const char *path = line ? strchr(line, ' ') : NULL, *query, *end, *from;

    if (!path) {
        return;
    }
    path += strspn(path, " ");
    end = strrchr(path, ' ');
    if (!end || strncmp(end, " HTTP/", 6)) {
        end = path + strlen(path);
    }
    query = strpbrk(path, "?#");
    query = query && query < end ? query : NULL;
    from = find_secret(mount, path, query ? query : end,
                       crmapi_config(r->server));
    if (from) {
        r->the_request = put_instead(line, from, "-", end, r->pool);
    }
    else if (query && tells_person(query + 1, (size_t)(end - query - 1))) {
        r->the_request = put_instead(line, query, "", end, r->pool);
    }
}

/* The post_read_request hook, after modules that judge the line, and before
 * mod_status copies it. */
static int post_read_request(request_rec *r)
{
    const char *rest;
    const crmapi_mount_t *mount = crmapi_mount_find(&rest, r);

    if (mount) {
        hide(r, mount);
    }
    return DECLINED;
}

/* The log_transaction hook. An error may have come before the other hook. Logs
 * with %q and %U have the query from R's args and the path from its uri. */
static int log_transaction(request_rec *r)
{
    const char *rest, *from;
    const crmapi_mount_t *mount = crmapi_mount_find(&rest, r);

    if (!mount) {
        return DECLINED;
    }
    hide(r, mount);
    if (r->the_request && !strchr(r->the_request, '?')) {
        r->args = NULL;
    }
    from = r->uri ? find_secret(mount, r->uri, r->uri + strlen(r->uri),
                                crmapi_config(r->server)) : NULL;
    if (from) {
        r->uri = put_instead(r->uri, from, "-", "", r->pool);
    }
    return DECLINED;
}

void crmapi_line_register(void)
{
    static const char *const loggers[] = {"mod_log_config.c", NULL};

    ap_hook_post_read_request(post_read_request, NULL, NULL,
                              APR_HOOK_REALLY_LAST);
    ap_hook_log_transaction(log_transaction, NULL, loggers, APR_HOOK_FIRST);
}
