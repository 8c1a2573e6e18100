/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_config.c: reads the settings from the file and the environment */
#include "crmapid_config.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "apr_file_io.h"
#include "apr_strings.h"

#include "crm_array.h"
#include "crm_secret.h"
#include "crmapid_setting.h"

#define AT(member) offsetof(crmd_config_t, member)

/* Secrets, and where each is read from. */
static const struct {
    size_t value, file;         /* offsets in crmd_config_t */
    const char *setting;        /* the setting that names the file */
    const char *variable;
} secrets[] = {
    {AT(openai_key), AT(openai_key_file), "openai_key_file",
     "CRMAPID_OPENAI_KEY"},
    {AT(smtp_password), AT(smtp_password_file), "smtp_password_file",
     "CRMAPID_SMTP_PASSWORD"},
    {AT(provider_token), AT(provider_token_file), "provider_token_file",
     "CRMAPID_PROVIDER_TOKEN"},
    {AT(twilio_token), AT(twilio_token_file), "twilio_token_file",
     "CRMAPID_TWILIO_TOKEN"},
};

/* ---- reading ------------------------------------------------------------- */

/* Return the member of CONFIG at OFFSET. */
static void *member(crmd_config_t *config, size_t offset)
{
    return (char *)config + offset;
}

static const char **text_member(crmd_config_t *config, size_t offset)
{
    return member(config, offset);
}

/* Remove white space from both ends of AT, in place. */
static char *trim(char *at)
{
    char *end = at + strlen(at);

    while (end > at && isspace((unsigned char)end[-1])) {
        *--end = '\0';
    }
    while (isspace((unsigned char)*at)) {
        at++;
    }
    return at;
}

/* Read LINE ("name = value", empty, or a comment) into CONFIG. SEEN marks the
 * settings of earlier lines. Return NULL, or the rule that LINE breaks. */
static const char *read_line(crmd_config_t *config, unsigned char *seen,
                             char *line, apr_pool_t *pool)
{
    const crmd_setting_t *setting;
    const char *rule;
    char *value;

    line = trim(line);
    if (!*line || *line == '#') {
        return NULL;
    }
    value = strchr(line, '=');
    if (!value) {
        return "must be: name = value";
    }
    *value++ = '\0';
    line = trim(line);
    setting = crmd_setting_find(line);
    if (!setting) {
        return apr_psprintf(pool, "there is no setting \"%s\"", line);
    }
    if (seen[setting - crmd_settings]) {
        return apr_psprintf(pool, "%s was set before", line);
    }
    seen[setting - crmd_settings] = 1;
    value = trim(value);
    rule = setting->type->parse(member(config, setting->offset), setting,
                                value, pool);
    if (!rule && !*value && *setting->initial) {
        rule = "must not be empty: its default is that of no line";
    }
    return rule ? apr_psprintf(pool, "%s %s", line, rule) : NULL;
}

/* Return the length of the byte order mark that some editors write before the first
 * line of a file, if LINE, number NUMBER_OF, has one. */
static apr_size_t mark_of(const char *line, int number_of)
{
    return number_of == 1 && !strncmp(line, "\xEF\xBB\xBF", 3) ? 3 : 0;
}

static crm_error_t *read_lines(crmd_config_t *config, apr_file_t *file,
                               apr_pool_t *pool)
{
    unsigned char *seen = apr_pcalloc(pool, crmd_settings_count);
    apr_status_t status;
    char line[4096];

    for (int number_of = 1; ; number_of++) {
        const char *fault;

        status = apr_file_gets(line, sizeof(line), file);
        if (status == APR_EOF) {
            return NULL;
        }
        if (status != APR_SUCCESS) {
            char why[128];

            return crm_error_createf(CRM_E_BAD_REQUEST, pool, "%s: %s",
                                     config->file,
                                     apr_strerror(status, why, sizeof(why)));
        }
        fault = strlen(line) < sizeof(line) - 1
                ? read_line(config, seen, line + mark_of(line, number_of), pool)
                : "is too long";
        if (fault) {
            return crm_error_createf(CRM_E_BAD_REQUEST, pool,
                                     "%s, line %d: %s", config->file,
                                     number_of, fault);
        }
    }
}

static crm_error_t *read_secrets(crmd_config_t *config, apr_pool_t *pool)
{
    for (size_t i = 0; i < CRM_NELTS(secrets); i++) {
        const char *name = *text_member(config, secrets[i].file);
        const char **secret = text_member(config, secrets[i].value);
        const char *given = getenv(secrets[i].variable), *reason;

        *secret = given ? apr_pstrdup(pool, given) : "";
        reason = *name ? crm_secret_read(secret, name, pool) : NULL;
        if (reason) {
            return crm_error_createf(CRM_E_BAD_REQUEST, pool, "%s: %s: %s",
                                     secrets[i].setting, name, reason);
        }
        if (strpbrk(*secret, "\r\n")) {
            return crm_error_createf(CRM_E_BAD_REQUEST, pool, "$%s has more"
                                     " than one line", secrets[i].variable);
        }
    }
    return NULL;
}

/* Refuse a configuration file that contains the database's password, as a
 * keyword or in a URI, and that other users can access. */
static crm_error_t *check_rights(const crmd_config_t *config, apr_pool_t *pool)
{
    const char *host = strstr(config->database, "://");
    const char *at = host ? strchr(host, '@') : NULL;
    const char *colon = host ? strchr(host + 3, ':') : NULL;
    struct stat info;

    if ((strstr(config->database, "password") || (at && colon && colon < at))
        && !stat(config->file, &info) && (info.st_mode & S_IRWXO)) {
        return crm_error_createf(CRM_E_BAD_REQUEST, pool, "%s contains a"
                                 " password and must not be accessible to"
                                 " other users (chmod o= )", config->file);
    }
    return NULL;
}

/* Set defaults that depend on the environment or on other settings. */
static void complete(crmd_config_t *config, apr_pool_t *pool)
{
    const char *database = getenv("CRMAPI_DATABASE");

    if (!*config->database && database) {
        config->database = apr_pstrdup(pool, database);
    }
    if (!*config->maildir) {
        config->maildir = apr_pstrcat(pool, config->run_dir, "/outbox", NULL);
    }
}

crm_error_t *crmd_config_read(crmd_config_t **config_p, const char *file_name,
                              apr_pool_t *result_pool)
{
    crmd_config_t *config = apr_pcalloc(result_pool, sizeof(*config));
    crm_error_t *error = NULL;
    apr_status_t status;
    apr_file_t *file;
    char why[128];

    for (size_t i = 0; i < crmd_settings_count; i++) {
        const crmd_setting_t *setting = &crmd_settings[i];

        if (setting->name) {
            setting->type->parse(member(config, setting->offset), setting,
                                 setting->initial, result_pool);
        }
    }
    config->file = file_name;
    if (file_name) {
        status = apr_file_open(&file, file_name,
                               APR_FOPEN_READ | APR_FOPEN_BUFFERED,
                               APR_FPROT_OS_DEFAULT, result_pool);
        if (status != APR_SUCCESS) {
            return crm_error_createf(CRM_E_BAD_REQUEST, result_pool, "%s: %s",
                                     file_name, apr_strerror(status, why,
                                                             sizeof(why)));
        }
        error = read_lines(config, file, result_pool);
        apr_file_close(file);
        if (!error) {
            error = check_rights(config, result_pool);
        }
    }
    CRM_ERR(error);
    complete(config, result_pool);
    CRM_ERR(read_secrets(config, result_pool));
    *config_p = config;
    return NULL;
}
