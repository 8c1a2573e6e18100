/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_config.c: the settings: one table that reads, prints, explains */
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

typedef struct setting_t setting_t;

/* A type: how a value is read. WHAT is what the manual calls one. */
typedef struct setting_type_t {
    const char *what;
    /* Store TEXT at TARGET (kept as long as POOL). Return NULL or the rule
     * that it breaks. */
    const char *(*parse)(void *target, const setting_t *setting,
                         const char *text, apr_pool_t *pool);
} setting_type_t;

struct setting_t {
    const char *name;           /* NULL: a heading, which HELP is */
    const setting_type_t *type;
    size_t offset;              /* in crmd_config_t */
    const char *initial;        /* the default, as it is written in a file */
    apr_int64_t min, max;       /* numbers, and milliseconds of durations */
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
    size_t i = sizeof(units) / sizeof(units[0]) - 1;

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
        for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
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

#define SECOND APR_INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define YEAR (365 * DAY)

static const setting_t settings[] = {
    HEADING("The database and the daemon"),
    TEXT(database, text, "", "Where the data is, as libpq wants it. With a"
         " password in it the file must not be open to everybody. Not set:"
         " $CRMAPI_DATABASE."),
    TEXT(name, text, "crmapid", "What crmapictl status calls this daemon."),
    NUMBER(threads, "4", 1, 64, "Threads for sequences and for the mails that"
           " ask for a review. Each has a connection of its own."),
    NUMBER(webhook_threads, "4", 0, 64, "Threads for webhooks; 0: this daemon"
           " delivers none."),
    DURATION(poll, "2s", 100, 2 * SECOND, "Polling interval when no NOTIFY arrives."),
    DURATION(lease, "15s", SECOND, 5 * MINUTE, "How long work may be silent before it is"
             " given to another daemon. It is lengthened every third of it."),
    DURATION(answer_time, "20s", SECOND, 10 * MINUTE, "How long the database may take to"
             " answer, before its connection is opened anew."),
    WORD(log_level, "notice", "error|warning|notice|info|debug",
         "What is logged."),
    TEXT(log_file, path, "", "Where it is logged. Not set: on stderr."),
    TEXT(pid_file, path, "", "Where the process's number goes. Not set:"
         " nowhere."),
    TEXT(run_dir, path, "/var/lib/crmapi", "A folder that belongs to the"
         " daemon."),

    HEADING("Links in mails"),
    TEXT(public_url, url, "", "What the site is called from outside:"
         " https://crm.example.org. Not set: mails have no links, and nobody"
         " can unsubscribe."),
    TEXT(review_path, path, "/crmapi/review/",
         "As CrmApiReview in httpd.conf says."),
    TEXT(unsubscribe_path, path, "/crmapi/unsubscribe/",
         "As CrmApiUnsubscribe in httpd.conf says."),
    DURATION(review_ttl, "7d", MINUTE, YEAR, "How long a link to a review is"
             " good."),

    HEADING("Generation"),
    WORD(generator, "template", "template|openai", "What makes the steps of a"
         " sequence: the template's own, or a language model."),
    NUMBER(generate_attempts, "5", 1, 50, "How often is tried before an"
           " enrollment fails."),
    NUMBER(max_steps, "20", 1, 100, "The most steps a sequence may have."),
    TEXT(openai_url, url, "", "An OpenAI-compatible service, up to and with"
         " its version: https://api.example.org/v1."),
    TEXT(openai_model, text, "", "The model's name."),
    TEXT(openai_key_file, path, "", "Where the key is. Not set:"
         " $CRMAPID_OPENAI_KEY."),
    DURATION(openai_timeout, "90s", 0, 10 * MINUTE, "How long one answer may take."),
    NUMBER(openai_max_tokens, "4000", 1, 1000000, "The longest answer, in"
           " tokens."),
    NUMBER(openai_concurrency, "2", 1, 64, "Questions at the same time."),

    HEADING("Sending"),
    WORD(email_relay, "maildir", "maildir|smtp|http", "How mails are sent."),
    WORD(sms_relay, "maildir", "maildir|http|twilio",
         "How text messages are sent."),
    WORD(voice_relay, "maildir", "maildir|http|twilio",
         "How calls are made."),
    NUMBER(send_attempts, "8", 1, 50, "How often is tried to hand over a step"
           " before its enrollment fails."),
    NUMBER(agent_daily_limit, "0", 0, 1000000, "Steps that one agent may send"
           " on a day of its workspace; 0: no limit."),
    NUMBER(relay_concurrency, "4", 1, 64, "Messages handed to one relay at"
           " the same time."),
    TEXT(maildir, path, "", "Where the relay maildir puts messages. Not set:"
         " the folder outbox in run_dir."),
    TEXT(mail_from, text, "", "The sender of mails of agents that have no"
         " address, and of our own."),
    TEXT(mail_from_name, text, "", "The name that goes with mail_from."),
    TEXT(mail_domain, text, "localhost", "What Message-IDs end with."),
    TEXT(smtp_url, url, "smtp://127.0.0.1:25", "The mail server: smtp:// or"
         " smtps://."),
    WORD(smtp_tls, "starttls", "no|opportunistic|starttls",
         "Whether smtp:// must become encrypted."),
    TEXT(smtp_ca_file, path, "", "Certificates that sign the server's. Not"
         " set: the system's."),
    TEXT(smtp_user, text, "", "Who we are for the server. Not set: nobody."),
    TEXT(smtp_password_file, path, "", "Where the password is. Not set:"
         " $CRMAPID_SMTP_PASSWORD."),
    DURATION(smtp_timeout, "60s", 0, 10 * MINUTE, "How long one mail may take."),
    SWITCH(smtp_deduplicates, "off", "Whether the server drops a mail whose"
           " Message-ID it has had. Then one whose fate is unknown is sent"
           " again instead of given up."),
    TEXT(provider_url, url, "", "Where the relay http posts messages."),
    TEXT(provider_token_file, path, "", "Where its Bearer token is. Not set:"
         " $CRMAPID_PROVIDER_TOKEN."),
    TEXT(provider_ca_file, path, "", "Certificates that sign that of http or"
         " twilio. Not set: the system's."),
    DURATION(provider_timeout, "20s", 0, 10 * MINUTE, "How long http and twilio may"
             " take."),
    TEXT(sms_from, text, "", "The sender of text messages of agents that have"
         " no number."),
    TEXT(voice_from, text, "", "The caller for agents that have no number."),
    TEXT(twilio_url, url, "https://api.twilio.com", "Where Twilio is."),
    TEXT(twilio_account, text, "", "The account's SID."),
    TEXT(twilio_token_file, path, "", "Where its token is. Not set:"
         " $CRMAPID_TWILIO_TOKEN."),

    HEADING("Mails that come"),
    TEXT(lmtp_socket, path, "", "A Unix socket at which mails to agents are"
         " taken by LMTP. Not set: none."),
    WORD(lmtp_mode, "0660", "0600|0660|0666", "Who may connect to it."),
    NUMBER(lmtp_threads, "4", 1, 64, "Sessions at the same time; others wait."
           " Each has a connection to the database of its own."),
    DURATION(lmtp_timeout, "60s", SECOND, 10 * MINUTE, "How long a session may be"
             " silent."),
    NUMBER(mail_max_message, "26214400", 1024, 104857600, "The largest mail"
           " that is taken, in bytes."),
    NUMBER(mail_attachment_bytes, "262144", 0, 10485760, "Attachments up to"
           " this size are kept; larger ones are only listed."),
    NUMBER(mail_hourly, "30", 0, 1000000, "Mails that one sender may send to"
           " an agent in an hour. More are kept, but are no replies; 0: no"
           " limit."),
    TEXT(mail_authserv_id, text, "", "Hosts whose Authentication-Results are"
         " believed, by their authserv-id, with blanks between them. They"
         " must remove what others write in their names. Not set: none."),

    HEADING("Webhooks"),
    DURATION(webhook_timeout, "15s", 0, MINUTE, "How long an endpoint may take."),
    NUMBER(webhook_concurrency, "2", 1, 64, "Deliveries to one endpoint at"
           " the same time."),
    SWITCH(webhook_private, "off", "Whether endpoints may have addresses that"
           " are not public: on an intranet, in tests."),
    TEXT(webhook_ca_file, path, "", "Certificates that sign those of"
         " endpoints. Not set: the system's."),

    HEADING("Upkeep"),
    DURATION(upkeep, "5m", SECOND, DAY, "How often upkeep is due."),
    DURATION(conversation_idle, "24h", MINUTE, YEAR, "After how much silence a"
             " conversation is no longer active."),
    DURATION(keep_jobs, "7d", 0, 10 * YEAR,
             "How long jobs that are done are kept."),
    DURATION(keep_deliveries, "30d", 0, 10 * YEAR,
             "How long webhook deliveries are kept."),
    DURATION(keep_events, "30d", HOUR, 10 * YEAR,
             "How long ids of intake events are known: one that is brought"
             " again later is taken again."),
    DURATION(verify_totals, "24h", MINUTE, YEAR, "How often the totals are"
             " compared with the rows."),
};

#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

/* Secrets: where each is read from. */
static const struct {
    size_t value, file;         /* in crmd_config_t */
    const char *setting;        /* that names the file */
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

/* The member of CONFIG at OFFSET. */
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

/* Cut blanks off both ends of TEXT. */
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

/* Take LINE, "name = value", empty, or a comment, into CONFIG; SEEN marks the
 * settings that were there before. Return NULL or what is wrong. */
static const char *take_line(crmd_config_t *config, unsigned char *seen,
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
                ? take_line(config, seen, line, pool) : "is too long";
        if (fault) {
            return crm_error_createf(CRM_E_BAD_REQUEST, pool,
                                     "%s, line %d: %s", config->file,
                                     number_of, fault);
        }
    }
}

/* Set *SECRET_P to the first line of the file NAME, which SETTING names. */
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
                                 " open to everybody (chmod o= )", setting,
                                 name);
    }
    *secret_p = apr_pstrdup(pool, trim(line));
    memset(line, 0, sizeof(line));
    return NULL;
}

static crm_error_t *read_secrets(crmd_config_t *config, apr_pool_t *pool)
{
    for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
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

/* Refuse a file of settings that shows the database's password, written as a
 * keyword or in a URI, to everybody. */
static crm_error_t *check_rights(const crmd_config_t *config, apr_pool_t *pool)
{
    const char *host = strstr(config->database, "://");
    const char *at = host ? strchr(host, '@') : NULL;
    const char *colon = host ? strchr(host + 3, ':') : NULL;
    struct stat info;

    if ((strstr(config->database, "password") || (at && colon && colon < at))
        && !stat(config->file, &info) && (info.st_mode & S_IRWXO)) {
        return crm_error_createf(CRM_E_BAD_REQUEST, pool, "%s holds a password"
                                 " and must not be open to everybody"
                                 " (chmod o= )", config->file);
    }
    return NULL;
}

/* What follows from other settings. */
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

/* Add TEXT to BUF in lines of 77 characters, each behind PREFIX. */
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
    crm_buf_puts(buf, "# The configuration of crmapid, with all settings and"
                 " their defaults.\n# A line is: name = value\n");
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

/* Add TEXT with the characters escaped that troff would take as its own. */
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
