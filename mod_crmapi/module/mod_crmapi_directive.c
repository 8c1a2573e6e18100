/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_directive.c: the directives, a row each */
#include "mod_crmapi_directive.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "apr_cstr.h"
#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_db_conn.h"
#include "crm_key.h"
#include "crm_mcp.h"
#include "crm_origin.h"
#include "crm_pages.h"
#include "crm_rest.h"
#include "crm_uuid.h"

#include "mod_crmapi_intake.h"
#include "mod_crmapi_permit.h"
#include "mod_crmapi_store.h"

#define LIMIT_MAX 1000000
#define KEYS_MAX 16777216
#define SLUG_MAX 63             /* as in the schema */
#define BODY_MAX 1073741824
#define KEEPALIVE_MAX 1000000   /* microseconds */

/* ---- values -------------------------------------------------------------- */

/* Return the member that CMD sets. */
static void *member_of(const cmd_parms *cmd)
{
    return crmapi_setting_at(cmd->info, crmapi_config(cmd->server));
}

static const char *set_number(cmd_parms *cmd, void *dir, const char *value)
{
    const crmapi_setting_t *setting = cmd->info;
    const char *problem = setting->global
                          ? ap_check_cmd_context(cmd, GLOBAL_ONLY) : NULL;
    char *end;
    apr_int64_t n = apr_strtoi64(value, &end, 10);

    (void)dir;
    if (problem) {
        return problem;
    }
    if (!apr_isdigit(*value) || *end || n < setting->min || n > setting->max) {
        return apr_psprintf(cmd->pool, "%s must be an integer from %d to "
                            "%d, not \"%s\"", cmd->cmd->name, setting->min,
                            setting->max, value);
    }
    *(int *)member_of(cmd) = (int)n;
    return NULL;
}

static const char *set_flag(cmd_parms *cmd, void *dir, int on)
{
    (void)dir;
    *(int *)member_of(cmd) = on;
    return NULL;
}

/* Return WORDS as text, "a, b or c", in POOL. */
static const char *say(const char *const *words, apr_pool_t *pool)
{
    const char *text = *words;

    while (*++words) {
        text = apr_pstrcat(pool, text, words[1] ? ", " : " or ", *words, NULL);
    }
    return text;
}

static const char *set_word(cmd_parms *cmd, void *dir, const char *value)
{
    const char *const *words = ((const crmapi_setting_t *)cmd->info)->words;

    (void)dir;
    for (int i = 0; words[i]; i++) {
        if (!ap_cstr_casecmp(value, words[i])) {
            *(int *)member_of(cmd) = i;
            return NULL;
        }
    }
    return apr_psprintf(cmd->pool, "%s must be %s, not \"%s\"",
                        cmd->cmd->name, say(words, cmd->pool), value);
}

static const char *set_duration(cmd_parms *cmd, void *dir, const char *value)
{
    const crmapi_setting_t *setting = cmd->info;
    apr_interval_time_t time;

    (void)dir;
    if (!apr_isdigit(*value)
        || ap_timeout_parameter_parse(value, &time, "s")
        || time < apr_time_from_sec(setting->min)
        || time > apr_time_from_sec(setting->max)) {
        return apr_psprintf(cmd->pool, "%s must be a time from %d to %d s, "
                            "such as 2, 2s or 2500ms, not \"%s\"",
                            cmd->cmd->name, setting->min, setting->max, value);
    }
    *(apr_interval_time_t *)member_of(cmd) = time;
    return NULL;
}

static const char *set_text(cmd_parms *cmd, void *dir, const char *value)
{
    (void)dir;
    *(const char **)member_of(cmd) = value;
    return NULL;
}

static const char *set_prefix(cmd_parms *cmd, void *dir, const char *value)
{
    size_t len = strspn(value, "abcdefghijklmnopqrstuvwxyz"
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

    if (!len || value[len] || len > CRM_KEY_PREFIX_MAX) {
        return apr_psprintf(cmd->pool, "CrmApiKeyPrefix must have 1 to %d "
                            "characters of A-Z, a-z, 0-9 and _, not \"%s\"",
                            CRM_KEY_PREFIX_MAX, value);
    }
    return set_text(cmd, dir, value);
}

const char *crmapi_check_workspace(const cmd_parms *cmd, const char *name,
                                   const char *value)
{
    char id[CRM_UUID_LEN + 1];
    size_t len = strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789-");

    if (!crm_uuid_parse(id, value, strlen(value))
        && (!len || value[len] || len > SLUG_MAX || *value == '-'
            || value[len - 1] == '-')) {
        return apr_psprintf(cmd->pool, "%s must be the id or "
                            "slug of a workspace (1 to %d characters of a-z, "
                            "0-9 and -, no - at the ends), not \"%s\"",
                            name, SLUG_MAX, value);
    }
    return NULL;
}

static const char *set_workspace(cmd_parms *cmd, void *dir, const char *value)
{
    set_text(cmd, dir, value);
    return crmapi_check_workspace(cmd, cmd->cmd->name, value);
}

/* Return whether PATH is a valid path of a mount. */
static int is_page_path(const char *path)
{
    size_t len = strspn(path, "abcdefghijklmnopqrstuvwxyz"
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./");

    return len > 2 && !path[len] && *path == '/' && path[len - 1] == '/'
           && !strstr(path, "//") && !strstr(path, "/.")
           && strncmp(path, CRM_API_BASE "/", sizeof(CRM_API_BASE));
}

static const char *set_page(cmd_parms *cmd, void *dir, const char *value)
{
    const crmapi_setting_t *setting = cmd->info;

    if (!apr_cstr_casecmp(value, "on")) {
        return set_text(cmd, dir, setting->path);
    }
    if (!apr_cstr_casecmp(value, "off")) {
        return set_text(cmd, dir, "");
    }
    if (is_page_path(value)) {
        return set_text(cmd, dir, value);
    }
    return apr_psprintf(cmd->pool, "%s must be On, Off or a path that "
                        "begins and ends with a slash, such as %s, not "
                        "\"%s\"", cmd->cmd->name, setting->path, value);
}

/* Return whether TEXT is an Origin: a scheme and a host, with a port or without
 * (RFC 6454, 7), as browsers send it. */
static int is_origin(const char *text)
{
    const char *host = strstr(text, "://");
    size_t scheme = strspn(text, "abcdefghijklmnopqrstuvwxyz"
                           "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");

    if (!strncmp(text, "http://", 7) || !strncmp(text, "https://", 8)) {
        return !crm_origin_rule(text);
    }
    return host && host == text + scheme && scheme && host[3]
           && !strpbrk(host + 3, "/?#@, ");
}

static const char *add_origin(cmd_parms *cmd, void *dir, const char *value)
{
    apr_array_header_t **list = member_of(cmd);

    (void)dir;
    if (!is_origin(value)) {
        return apr_psprintf(cmd->pool, "%s must be a scheme and a host, such"
                            " as https://app.example.com, without a path and"
                            " without the scheme's own port, not \"%s\"",
                            cmd->cmd->name, value);
    }
    if (!*list) {
        *list = apr_array_make(cmd->pool, 4, sizeof(const char *));
    }
    APR_ARRAY_PUSH(*list, const char *) = value;
    return NULL;
}

/* Return NULL if mod_dbd is loaded. httpd then also calls mod_dbd's function
 * for CMD, which checks the value. Otherwise return httpd's error for an
 * unknown directive. */
static const char *check_dbd(const cmd_parms *cmd)
{
    return ap_find_linked_module("mod_dbd.c") ? NULL : apr_pstrcat(
        cmd->pool, "Invalid command '", cmd->directive->directive,
        "', perhaps misspelled or defined by a module not included in the "
        "server configuration", NULL);
}

static const char *set_dbd_number(cmd_parms *cmd, void *dir,
                                  const char *value)
{
    (void)dir;
    *(int *)member_of(cmd) = atoi(value);
    return check_dbd(cmd);
}

static const char *set_dbd_persist(cmd_parms *cmd, void *dir, int on)
{
    set_flag(cmd, dir, on);
    return check_dbd(cmd);
}

/* "" is as good as nothing: mod_dbd then takes the main server's. */
static const char *set_dbd_text(cmd_parms *cmd, void *dir, const char *value)
{
    set_text(cmd, dir, *value ? value : NULL);
    return check_dbd(cmd);
}

/* ---- the table ----------------------------------------------------------- */

static const char *const names[] = {"Off", "On", "Shared", NULL}; /* crm_names_t */
static const char *const unknown[] = {"tell", "refuse", NULL};
static const char *const offered[] = {"all", "read", NULL}; /* crm_mcp_tools_t */

/* The member cmd_data of command_rec is not const. */
#define SETTING(of, member, ...) ((void *)(apr_uintptr_t) \
    &(const crmapi_setting_t){.kind = of, \
                              .offset = offsetof(crmapi_config_t, member), \
                              __VA_ARGS__})

/* In each row: the directive, the member, its default and range, and the help.
 * What is from mod_dbd is set by a function of its own. */
#define NUMBER_BY(function, name, member, low, high, preset, help, ...) \
    AP_INIT_TAKE1(name, function, SETTING(CRMAPI_NUMBER, member, \
        .initial.number = preset, .min = low, .max = high, __VA_ARGS__), \
        RSRC_CONF, help "; default " #preset)
#define NUMBER(...) NUMBER_BY(set_number, __VA_ARGS__, .global = 0)
#define GLOBAL_NUMBER(...) NUMBER_BY(set_number, __VA_ARGS__, .global = 1)
#define DBD_NUMBER(name, member, preset, help) \
    NUMBER_BY(set_dbd_number, name, member, 0, INT_MAX, preset, help, \
              .global = 0)
enum {Off, On};
#define FLAG_BY(function, name, member, preset, help) \
    AP_INIT_FLAG(name, function, SETTING(CRMAPI_NUMBER, member, \
        .initial.number = preset), RSRC_CONF, help "; default " #preset)
#define FLAG(...) FLAG_BY(set_flag, __VA_ARGS__)
#define WORD(name, member, list, preset, help) \
    AP_INIT_TAKE1(name, set_word, SETTING(CRMAPI_NUMBER, member, \
        .initial.number = preset, .words = list), RSRC_CONF, help)
#define SECONDS(name, member, low, high, preset, help) \
    AP_INIT_TAKE1(name, set_duration, SETTING(CRMAPI_TIME, member, \
        .initial.time = APR_TIME_C(preset) * APR_USEC_PER_SEC, .min = low, \
        .max = high), RSRC_CONF, help "; default " #preset "s")
#define TEXT_BY(function, name, member, preset, help) \
    AP_INIT_TAKE1(name, function, SETTING(CRMAPI_POINTER, member, \
        .initial.pointer = preset), RSRC_CONF, help)
#define PAGE(name, member, on, help) \
    AP_INIT_TAKE1(name, set_page, SETTING(CRMAPI_POINTER, member, \
        .initial.pointer = "", .path = on), RSRC_CONF, \
        "On, or a path: " help "; default Off")

const command_rec crmapi_commands[] = {
    FLAG("CrmApi", enabled, Off, "On: serve the API under /api/v1"),
    TEXT_BY(set_workspace, "CrmApiWorkspace", workspace, NULL,
            "id or slug of the only workspace served; default: all"),
    NUMBER("CrmApiReadLimit", read_limit, 0, LIMIT_MAX, 120,
           "GET and HEAD requests per key in 60 seconds; 0: unlimited"),
    NUMBER("CrmApiWriteLimit", write_limit, 0, LIMIT_MAX, 60,
           "other requests per key in 60 seconds; 0: unlimited"),
    NUMBER("CrmApiRateLimitCeiling", limit_ceiling, 1, LIMIT_MAX, 1000000,
           "highest limit that a key or workspace may have of its own"),
    GLOBAL_NUMBER("CrmApiRateLimitKeys", keys, 1, KEYS_MAX, 65536,
                  "maximum number of keys that are counted at the same time"),
    GLOBAL_NUMBER("CrmApiUsageInterval", usage_interval, 1, 3600, 60,
                  "seconds after which counted requests are written"),
    AP_INIT_TAKE_ARGV("CrmApiRateLimitStore", crmapi_set_store, NULL,
                      RSRC_CONF, "URL of a Redis server that counts requests "
                      "for all hosts (redis://, rediss:// or unix:), and "
                      "ca=, prefix=, timeout=; default: each host counts by "
                      "itself"),
    NUMBER("CrmApiMaxBody", max_body, 1, BODY_MAX, CRMAPI_MAX_BODY,
           "maximum size of a request body in bytes"),
    TEXT_BY(set_prefix, "CrmApiKeyPrefix", key_prefix, CRM_KEY_PREFIX,
            "prefix of API keys; default " CRM_KEY_PREFIX),
    SECONDS("CrmApiDatabaseTimeout", database_timeout, 1, 600, 30,
            "time limit of a statement, after which it is cancelled and the "
            "request gets a 503"),
    SECONDS("CrmApiDatabaseWait", database_wait, 0, 600, 2,
            "how long a request waits for a database connection before it "
            "gets a 503"),
    WORD("CrmApiNamedStatements", named_statements, names, CRM_NAMES_OWN,
         "Off or Shared: use no named prepared statements, or the same names "
         "for all connections, for connection poolers; default On"),
    WORD("CrmApiUnknownParameters", refuse_unknown, unknown, 0,
         "refuse: unknown query parameters are 422; tell: they are ignored, "
         "and named in X-Ignored-Parameters; default tell"),
    FLAG("CrmApiRequestIdInDatabase", request_id_in_database, Off,
         "On: set the database session's application_name to the request's "
         "id"),
    FLAG("CrmApiBatches", batches, On, "Off: requests that come at the same "
         "time never share a statement"),
    PAGE("CrmApiReview", review_path, CRM_PAGE_REVIEW_PATH,
         "serve the pages for reviewing sequences"),
    PAGE("CrmApiUnsubscribe", unsubscribe_path, CRM_PAGE_UNSUBSCRIBE_PATH,
         "serve the pages for unsubscribing"),
    AP_INIT_FLAG("CrmApiHtaccessHandlers", crmapi_set_permit, NULL,
                 RSRC_CONF | ACCESS_CONF, "On: crmapi-metrics and crmapi-health"
                 " answer also where .htaccess files take part; default Off"),
    PAGE("CrmApiIntake", intake_path, CRM_INTAKE_PATH,
         "accept events, Twilio's webhooks, forms and chats"),
    PAGE("CrmApiMcp", mcp_path, CRM_MCP_PATH,
         "serve the Model Context Protocol"),
    AP_INIT_ITERATE("CrmApiMcpOrigins", add_origin,
                    SETTING(CRMAPI_POINTER, mcp_origins, .global = 0),
                    RSRC_CONF, "web sites whose browsers may use it, such as "
                    "https://app.example.com; default: none"),
    WORD("CrmApiMcpTools", mcp_tools, offered, CRM_MCP_ALL,
         "read: offer only tools that change nothing; default all"),
    NUMBER("CrmApiIntakeLimit", intake_limit, 0, LIMIT_MAX, 300,
           "requests per intake token in 60 seconds; 0: unlimited"),
    TEXT_BY(crmapi_set_intake_url, "CrmApiIntakeUrl", intake_url, NULL,
            "public scheme and host of this server, such as "
            "https://crm.example.com; default: those of the request"),
    AP_INIT_TAKE23("CrmApiTwilio", crmapi_set_twilio,
                   SETTING(CRMAPI_POINTER, twilio, .global = 0), RSRC_CONF,
                   "SID of an account, file with its auth token, and "
                   "optionally the workspace whose agents it may reach"),
    NUMBER("CrmApiAddressLimit", address_limit, 0, LIMIT_MAX, 20,
           "posts to forms and chats per client address in 60 seconds; 0: "
           "unlimited"),
    GLOBAL_NUMBER("CrmApiAddresses", addresses, 1, KEYS_MAX, 16384, "maximum "
                  "number of addresses that are counted at the same time"),
    NUMBER("CrmApiChatPolls", chat_polls, 0, LIMIT_MAX, 40,
           "maximum number of waiting chat polls per process"),
    NUMBER("CrmApiWaiters", waiters, 0, LIMIT_MAX, 512,
           "maximum number of requests per process that wait for something to "
           "happen"),
    NUMBER("CrmApiUnknownKeyLimit", unknown_key_limit, 0, LIMIT_MAX, 60,
           "look-ups of unknown keys and tokens per client address in 60 "
           "seconds; 0: unlimited"),
    NUMBER("CrmApiKeepAliveWait", keepalive_wait, 0, KEEPALIVE_MAX, 1000,
           "microseconds for which a thread of MPM event waits for the next "
           "request of its connection"),
    TEXT_BY(set_dbd_text, "DBDriver", dbd.driver, NULL,
            "mod_dbd's driver; must be pgsql"),
    TEXT_BY(set_dbd_text, "DBDParams", dbd.params, "",
            "mod_dbd's connection parameters"),
    FLAG_BY(set_dbd_persist, "DBDPersist", dbd.persist, On,
            "Off: mod_dbd has no connection pool"),
    DBD_NUMBER("DBDMin", dbd.min, 1, "mod_dbd's minimum number of connections"),
    DBD_NUMBER("DBDKeep", dbd.keep, 2, "mod_dbd's number of idle connections"),
    DBD_NUMBER("DBDMax", dbd.max, 10, "mod_dbd's maximum number of "
               "connections"),
    DBD_NUMBER("DBDExptime", dbd.exptime, 300, "seconds that mod_dbd keeps "
               "further idle connections"),
    {NULL, {NULL}, NULL, 0, RAW_ARGS, NULL}
};
