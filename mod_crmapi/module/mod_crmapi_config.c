/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_config.c: the directives */
#include "mod_crmapi_config.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>

#include "apr_cstr.h"
#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_array.h"
#include "crm_db_conn.h"
#include "crm_key.h"
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

/* Directives with an integer: member of the configuration, range, default. */
typedef struct number_t {
    const char *name;
    size_t offset;
    int min, max, initial;
    int global;
} number_t;

#define OFFSET(member) offsetof(crmapi_config_t, member)

static const number_t numbers[] = {
    {"CrmApiReadLimit", OFFSET(read_limit), 0, LIMIT_MAX, 120, 0},
    {"CrmApiWriteLimit", OFFSET(write_limit), 0, LIMIT_MAX, 60, 0},
    {"CrmApiRateLimitKeys", OFFSET(keys), 1, KEYS_MAX, 65536, 1},
    {"CrmApiMaxBody", OFFSET(max_body), 1, BODY_MAX, 2 * 1024 * 1024, 0},
    {"CrmApiIntakeLimit", OFFSET(intake_limit), 0, LIMIT_MAX, 300, 0},
    {"CrmApiAddressLimit", OFFSET(address_limit), 0, LIMIT_MAX, 20, 0},
    {"CrmApiAddresses", OFFSET(addresses), 1, KEYS_MAX, 16384, 1},
    {"CrmApiChatPolls", OFFSET(chat_polls), 0, LIMIT_MAX, 16, 0},
    {"CrmApiUnknownKeyLimit", OFFSET(unknown_key_limit), 0, LIMIT_MAX, 60, 0},
    {"CrmApiKeepAliveWait", OFFSET(keepalive_wait), 0, KEEPALIVE_MAX,
     1000, 0},
    {"DBDMin", OFFSET(dbd.min), 0, INT_MAX, 1, 0},
    {"DBDKeep", OFFSET(dbd.keep), 0, INT_MAX, 2, 0},
    {"DBDMax", OFFSET(dbd.max), 0, INT_MAX, 10, 0},
    {"DBDExptime", OFFSET(dbd.exptime), 0, INT_MAX, 300, 0},
    {"CrmApiRateLimitCeiling", OFFSET(limit_ceiling), 1, LIMIT_MAX, LIMIT_MAX,
     0},
};

/* Directives with On or Off: member of the configuration, default. */
static const struct {
    size_t offset;
    int initial;
} flags[] = {
    {OFFSET(enabled), 0},
    {OFFSET(named_statements), CRM_NAMES_OWN},
    {OFFSET(request_id_in_database), 0},
    {OFFSET(dbd.persist), 1},
    {OFFSET(batches), 1},
    {OFFSET(refuse_unknown), 0},
};

/* Directives with a time: member of the configuration, range and default in
 * seconds. */
static const struct duration_t {
    const char *name;
    size_t offset;
    int min, max, initial;
} durations[] = {
    {"CrmApiDatabaseWait", OFFSET(database_wait), 0, 600, 2},
    {"CrmApiDatabaseTimeout", OFFSET(database_timeout), 1, 600, 30},
};

/* Return CONFIG's number at OFFSET. */
static int *number_at(crmapi_config_t *config, size_t offset)
{
    return (int *)(void *)((char *)config + offset);
}

/* Return CONFIG's duration at OFFSET. */
static apr_interval_time_t *duration_at(crmapi_config_t *config,
                                        size_t offset)
{
    return (apr_interval_time_t *)(void *)((char *)config + offset);
}

void *crmapi_config_create(apr_pool_t *p, server_rec *s)
{
    crmapi_config_t *config = apr_pcalloc(p, sizeof(*config));

    (void)s;
    for (size_t i = 0; i < CRM_NELTS(numbers); i++) {
        *number_at(config, numbers[i].offset) = -1;
    }
    for (size_t i = 0; i < CRM_NELTS(flags); i++) {
        *number_at(config, flags[i].offset) = -1;
    }
    for (size_t i = 0; i < CRM_NELTS(durations); i++) {
        *duration_at(config, durations[i].offset) = -1;
    }
    return config;
}

/* Copy the number at OFFSET from OVER to MERGED if it is set there. */
static void merge_number(crmapi_config_t *merged, crmapi_config_t *over,
                         size_t offset)
{
    if (*number_at(over, offset) != -1) {
        *number_at(merged, offset) = *number_at(over, offset);
    }
}

void *crmapi_config_merge(apr_pool_t *p, void *base, void *over)
{
    crmapi_config_t *merged = apr_pmemdup(p, base, sizeof(*merged));
    crmapi_config_t *more = over;

    for (size_t i = 0; i < CRM_NELTS(numbers); i++) {
        merge_number(merged, more, numbers[i].offset);
    }
    for (size_t i = 0; i < CRM_NELTS(flags); i++) {
        merge_number(merged, more, flags[i].offset);
    }
    for (size_t i = 0; i < CRM_NELTS(durations); i++) {
        if (*duration_at(more, durations[i].offset) != -1) {
            *duration_at(merged, durations[i].offset)
                = *duration_at(more, durations[i].offset);
        }
    }
    if (more->key_prefix) {
        merged->key_prefix = more->key_prefix;
    }
    if (more->workspace) {
        merged->workspace = more->workspace;
    }
    if (more->review_path) {
        merged->review_path = more->review_path;
    }
    if (more->unsubscribe_path) {
        merged->unsubscribe_path = more->unsubscribe_path;
    }
    if (more->intake_path) {
        merged->intake_path = more->intake_path;
    }
    if (more->intake_url) {
        merged->intake_url = more->intake_url;
    }
    if (more->twilio) {
        merged->twilio = more->twilio;
    }
    if (more->dbd.driver) {
        merged->dbd.driver = more->dbd.driver;
    }
    if (more->dbd.params && *more->dbd.params) {
        merged->dbd.params = more->dbd.params;
    }
    return merged;
}

void crmapi_config_complete(crmapi_config_t *config)
{
    for (size_t i = 0; i < CRM_NELTS(numbers); i++) {
        if (*number_at(config, numbers[i].offset) == -1) {
            *number_at(config, numbers[i].offset) = numbers[i].initial;
        }
    }
    for (size_t i = 0; i < CRM_NELTS(flags); i++) {
        if (*number_at(config, flags[i].offset) == -1) {
            *number_at(config, flags[i].offset) = flags[i].initial;
        }
    }
    for (size_t i = 0; i < CRM_NELTS(durations); i++) {
        if (*duration_at(config, durations[i].offset) == -1) {
            *duration_at(config, durations[i].offset)
                = apr_time_from_sec(durations[i].initial);
        }
    }
    if (!config->key_prefix) {
        config->key_prefix = CRM_KEY_PREFIX;
    }
    if (!config->review_path) {
        config->review_path = "";
    }
    if (!config->unsubscribe_path) {
        config->unsubscribe_path = "";
    }
    if (!config->intake_path) {
        config->intake_path = "";
    }
    if (!config->dbd.params) {
        config->dbd.params = "";
    }
}

static const char *set_number(cmd_parms *cmd, void *dir, const char *value)
{
    const number_t *number = cmd->info;
    const char *problem = number->global
                          ? ap_check_cmd_context(cmd, GLOBAL_ONLY) : NULL;
    char *end;
    apr_int64_t n = apr_strtoi64(value, &end, 10);

    (void)dir;
    if (problem) {
        return problem;
    }
    if (!apr_isdigit(*value) || *end || n < number->min || n > number->max) {
        return apr_psprintf(cmd->pool, "%s must be an integer from %d to "
                            "%d, not \"%s\"", number->name, number->min,
                            number->max, value);
    }
    *number_at(crmapi_config(cmd->server), number->offset) = (int)n;
    return NULL;
}

static const char *set_flag(cmd_parms *cmd, void *dir, int on)
{
    const size_t *offset = cmd->info;

    (void)dir;
    *number_at(crmapi_config(cmd->server), *offset) = on;
    return NULL;
}

static const char *set_names(cmd_parms *cmd, void *dir, const char *value)
{
    static const char *const values[] = {"Off", "On", "Shared"};

    (void)dir;
    for (size_t i = 0; i < CRM_NELTS(values); i++) {
        if (!ap_cstr_casecmp(value, values[i])) {
            crmapi_config(cmd->server)->named_statements = (int)i;
            return NULL;
        }
    }
    return apr_psprintf(cmd->pool, "%s must be On, Off or Shared, not \"%s\"",
                        cmd->cmd->name, value);
}

static const char *set_unknown(cmd_parms *cmd, void *dir, const char *value)
{
    int refuse = !ap_cstr_casecmp(value, "refuse");

    (void)dir;
    crmapi_config(cmd->server)->refuse_unknown = refuse;
    return refuse || !ap_cstr_casecmp(value, "tell") ? NULL
           : apr_psprintf(cmd->pool, "%s must be tell or refuse, not \"%s\"",
                          cmd->cmd->name, value);
}

static const char *set_duration(cmd_parms *cmd, void *dir, const char *value)
{
    const struct duration_t *duration = cmd->info;
    apr_interval_time_t time;

    (void)dir;
    if (!apr_isdigit(*value)
        || ap_timeout_parameter_parse(value, &time, "s")
        || time < apr_time_from_sec(duration->min)
        || time > apr_time_from_sec(duration->max)) {
        return apr_psprintf(cmd->pool, "%s must be a time from %d to %d s, "
                            "such as 2, 2s or 2500ms, not \"%s\"",
                            duration->name, duration->min, duration->max,
                            value);
    }
    *duration_at(crmapi_config(cmd->server), duration->offset) = time;
    return NULL;
}

static const char *set_prefix(cmd_parms *cmd, void *dir, const char *value)
{
    size_t len = strspn(value, "abcdefghijklmnopqrstuvwxyz"
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

    (void)dir;
    if (!len || value[len] || len > CRM_KEY_PREFIX_MAX) {
        return apr_psprintf(cmd->pool, "CrmApiKeyPrefix must have 1 to %d "
                            "characters of A-Z, a-z, 0-9 and _, not \"%s\"",
                            CRM_KEY_PREFIX_MAX, value);
    }
    crmapi_config(cmd->server)->key_prefix = value;
    return NULL;
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
    (void)dir;
    crmapi_config(cmd->server)->workspace = value;
    return crmapi_check_workspace(cmd, "CrmApiWorkspace", value);
}

/* Mounts besides the API: directive, member of the configuration, default
 * path. */
static const struct page_t {
    const char *name;
    size_t offset;
    const char *default_path;
} pages[] = {
    {"CrmApiReview", OFFSET(review_path), CRM_PAGE_REVIEW_PATH},
    {"CrmApiUnsubscribe", OFFSET(unsubscribe_path),
     CRM_PAGE_UNSUBSCRIBE_PATH},
    {"CrmApiIntake", OFFSET(intake_path), CRM_INTAKE_PATH},
};

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
    const struct page_t *page = cmd->info;
    const char **path = (const char **)(void *)((char *)crmapi_config(
        cmd->server) + page->offset);

    (void)dir;
    if (!apr_cstr_casecmp(value, "on")) {
        *path = page->default_path;
    }
    else if (!apr_cstr_casecmp(value, "off")) {
        *path = "";
    }
    else if (is_page_path(value)) {
        *path = value;
    }
    else {
        return apr_psprintf(cmd->pool, "%s must be On, Off or a path that "
                            "begins and ends with a slash, such as %s, not "
                            "\"%s\"", page->name, page->default_path, value);
    }
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
    const number_t *number = cmd->info;

    (void)dir;
    *number_at(crmapi_config(cmd->server), number->offset) = atoi(value);
    return check_dbd(cmd);
}

static const char *set_dbd_persist(cmd_parms *cmd, void *dir, int on)
{
    (void)dir;
    crmapi_config(cmd->server)->dbd.persist = on;
    return check_dbd(cmd);
}

static const char *set_dbd_driver(cmd_parms *cmd, void *dir,
                                  const char *value)
{
    (void)dir;
    crmapi_config(cmd->server)->dbd.driver = value;
    return check_dbd(cmd);
}

static const char *set_dbd_params(cmd_parms *cmd, void *dir,
                                  const char *value)
{
    (void)dir;
    crmapi_config(cmd->server)->dbd.params = value;
    return check_dbd(cmd);
}

/* The member cmd_data of command_rec is not const. */
#define INFO(pointer) ((void *)(apr_uintptr_t)(pointer))

const command_rec crmapi_commands[] = {
    AP_INIT_FLAG("CrmApi", set_flag, INFO(&flags[0].offset), RSRC_CONF,
                 "On: serve the API under /api/v1; default Off"),
    AP_INIT_TAKE1("CrmApiWorkspace", set_workspace, NULL, RSRC_CONF,
                  "id or slug of the only workspace served; default: all"),
    AP_INIT_TAKE1("CrmApiReadLimit", set_number, INFO(&numbers[0]), RSRC_CONF,
                  "GET and HEAD requests per key in 60 seconds; 0: unlimited; "
                  "default 120"),
    AP_INIT_TAKE1("CrmApiWriteLimit", set_number, INFO(&numbers[1]),
                  RSRC_CONF, "other requests per key in 60 seconds; 0: "
                  "unlimited; default 60"),
    AP_INIT_TAKE1("CrmApiRateLimitCeiling", set_number, INFO(&numbers[14]),
                  RSRC_CONF, "highest limit that a key or workspace may have "
                  "of its own; default 1000000"),
    AP_INIT_TAKE1("CrmApiRateLimitKeys", set_number, INFO(&numbers[2]),
                  RSRC_CONF, "maximum number of keys that are counted at the "
                  "same time; default 65536"),
    AP_INIT_TAKE_ARGV("CrmApiRateLimitStore", crmapi_set_store, NULL,
                      RSRC_CONF, "URL of a Redis server that counts requests "
                      "for all hosts (redis://, rediss:// or unix:), and "
                      "ca=, prefix=, timeout=; default: each host counts by "
                      "itself"),
    AP_INIT_TAKE1("CrmApiMaxBody", set_number, INFO(&numbers[3]), RSRC_CONF,
                  "maximum size of a request body in bytes; default 2097152"),
    AP_INIT_TAKE1("CrmApiKeyPrefix", set_prefix, NULL, RSRC_CONF,
                  "prefix of API keys; default svc_live_"),
    AP_INIT_TAKE1("CrmApiDatabaseTimeout", set_duration, INFO(&durations[1]),
                  RSRC_CONF, "time limit of a statement, after which it is "
                  "cancelled and the request gets a 503; default 30s"),
    AP_INIT_TAKE1("CrmApiDatabaseWait", set_duration, INFO(&durations[0]),
                  RSRC_CONF, "how long a request waits for a database "
                  "connection before it gets a 503; default 2s"),
    AP_INIT_TAKE1("CrmApiNamedStatements", set_names, NULL, RSRC_CONF,
                  "Off or Shared: use no named prepared statements, or the "
                  "same names for all connections, for connection poolers; "
                  "default On"),
    AP_INIT_TAKE1("CrmApiUnknownParameters", set_unknown, NULL, RSRC_CONF,
                  "refuse: unknown query parameters are 422; tell (default): "
                  "they are ignored, and named in X-Ignored-Parameters"),
    AP_INIT_FLAG("CrmApiRequestIdInDatabase", set_flag,
                 INFO(&flags[2].offset), RSRC_CONF,
                 "On: set the database session's application_name to the "
                 "request's id; default Off"),
    AP_INIT_FLAG("CrmApiBatches", set_flag, INFO(&flags[4].offset), RSRC_CONF,
                 "Off: requests that come at the same time never share a "
                 "statement; default On"),
    AP_INIT_TAKE1("CrmApiReview", set_page, INFO(&pages[0]), RSRC_CONF,
                  "On, or a path: serve the pages for reviewing sequences; "
                  "default Off"),
    AP_INIT_TAKE1("CrmApiUnsubscribe", set_page, INFO(&pages[1]), RSRC_CONF,
                  "On, or a path: serve the pages for unsubscribing; default "
                  "Off"),
    AP_INIT_FLAG("CrmApiHtaccessHandlers", crmapi_set_permit, NULL,
                 RSRC_CONF | ACCESS_CONF, "On: crmapi-metrics and crmapi-health"
                 " answer also where .htaccess files take part; default Off"),
    AP_INIT_TAKE1("CrmApiIntake", set_page, INFO(&pages[2]), RSRC_CONF,
                  "On, or a path: accept events, Twilio's webhooks, forms and "
                  "chats; default Off"),
    AP_INIT_TAKE1("CrmApiIntakeLimit", set_number, INFO(&numbers[4]),
                  RSRC_CONF, "requests per intake token in 60 seconds; 0: "
                  "unlimited; default 300"),
    AP_INIT_TAKE1("CrmApiIntakeUrl", crmapi_set_intake_url, NULL, RSRC_CONF,
                  "public scheme and host of this server, such as "
                  "https://crm.example.com; default: those of the request"),
    AP_INIT_TAKE23("CrmApiTwilio", crmapi_set_twilio, NULL, RSRC_CONF,
                   "SID of an account, file with its auth token, and "
                   "optionally the workspace whose agents it may reach"),
    AP_INIT_TAKE1("CrmApiAddressLimit", set_number, INFO(&numbers[5]),
                  RSRC_CONF, "posts to forms and chats per client address in "
                  "60 seconds; 0: unlimited; default 20"),
    AP_INIT_TAKE1("CrmApiAddresses", set_number, INFO(&numbers[6]),
                  RSRC_CONF, "maximum number of addresses that are counted at "
                  "the same time; default 16384"),
    AP_INIT_TAKE1("CrmApiChatPolls", set_number, INFO(&numbers[7]),
                  RSRC_CONF, "maximum number of waiting chat polls per "
                  "process; default 16"),
    AP_INIT_TAKE1("CrmApiUnknownKeyLimit", set_number, INFO(&numbers[8]),
                  RSRC_CONF, "look-ups of unknown keys and tokens per client "
                  "address in 60 seconds; 0: unlimited; default 60"),
    AP_INIT_TAKE1("CrmApiKeepAliveWait", set_number, INFO(&numbers[9]),
                  RSRC_CONF, "microseconds for which a thread of MPM event "
                  "waits for the next request of its connection; default "
                  "1000"),
    AP_INIT_TAKE1("DBDriver", set_dbd_driver, NULL, RSRC_CONF,
                  "mod_dbd's driver; must be pgsql"),
    AP_INIT_TAKE1("DBDParams", set_dbd_params, NULL, RSRC_CONF,
                  "mod_dbd's connection parameters"),
    AP_INIT_FLAG("DBDPersist", set_dbd_persist, NULL, RSRC_CONF,
                 "Off: mod_dbd has no connection pool; default On"),
    AP_INIT_TAKE1("DBDMin", set_dbd_number, INFO(&numbers[10]), RSRC_CONF,
                  "mod_dbd's minimum number of connections; default 1"),
    AP_INIT_TAKE1("DBDKeep", set_dbd_number, INFO(&numbers[11]), RSRC_CONF,
                  "mod_dbd's number of idle connections; default 2"),
    AP_INIT_TAKE1("DBDMax", set_dbd_number, INFO(&numbers[12]), RSRC_CONF,
                  "mod_dbd's maximum number of connections; default 10"),
    AP_INIT_TAKE1("DBDExptime", set_dbd_number, INFO(&numbers[13]),
                  RSRC_CONF, "seconds that mod_dbd keeps further idle "
                  "connections; default 300"),
    {NULL, {NULL}, NULL, 0, RAW_ARGS, NULL}
};
