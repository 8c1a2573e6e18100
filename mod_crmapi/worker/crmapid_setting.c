/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_setting.c: one table for parsing, defaults, the sample configuration
 * and the manual page */
#include "crmapid_setting.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "apr_strings.h"
#include "apr_uri.h"

#include "crm_array.h"
#include "crm_email_wire.h"
#include "crm_text.h"
#include "crmapid_config.h"
#include "crmapid_listen.h"

/* ---- types --------------------------------------------------------------- */

static const char *parse_text(void *target, const crmd_setting_t *setting,
                              const char *text, apr_pool_t *pool)
{
    (void)setting;
    *(const char **)target = apr_pstrdup(pool, text);
    return NULL;
}

/* A text that goes into the database, a mail or JSON. */
static const char *parse_line(void *target, const crmd_setting_t *setting,
                              const char *text, apr_pool_t *pool)
{
    size_t len = strlen(text);

    if (!crm_text_valid_utf8(text, len) || crm_text_has_control(text, len)) {
        return "must be UTF-8 without control characters";
    }
    return parse_text(target, setting, text, pool);
}

static const char *parse_mailbox(void *target, const crmd_setting_t *setting,
                                 const char *text, apr_pool_t *pool)
{
    if (*text && !crm_email_wire(text)) {
        return "must be an address alone, such as crm@example.org";
    }
    return parse_text(target, setting, text, pool);
}

static const char *parse_domain(void *target, const crmd_setting_t *setting,
                                const char *text, apr_pool_t *pool)
{
    if (!crm_email_wire(apr_pstrcat(pool, "x@", text, NULL))
        || !crm_text_is_ascii(text)) {
        return "must be a host name in ASCII, such as example.org";
    }
    return parse_text(target, setting, text, pool);
}

static const char *parse_word(void *target, const crmd_setting_t *setting,
                              const char *text, apr_pool_t *pool)
{
    size_t len = strlen(text);
    const char *at = setting->choices;

    while (len && at) {
        size_t n = strcspn(at, "|");

        if (n == len && !strncmp(at, text, n)) {
            return parse_text(target, setting, text, pool);
        }
        at = at[n] ? at + n + 1 : NULL;
    }
    return apr_pstrcat(pool, "must be one of ", setting->choices, NULL);
}

static const char *parse_path(void *target, const crmd_setting_t *setting,
                              const char *text, apr_pool_t *pool)
{
    if (*text && *text != '/') {
        return "must begin with /";
    }
    return parse_text(target, setting, text, pool);
}

/* Return NULL if TEXT is a URL of the scheme PLAIN or of the same with TLS, such as
 * "https", whose server can be asked. Otherwise return the rule that it breaks. */
static const char *url_rule(const char *text, const char *plain,
                            apr_pool_t *pool)
{
    size_t len = strlen(plain);
    apr_uri_t parts;
    apr_int64_t port;

    if (strncasecmp(text, plain, len)
        || strncmp(text + len + (strchr("sS", text[len]) && text[len]), "://",
                   3)) {
        return apr_pstrcat(pool, "must be a URL that begins with ", plain,
                           ":// or ", plain, "s://", NULL);
    }
    if (strpbrk(text, " \t\"<>") || apr_uri_parse(pool, text, &parts)
        || !parts.hostname || !*parts.hostname) {
        return "must be a URL with a host";
    }
    port = parts.port_str ? apr_atoi64(parts.port_str) : 1;
    return port > 0 && port < 65536 ? NULL
           : "must be a URL whose port is from 1 to 65535";
}

static const char *parse_web(void *target, const crmd_setting_t *setting,
                             const char *text, apr_pool_t *pool)
{
    const char *rule = *text ? url_rule(text, "http", pool) : NULL;

    return rule ? rule : parse_text(target, setting, text, pool);
}

static const char *parse_smtp(void *target, const crmd_setting_t *setting,
                              const char *text, apr_pool_t *pool)
{
    const char *rule = url_rule(text, "smtp", pool);

    return rule ? rule : parse_text(target, setting, text, pool);
}

/* A URL that paths are put behind: slashes at its end are left out. */
static const char *parse_base(void *target, const crmd_setting_t *setting,
                              const char *text, apr_pool_t *pool)
{
    size_t len = strlen(text);

    while (len && text[len - 1] == '/') {
        len--;
    }
    return strpbrk(text, "?#") ? "must be a URL without a query"
           : parse_web(target, setting, apr_pstrmemdup(pool, text, len), pool);
}

static const char *parse_listen(void *target, const crmd_setting_t *setting,
                                const char *text, apr_pool_t *pool)
{
    const char *port;
    char *host;

    if (*text && *text != '/'
        && !crmd_listener_split(&host, &port, text, pool)) {
        return "must be ADDRESS:PORT, [IPv6 ADDRESS]:PORT or the path of a"
               " socket";
    }
    return parse_text(target, setting, text, pool);
}

static const char *out_of_range(const crmd_setting_t *setting, apr_pool_t *pool)
{
    return apr_psprintf(pool, "must be a number from %" APR_INT64_T_FMT
                        " to %" APR_INT64_T_FMT, setting->min, setting->max);
}

static const char *parse_number(void *target, const crmd_setting_t *setting,
                                const char *text, apr_pool_t *pool)
{
    apr_int64_t number;
    char *end;

    errno = 0;
    number = apr_strtoi64(text, &end, 10);
    if (errno || end == text || *end || !isdigit((unsigned char)*text)
        || number < setting->min || number > setting->max) {
        return out_of_range(setting, pool);
    }
    *(int *)target = (int)number;
    return NULL;
}

static const char *parse_switch(void *target, const crmd_setting_t *setting,
                                const char *text, apr_pool_t *pool)
{
    (void)setting;
    (void)pool;
    if (strcmp(text, "on") && strcmp(text, "off")) {
        return "must be on or off";
    }
    *(int *)target = !strcmp(text, "on");
    return NULL;
}

/* Units of durations, in milliseconds. */
static const struct {
    const char *name;
    apr_int64_t ms;
} units[] = {
    {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}
};

/* Return MS milliseconds in the largest unit that has no fraction, in POOL. */
static const char *duration_text(apr_int64_t ms, apr_pool_t *pool)
{
    size_t i = CRM_NELTS(units) - 1;

    while (ms % units[i].ms || (!ms && i)) {
        i--;
    }
    return apr_psprintf(pool, "%" APR_INT64_T_FMT "%s", ms / units[i].ms,
                        units[i].name);
}

static const char *parse_duration(void *target, const crmd_setting_t *setting,
                                  const char *text, apr_pool_t *pool)
{
    apr_int64_t number;
    char *end;

    errno = 0;
    number = apr_strtoi64(text, &end, 10);
    if (!errno && end != text && isdigit((unsigned char)*text)
        && number < APR_INT64_C(1000000000)) {
        for (size_t i = 0; i < CRM_NELTS(units); i++) {
            apr_int64_t ms = number * units[i].ms;

            if (!strcmp(end, units[i].name) && ms >= setting->min
                && ms <= setting->max) {
                *(apr_interval_time_t *)target = ms * 1000;
                return NULL;
            }
        }
    }
    return apr_pstrcat(pool, "must be a duration such as 250ms, 30s, 5m, 24h"
                       " or 7d, from ", duration_text(setting->min, pool),
                       " to ", duration_text(setting->max, pool), NULL);
}

static const crmd_setting_type_t text = {"text", parse_text};
static const crmd_setting_type_t line = {"text", parse_line};
static const crmd_setting_type_t mailbox = {"mail address", parse_mailbox};
static const crmd_setting_type_t domain = {"host name", parse_domain};
static const crmd_setting_type_t word = {"word", parse_word};
static const crmd_setting_type_t path = {"path", parse_path};
static const crmd_setting_type_t web = {"URL", parse_web};
static const crmd_setting_type_t smtp = {"URL", parse_smtp};
static const crmd_setting_type_t base = {"URL", parse_base};
static const crmd_setting_type_t place = {"address", parse_listen};
static const crmd_setting_type_t number = {"number", parse_number};
static const crmd_setting_type_t onoff = {"on or off", parse_switch};
static const crmd_setting_type_t duration = {"duration", parse_duration};

/* ---- the table ----------------------------------------------------------- */

#define AT(member) offsetof(crmd_config_t, member)
#define HEADING(words) {NULL, NULL, 0, NULL, 0, 0, NULL, words},
#define TEXT(member, type, initial, help) \
    {#member, &type, AT(member), initial, 0, 0, NULL, help},
#define WORD(member, initial, choices, help) \
    {#member, &word, AT(member), initial, 0, 0, choices, help},
#define NUMBER(member, initial, min, max, help) \
    {#member, &number, AT(member), initial, min, max, NULL, help},
#define SWITCH(member, initial, help) \
    {#member, &onoff, AT(member), initial, 0, 0, NULL, help},
#define DURATION(member, initial, min, max, help) \
    {#member, &duration, AT(member), initial, min, max, NULL, help},

#define TENTH APR_INT64_C(100)   /* of a second */
#define SECOND (10 * TENTH)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define YEAR (365 * DAY)

const crmd_setting_t crmd_settings[] = {
#include "crmapid_setting_rows.h"
};

const size_t crmd_settings_count = CRM_NELTS(crmd_settings);

/* The names that settings had, which files of earlier versions have. */
static const struct {
    const char *before, *now;
} renamed[] = {
    {"openai_concurrency", "generate_threads"},
};

const crmd_setting_t *crmd_setting_find(const char *name)
{
    for (size_t i = 0; i < CRM_NELTS(renamed); i++) {
        name = strcmp(renamed[i].before, name) ? name : renamed[i].now;
    }
    for (size_t i = 0; i < crmd_settings_count; i++) {
        const crmd_setting_t *setting = &crmd_settings[i];

        if (setting->name && !strcmp(setting->name, name)) {
            return setting;
        }
    }
    return NULL;
}
