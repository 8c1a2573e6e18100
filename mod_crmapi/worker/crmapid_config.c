/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_config.c: the settings: one table for parsing, defaults, the sample
 * configuration and the manual page */
#include "crmapid_config.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "apr_file_io.h"
#include "apr_strings.h"

#include "crm_array.h"

typedef struct setting_t setting_t;

/* The type of a setting. WHAT is its name in the manual. */
typedef struct setting_type_t {
    const char *what;
    /* Parse TEXT and store the value at TARGET, copied to POOL. Return NULL, or
     * the rule that TEXT breaks. */
    const char *(*parse)(void *target, const setting_t *setting,
                         const char *text, apr_pool_t *pool);
} setting_type_t;

struct setting_t {
    const char *name;           /* NULL: HELP is a heading */
    const setting_type_t *type;
    size_t offset;              /* in crmd_config_t */
    const char *initial;        /* default, as it is written in a file */
    apr_int64_t min, max;       /* of a number, or of a duration in
                                   milliseconds */
    const char *choices;        /* of a word: "a|b|c" */
    const char *help;
};

/* ---- types --------------------------------------------------------------- */

static const char *parse_text(void *target, const setting_t *setting,
                              const char *text, apr_pool_t *pool)
{
    (void)setting;
    *(const char **)target = apr_pstrdup(pool, text);
    return NULL;
}

static const char *parse_word(void *target, const setting_t *setting,
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

static const char *parse_path(void *target, const setting_t *setting,
                              const char *text, apr_pool_t *pool)
{
    if (*text && *text != '/') {
        return "must begin with /";
    }
    return parse_text(target, setting, text, pool);
}

static const char *parse_url(void *target, const setting_t *setting,
                             const char *text, apr_pool_t *pool)
{
    const char *host = strstr(text, "://");

    if (*text && (!host || !host[3] || strpbrk(text, " \t\"<>"))) {
        return "must be a URL";
    }
    return parse_text(target, setting, text, pool);
}

static const char *out_of_range(const setting_t *setting, apr_pool_t *pool)
{
    return apr_psprintf(pool, "must be a number from %" APR_INT64_T_FMT
                        " to %" APR_INT64_T_FMT, setting->min, setting->max);
}

static const char *parse_number(void *target, const setting_t *setting,
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

static const char *parse_switch(void *target, const setting_t *setting,
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

static const char *parse_duration(void *target, const setting_t *setting,
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

static const setting_type_t text = {"text", parse_text};
static const setting_type_t word = {"word", parse_word};
static const setting_type_t path = {"path", parse_path};
static const setting_type_t url = {"URL", parse_url};
static const setting_type_t number = {"number", parse_number};
static const setting_type_t onoff = {"on or off", parse_switch};
static const setting_type_t duration = {"duration", parse_duration};

/* ---- the table ----------------------------------------------------------- */

#define AT(member) offsetof(crmd_config_t, member)
#define HEADING(words) {NULL, NULL, 0, NULL, 0, 0, NULL, words}
#define TEXT(member, type, initial, help) \
    {#member, &type, AT(member), initial, 0, 0, NULL, help}
#define WORD(member, initial, choices, help) \
    {#member, &word, AT(member), initial, 0, 0, choices, help}
#define NUMBER(member, initial, min, max, help) \
    {#member, &number, AT(member), initial, min, max, NULL, help}
#define SWITCH(member, initial, help) \
    {#member, &onoff, AT(member), initial, 0, 0, NULL, help}
/* MIN and MAX in milliseconds */
#define DURATION(member, initial, min, max, help) \
    {#member, &duration, AT(member), initial, min, max, NULL, help}

#define TENTH APR_INT64_C(100)   /* of a second */
#define SECOND (10 * TENTH)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define YEAR (365 * DAY)

static const setting_t settings[] = {
    HEADING("Database and daemon"),
    TEXT(database, text, "", "Connection string for libpq. If it contains a"
         " password, other users must not be able to read this file. Not set:"
         " $CRMAPI_DATABASE."),
    TEXT(name, text, "crmapid", "Name of this daemon in crmapictl"
         " worker list."),
    NUMBER(threads, "4", 1, 64, "Threads for sequences and for mails that ask"
           " for a review. Each has its own database connection."),
    NUMBER(webhook_threads, "4", 0, 64, "Threads for webhooks. 0: this daemon"
           " delivers no webhooks."),
    DURATION(poll, "2s", TENTH, 2 * SECOND,
             "Polling interval when no NOTIFY arrives."),
    DURATION(lease, "15s", SECOND, 5 * MINUTE, "Lifetime of the lease on a"
             " job. The daemon extends it every third of this time; when it"
             " expires, another daemon takes the job."),
    DURATION(answer_time, "20s", SECOND, 10 * MINUTE, "Timeout of a database"
             " statement. After it the connection is reopened."),
    WORD(log_level, "notice", "error|warning|notice|info|debug",
         "Least important level that is logged."),
    TEXT(log_file, path, "", "Log file. Not set: standard error."),
    TEXT(pid_file, path, "", "File for the process id. Not set: none."),
    TEXT(run_dir, path, "/var/lib/crmapi", "Folder for the daemon's files."),

    HEADING("Links in mails"),
    TEXT(public_url, url, "", "Public URL of the site, such as"
         " https://crm.example.org. Not set: mails contain no links, and"
         " recipients cannot unsubscribe."),
    TEXT(review_path, path, "/crmapi/review/",
         "Path of CrmApiReview in httpd.conf."),
    TEXT(unsubscribe_path, path, "/crmapi/unsubscribe/",
         "Path of CrmApiUnsubscribe in httpd.conf."),
    DURATION(review_ttl, "7d", MINUTE, YEAR, "Lifetime of a link to a"
             " review."),

    HEADING("Generation"),
    WORD(generator, "template", "template|openai", "Source of a sequence's"
         " steps: the template, or a language model."),
    NUMBER(generate_attempts, "5", 1, 50, "Maximum attempts to generate the"
           " steps of an enrollment. Then the enrollment fails."),
    NUMBER(max_steps, "20", 1, 100, "Maximum steps of a sequence."),
    TEXT(openai_url, url, "", "Base URL of an OpenAI-compatible service,"
         " including the version: https://api.example.org/v1."),
    TEXT(openai_model, text, "", "Name of the model."),
    TEXT(openai_key_file, path, "", "File with the API key. Not set:"
         " $CRMAPID_OPENAI_KEY."),
    DURATION(openai_timeout, "90s", TENTH, 10 * MINUTE,
             "Timeout of a request."),
    NUMBER(openai_max_tokens, "4000", 1, 1000000, "Maximum length of an"
           " answer, in tokens."),
    NUMBER(openai_concurrency, "2", 1, 64, "Maximum concurrent requests."),

    HEADING("Sending"),
    WORD(email_relay, "maildir", "maildir|smtp|http", "Relay for mails."),
    WORD(sms_relay, "maildir", "maildir|http|twilio",
         "Relay for text messages."),
    WORD(voice_relay, "maildir", "maildir|http|twilio",
         "Relay for calls."),
    NUMBER(send_attempts, "8", 1, 50, "Maximum attempts to send a step. Then"
           " its enrollment fails."),
    NUMBER(agent_daily_limit, "0", 0, 1000000, "Maximum steps that an agent"
           " sends per day, in the workspace's time zone. 0: no limit."),
    NUMBER(relay_concurrency, "4", 1, 64, "Maximum messages that are sent"
           " concurrently by one relay."),
    TEXT(maildir, path, "", "Folder in which the relay maildir puts messages."
         " Not set: outbox in run_dir."),
    TEXT(mail_from, text, "", "Sender address of agents that have none, and of"
         " the daemon's own mails."),
    TEXT(mail_from_name, text, "", "Display name for mail_from."),
    TEXT(mail_domain, text, "localhost", "Domain of Message-IDs."),
    TEXT(smtp_url, url, "smtp://127.0.0.1:25", "Mail server: smtp:// or"
         " smtps://."),
    WORD(smtp_tls, "starttls", "no|opportunistic|starttls",
         "Encryption of smtp://: none, if the server offers it, or"
         " required."),
    TEXT(smtp_ca_file, path, "", "CA certificates that the server's"
         " certificate is verified with. Not set: the system's."),
    TEXT(smtp_user, text, "", "User name for the server. Not set: no"
         " login."),
    TEXT(smtp_password_file, path, "", "File with the password. Not set:"
         " $CRMAPID_SMTP_PASSWORD."),
    DURATION(smtp_timeout, "60s", TENTH, 10 * MINUTE, "Timeout for sending a"
             " mail."),
    SWITCH(smtp_deduplicates, "off", "Whether the server drops a mail whose"
           " Message-ID it has received before. Then a mail that may or may"
           " not have been sent is sent again; otherwise its enrollment"
           " fails."),
    TEXT(provider_url, url, "", "URL to which the relay http posts"
         " messages."),
    TEXT(provider_token_file, path, "", "File with its Bearer token. Not set:"
         " $CRMAPID_PROVIDER_TOKEN."),
    TEXT(provider_ca_file, path, "", "CA certificates for the relays http and"
         " twilio. Not set: the system's."),
    DURATION(provider_timeout, "20s", TENTH, 10 * MINUTE, "Timeout of a"
             " request of the relays http and twilio."),
    TEXT(sms_from, text, "", "Sender number of agents that have none, for text"
         " messages."),
    TEXT(voice_from, text, "", "Caller number of agents that have none."),
    TEXT(twilio_url, url, "https://api.twilio.com", "URL of Twilio's API."),
    TEXT(twilio_account, text, "", "SID of the Twilio account."),
    TEXT(twilio_token_file, path, "", "File with its auth token. Not set:"
         " $CRMAPID_TWILIO_TOKEN."),

    HEADING("Inbound mails"),
    TEXT(lmtp_socket, path, "", "Unix socket on which crmapid receives mails"
         " to agents by LMTP. Not set: none."),
    WORD(lmtp_mode, "0660", "0600|0660|0666", "File mode of the socket."),
    NUMBER(lmtp_threads, "4", 1, 64, "Maximum concurrent sessions; others"
           " wait. Each has its own database connection."),
    DURATION(lmtp_timeout, "60s", SECOND, 10 * MINUTE, "Idle timeout of a"
             " session."),
    NUMBER(mail_max_message, "26214400", 1024, 104857600, "Largest mail that"
           " is accepted, in bytes."),
    NUMBER(mail_attachment_bytes, "262144", 0, 10485760, "Largest attachment"
           " that is stored, in bytes. Larger ones are only listed."),
    NUMBER(mail_hourly, "30", 0, 1000000, "Maximum mails per hour from one"
           " sender to one agent that count as replies. Further mails are"
           " stored, but do not count as replies. 0: no limit."),
    TEXT(mail_authserv_id, text, "", "Trusted authserv-ids of"
         " Authentication-Results headers, separated by spaces. The hosts with"
         " these ids must remove such headers from mails that they receive."
         " Not set: none."),

    HEADING("Webhooks"),
    DURATION(webhook_timeout, "15s", TENTH, MINUTE,
             "Timeout of a delivery."),
    NUMBER(webhook_concurrency, "2", 1, 64, "Maximum concurrent deliveries to"
           " one endpoint."),
    SWITCH(webhook_private, "off", "Whether endpoints may have addresses that"
           " are not public: for an intranet or for tests."),
    TEXT(webhook_ca_file, path, "", "CA certificates that endpoints'"
         " certificates are verified with. Not set: the system's."),

    HEADING("Upkeep"),
    DURATION(upkeep, "5m", SECOND, DAY, "Interval of upkeep."),
    DURATION(conversation_idle, "24h", MINUTE, YEAR, "Time without a message"
             " after which a conversation is no longer active."),
    DURATION(keep_jobs, "7d", 0, 10 * YEAR,
             "How long finished jobs are kept."),
    DURATION(keep_deliveries, "30d", 0, 10 * YEAR,
             "How long webhook deliveries are kept."),
    DURATION(keep_events, "30d", HOUR, 10 * YEAR,
             "How long ids of intake events are kept. An event that is sent"
             " again after this time is stored again."),
    DURATION(verify_totals, "24h", MINUTE, YEAR, "Interval at which totals are"
             " compared with the rows."),
};

#define SETTINGS CRM_NELTS(settings)

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

static const setting_t *find(const char *name)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        if (settings[i].name && !strcmp(settings[i].name, name)) {
            return &settings[i];
        }
    }
    return NULL;
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
    const setting_t *setting;
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
    setting = find(line);
    if (!setting) {
        return apr_psprintf(pool, "there is no setting \"%s\"", line);
    }
    if (seen[setting - settings]) {
        return apr_psprintf(pool, "%s was set before", line);
    }
    seen[setting - settings] = 1;
    rule = setting->type->parse(member(config, setting->offset), setting,
                                trim(value), pool);
    return rule ? apr_psprintf(pool, "%s %s", line, rule) : NULL;
}

static crm_error_t *read_lines(crmd_config_t *config, apr_file_t *file,
                               apr_pool_t *pool)
{
    unsigned char seen[SETTINGS] = {0};
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
                ? read_line(config, seen, line, pool) : "is too long";
        if (fault) {
            return crm_error_createf(CRM_E_BAD_REQUEST, pool,
                                     "%s, line %d: %s", config->file,
                                     number_of, fault);
        }
    }
}

/* Set *SECRET_P to the first line of the file NAME, the value of SETTING. */
static crm_error_t *read_secret(const char **secret_p, const char *name,
                                const char *setting, apr_pool_t *pool)
{
    char line[4096] = "";
    struct stat info;
    FILE *file = fopen(name, "r");
    int sound = file && !fstat(fileno(file), &info);
    int open = sound && (info.st_mode & S_IRWXO);

    if (sound && !open && !fgets(line, sizeof(line), file)) {
        sound = !ferror(file);
    }
    if (file) {
        fclose(file);
    }
    if (!sound) {
        return crm_error_createf(CRM_E_BAD_REQUEST, pool, "%s: %s: %s",
                                 setting, name, strerror(errno));
    }
    if (open) {
        return crm_error_createf(CRM_E_BAD_REQUEST, pool, "%s: %s must not be"
                                 " accessible to other users (chmod o= )",
                                 setting, name);
    }
    *secret_p = apr_pstrdup(pool, trim(line));
    memset(line, 0, sizeof(line));
    return NULL;
}

static crm_error_t *read_secrets(crmd_config_t *config, apr_pool_t *pool)
{
    for (size_t i = 0; i < CRM_NELTS(secrets); i++) {
        const char *name = *text_member(config, secrets[i].file);
        const char **secret = text_member(config, secrets[i].value);
        const char *given = getenv(secrets[i].variable);

        *secret = given ? apr_pstrdup(pool, given) : "";
        if (*name) {
            CRM_ERR(read_secret(secret, name, secrets[i].setting, pool));
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
    size_t len = strlen(config->public_url);

    if (!*config->database && database) {
        config->database = apr_pstrdup(pool, database);
    }
    if (!*config->maildir) {
        config->maildir = apr_pstrcat(pool, config->run_dir, "/outbox", NULL);
    }
    if (len && config->public_url[len - 1] == '/') {
        config->public_url = apr_pstrmemdup(pool, config->public_url, len - 1);
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

    for (size_t i = 0; i < SETTINGS; i++) {
        if (settings[i].name) {
            settings[i].type->parse(member(config, settings[i].offset),
                                    &settings[i], settings[i].initial,
                                    result_pool);
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

/* ---- explaining ---------------------------------------------------------- */

/* Add WORDS to BUF in lines of at most 77 characters that begin with
 * PREFIX. */
static void wrap(crm_buf_t *buf, const char *prefix, const char *words)
{
    size_t column = 0;

    while (*words) {
        size_t len = strcspn(words, " ");

        if (column && column + 1 + len > 77) {
            crm_buf_putc(buf, '\n');
            column = 0;
        }
        if (!column) {
            crm_buf_puts(buf, prefix);
            column = strlen(prefix);
        }
        else {
            crm_buf_putc(buf, ' ');
            column++;
        }
        crm_buf_add(buf, words, len);
        column += len;
        words += len + strspn(words + len, " ");
    }
    crm_buf_putc(buf, '\n');
}

void crmd_config_write_sample(crm_buf_t *buf)
{
    crm_buf_puts(buf, "# Configuration of crmapid: all settings with their"
                 " defaults.\n# Lines are: name = value\n");
    for (size_t i = 0; i < SETTINGS; i++) {
        const setting_t *setting = &settings[i];

        if (!setting->name) {
            crm_buf_printf(buf, "\n# ---- %s ----\n", setting->help);
            continue;
        }
        crm_buf_putc(buf, '\n');
        wrap(buf, "# ", setting->help);
        if (setting->choices) {
            crm_buf_printf(buf, "# One of %s.\n", setting->choices);
        }
        crm_buf_printf(buf, "#%s =%s%s\n", setting->name,
                       *setting->initial ? " " : "", setting->initial);
    }
}

/* Add WORDS to BUF, escaped for troff. */
static void troff(crm_buf_t *buf, const char *words)
{
    for (; *words; words++) {
        if (*words == '\\' || *words == '-') {
            crm_buf_putc(buf, '\\');
        }
        crm_buf_putc(buf, *words);
    }
}

void crmd_config_write_manual(crm_buf_t *buf)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        const setting_t *setting = &settings[i];

        if (!setting->name) {
            crm_buf_printf(buf, ".SS %s\n", setting->help);
            continue;
        }
        crm_buf_printf(buf, ".TP\n.BR %s \" (", setting->name);
        troff(buf, setting->choices ? setting->choices : setting->type->what);
        crm_buf_puts(buf, *setting->initial ? "; default " : "");
        troff(buf, setting->initial);
        crm_buf_puts(buf, ")\"\n");
        troff(buf, setting->help);
        crm_buf_putc(buf, '\n');
    }
}
