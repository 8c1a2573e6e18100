/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_options.c: parsing the command line; help */
#include "crmapictl_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "apr_strings.h"

#include "crm_buf.h"
#include "crm_text.h"
#include "crm_time.h"
#include "crm_uuid.h"

#define REASON_MAX 1000

/* Options of every command. */
#define COMMON (CTL_BIT(CTL_DATABASE) | CTL_BIT(CTL_JSON) \
                | CTL_BIT(CTL_HELP) | CTL_BIT(CTL_TIMEOUT) \
                | CTL_BIT(CTL_VERSION))

/* The words of a command line except options. */
typedef struct words_t {
    const char **words;         /* with two NULLs behind them */
    int count;
} words_t;

/* Return the name of COMMAND as it is typed. */
static const char *command_name(const ctl_command_t *command,
                                apr_pool_t *pool)
{
    return command->verb
           ? apr_pstrcat(pool, command->group, " ", command->verb, NULL)
           : command->group;
}

/* Return the option with the LEN bytes at NAME, or CTL_OPTIONS. */
static ctl_option_t find_option(const char *name, size_t len)
{
    int option;

    for (option = 0; option < CTL_OPTIONS; option++) {
        if (strlen(ctl_options[option].name) == len
            && !memcmp(ctl_options[option].name, name, len)) {
            break;
        }
    }
    return (ctl_option_t)option;
}

/* The options that may be given several times. */
#define REPEATED (CTL_BIT(CTL_RECIPIENT) | CTL_BIT(CTL_AUTHSERV_ID) \
    | CTL_BIT(CTL_MOVE_TO) | CTL_BIT(CTL_SET) | CTL_BIT(CTL_SET_FILE))

/* The options whose values the system reads, not the database. */
#define BYTES (CTL_BIT(CTL_DATABASE) | CTL_BIT(CTL_SCHEMA) \
    | CTL_BIT(CTL_PASSWORD_FILE))

/* Set OPTION of CTL to VALUE, or append VALUE to the values given before. */
static void set_option(ctl_t *ctl, ctl_option_t option, const char *value)
{
    const char *before = ctl->options[option];
    ctl_given_t given = {option, value};

    if (CTL_BIT(option) & REPEATED) {
        APR_ARRAY_PUSH(ctl->given, ctl_given_t) = given;
    }
    ctl->options[option] = before ? apr_pstrcat(ctl->pool, before, "\n",
                                                value, NULL) : value;
}

/* Return OPTION, or another one of its name that the command GROUP (NULL: not
 * known yet) takes. */
static ctl_option_t option_of(ctl_option_t option, const char *group)
{
    const ctl_command_t *command = ctl_commands;

    while (group && command->group && strcmp(command->group, group)) {
        command++;
    }
    for (int other = 0; group && command->group && other < CTL_OPTIONS;
         other++) {
        if (!strcmp(ctl_options[other].name, ctl_options[option].name)
            && ((command->takes | command->needs) & CTL_BIT(other))) {
            return (ctl_option_t)other;
        }
    }
    return option;
}

/* Return an error unless TEXT, the value of WHAT, is UTF-8: the database would
 * refuse it. It is not shown, since it may be a password. */
static crm_error_t *check_text(ctl_t *ctl, const char *what, const char *text)
{
    return crm_text_valid_utf8(text, strlen(text)) ? NULL
           : ctl_misuse(ctl, "%s is not valid UTF-8", what);
}

/* Read the option WORD of the command GROUP (NULL: it follows). NEXT (or NULL)
 * may be its value; then *USED_P = 1. A value that begins like an option needs
 * "--name=--value". */
static crm_error_t *read_option(int *used_p, ctl_t *ctl, const char *group,
                                const char *word, const char *next)
{
    const char *equals = strchr(word, '=');
    size_t len = equals ? (size_t)(equals - word) : strlen(word);
    const char *shown = apr_pstrmemdup(ctl->pool, word, len);
    ctl_option_t option = len > 2 ? find_option(word + 2, len - 2)
                                      : CTL_OPTIONS;

    *used_p = 0;
    if (option == CTL_OPTIONS) {
        return ctl_misuse(ctl, "unknown option %s", shown);
    }
    option = option_of(option, group);
    if (ctl->options[option] && !(CTL_BIT(option) & REPEATED)) {
        return ctl_misuse(ctl, "%s is given twice", shown);
    }
    if (!ctl_options[option].value) {
        ctl->options[option] = "";
        return equals ? ctl_misuse(ctl, "%s has no value", shown) : NULL;
    }
    if (!equals && (!next || !strncmp(next, "--", 2))) {
        return ctl_misuse(ctl, "%s needs a value", shown);
    }
    *used_p = !equals;
    set_option(ctl, option, equals ? equals + 1 : next);
    return CTL_BIT(option) & BYTES ? NULL
           : check_text(ctl, shown, ctl->options[option]);
}

/* Read the options of the command line, and put the other words into WORDS. */
static crm_error_t *read_words(words_t *words, ctl_t *ctl, int argc,
                               const char *const *argv)
{
    int only_words = 0;

    words->words = apr_pcalloc(ctl->pool, ((size_t)argc + 2)
                               * sizeof(*words->words));
    ctl->given = apr_array_make(ctl->pool, 4, sizeof(ctl_given_t));
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];

        if (!only_words && !strcmp(word, "--")) {
            only_words = 1;
        }
        else if (!only_words && !strcmp(word, "-h")) {
            ctl->options[CTL_HELP] = "";
        }
        else if (!only_words && word[0] == '-' && word[1]) {
            int used;

            CRM_ERR(read_option(&used, ctl, words->words[0], word,
                                i + 1 < argc ? argv[i + 1] : NULL));
            i += used;
        }
        else {
            words->words[words->count++] = word;
        }
    }
    return NULL;
}

/* Return the command that the first of WORDS name, or NULL; then *VERBS_P: what can
 * follow the first, in POOL, or NULL if no command begins with it. */
static const ctl_command_t *look_up(const char **verbs_p, const words_t *words,
                                    apr_pool_t *pool)
{
    const char *verbs = NULL;

    for (const ctl_command_t *command = ctl_commands;
         words->count && command->group; command++) {
        if (strcmp(command->group, words->words[0])) {
            continue;
        }
        if (!command->verb
            || (words->count > 1 && !strcmp(command->verb, words->words[1]))) {
            return command;
        }
        verbs = crm_text_listed(verbs, command->verb, pool);
    }
    *verbs_p = verbs;
    return NULL;
}

/* Set *COMMAND_P to the command that the first of WORDS name. */
static crm_error_t *find_command(const ctl_command_t **command_p, ctl_t *ctl,
                                 const words_t *words)
{
    const char *verbs;

    *command_p = look_up(&verbs, words, ctl->pool);
    if (*command_p || !words->count) {
        return NULL;
    }
    if (!verbs) {
        return ctl_misuse(ctl, "unknown command \"%s\"", words->words[0]);
    }
    if (ctl->options[CTL_HELP]) {
        ctl->group = words->words[0];
        return NULL;
    }
    return ctl_misuse(ctl, "%s is followed by one of %s", words->words[0],
                      verbs);
}

/* Check that CTL has all options that COMMAND needs and no others. */
static crm_error_t *check_options(ctl_t *ctl, const ctl_command_t *command)
{
    apr_uint64_t known = COMMON | command->needs | command->takes;
    const char *name = command_name(command, ctl->pool);

    for (int option = 0; option < CTL_OPTIONS; option++) {
        const char *shown = ctl_options[option].name;

        if (ctl->options[option] && !(known & CTL_BIT(option))) {
            return ctl_misuse(ctl, "%s has no option --%s", name, shown);
        }
        if (!ctl->options[option]
            && (command->needs & CTL_BIT(option))) {
            const char *value = ctl_options[option].value;

            return ctl_misuse(ctl, "%s needs --%s%s%s", name, shown,
                              value ? " " : "", value ? value : "");
        }
    }
    return NULL;
}

/* Return whether the operands of COMMAND are files, whose names are bytes. */
static int is_file(const ctl_command_t *command)
{
    return command->operand && !strncmp(command->operand, "FILE", 4);
}

/* Set COMMAND's operands from WORDS, which begin with its name. */
static crm_error_t *take_operands(ctl_t *ctl, const ctl_command_t *command,
                                  const words_t *words)
{
    int used = command->verb ? 2 : 1;
    int operands = !command->operand ? 0
                   : strstr(command->operand, "...") ? words->count
                   : strchr(command->operand, ' ') ? 2 : 1;
    int count = words->count - used;

    ctl->args = words->words + used;
    if (count > operands) {
        /* Do not quote it: it may be a key or a password. */
        return ctl_misuse(ctl, "%s takes %s%s",
                          command_name(command, ctl->pool),
                          operands ? operands > 1 ? "only " : "one "
                                 : "no arguments",
                          operands ? command->operand : "");
    }
    if (command->operand_needed && count < operands) {
        return ctl_misuse(ctl, "%s needs %s", command_name(command, ctl->pool),
                          command->operand);
    }
    for (int i = 0; i < count && !is_file(command); i++) {
        CRM_ERR(check_text(ctl, command->operand, ctl->args[i]));
    }
    return NULL;
}

/* Read the command line WORDS of COUNT words into CTL and *COMMAND_P; *FOUND: its
 * words that are no options. */
static crm_error_t *parse(const ctl_command_t **command_p, words_t *found,
                          ctl_t *ctl, int count, const char *const *words)
{
    CRM_ERR(read_words(found, ctl, count, words));
    if (found->count && !strcmp(found->words[0], "help")) {
        ctl->options[CTL_HELP] = "";
        found->words++;
        found->count--;
    }
    CRM_ERR(find_command(command_p, ctl, found));
    if (ctl->options[CTL_HELP] || ctl->options[CTL_VERSION]) {
        return NULL;
    }
    if (!*command_p) {
        return ctl_misuse(ctl, "no command");
    }
    CRM_ERR(check_options(ctl, *command_p));
    return take_operands(ctl, *command_p, found);
}

crm_error_t *ctl_parse(const ctl_command_t **command_p, ctl_t *ctl, int count,
                       const char *const *words)
{
    words_t found = {NULL, 0};
    crm_error_t *error = parse(command_p, &found, ctl, count, words);
    const ctl_command_t *command;
    const char *verbs = NULL;

    if (error) {
        command = look_up(&verbs, &found, ctl->pool);
        error->message = apr_psprintf(
            ctl->pool, "%s; see crmapictl%s%s --help", error->message,
            command || verbs ? " " : "", command
            ? command_name(command, ctl->pool) : verbs ? found.words[0] : "");
    }
    return error;
}

/* Add the syntax of OPTION to BUF. */
static void add_option(crm_buf_t *buf, int option)
{
    const ctl_option_info_t *info = &ctl_options[option];

    crm_buf_printf(buf, "--%s%s%s", info->name, info->value ? " " : "",
                   info->value ? info->value : "");
}

/* Add the syntax of COMMAND to BUF. */
static void add_synopsis(crm_buf_t *buf, const ctl_command_t *command,
                         apr_pool_t *pool)
{
    crm_buf_puts(buf, command_name(command, pool));
    if (command->operand && command->operand_needed) {
        crm_buf_printf(buf, " %s", command->operand);
    }
    for (int option = 0; option < CTL_OPTIONS; option++) {
        int required = (command->needs & CTL_BIT(option)) != 0;

        if (required || (command->takes & CTL_BIT(option))) {
            crm_buf_puts(buf, required ? " " : " [");
            add_option(buf, option);
            crm_buf_puts(buf, required ? "" : "]");
        }
    }
    if (command->operand && !command->operand_needed) {
        crm_buf_printf(buf, " [%s]", command->operand);
    }
}

/* Add a line for each option in OPTIONS to BUF. */
static void add_options(crm_buf_t *buf, apr_uint64_t options)
{
    for (int option = 0; option < CTL_OPTIONS; option++) {
        if (options & CTL_BIT(option)) {
            apr_size_t start;

            crm_buf_puts(buf, "  ");
            start = buf->len;
            add_option(buf, option);
            while (buf->len < start + 22) {
                crm_buf_putc(buf, ' ');
            }
            crm_buf_printf(buf, "  %s\n", ctl_options[option].help);
        }
    }
}

crm_error_t *ctl_number(long *number_p, ctl_t *ctl,
                        ctl_option_t option, long max)
{
    const char *text = ctl->options[option];
    char *end;

    if (!text) {
        return NULL;
    }
    errno = 0;
    *number_p = strtol(text, &end, 10);
    if (errno || *text < '0' || *text > '9' || *end || *number_p > max) {
        return ctl_misuse(ctl, "--%s must be a number from 0 to %ld",
                          ctl_options[option].name, max);
    }
    return NULL;
}

crm_error_t *ctl_time(const char **value_p, apr_time_t *time_p, ctl_t *ctl,
                      ctl_option_t option, const char *more)
{
    const char *given = ctl->options[option];
    char *value = apr_palloc(ctl->pool, CRM_TIME_SIZE);
    apr_time_t time;

    if (crm_time_parse(&time, given, strlen(given))) {
        return ctl_misuse(ctl, "--%s must be a time like 2027-01-31T12:00:00Z%s"
                          " a date%s", ctl_options[option].name,
                          *more ? "," : " or", more);
    }
    crm_time_format_ms(value, time);
    *value_p = value;
    if (time_p) {
        *time_p = time;
    }
    return NULL;
}

crm_error_t *ctl_known_status(ctl_t *ctl, const char *const *known)
{
    const char *status = ctl->options[CTL_STATUS], *all = *known;

    for (int i = 0; status && strcmp(known[i], status);) {
        if (!known[++i]) {
            return ctl_misuse(ctl, "--status must be one of %s", all);
        }
        all = crm_text_listed(all, known[i], ctl->pool);
    }
    return NULL;
}

crm_error_t *ctl_period(ctl_t *ctl)
{
    const char *value;
    apr_time_t from, to;

    if (!ctl->options[CTL_FROM] || !ctl->options[CTL_TO]) {
        return NULL;
    }
    CRM_ERR(ctl_time(&value, &from, ctl, CTL_FROM, ""));
    CRM_ERR(ctl_time(&value, &to, ctl, CTL_TO, ""));
    return from <= to ? NULL
           : ctl_misuse(ctl, "--from must not be after --to");
}

crm_error_t *ctl_limit(const char **value_p, ctl_t *ctl, ctl_option_t option)
{
    const char *text = ctl->options[option];
    long limit = 0;

    *value_p = text;
    if (text && !strcmp(text, "default")) {
        *value_p = "0";
        return NULL;
    }
    if (!text || (*text != '0' && strspn(text, "0123456789") == strlen(text)
                  && (limit = strtol(text, NULL, 10)) > 0
                  && limit <= CTL_LIMIT_MAX)) {
        return NULL;
    }
    return ctl_misuse(ctl, "--%s must be a number from 1 to %d, or default",
                      ctl_options[option].name, CTL_LIMIT_MAX);
}

crm_error_t *ctl_switch(const char **value_p, ctl_t *ctl, ctl_option_t option)
{
    const char *text = ctl->options[option];

    *value_p = text;
    return !text || !strcmp(text, "on") || !strcmp(text, "off") ? NULL
           : ctl_misuse(ctl, "--%s must be on or off",
                        ctl_options[option].name);
}

crm_error_t *ctl_reason(const char **reason_p, ctl_t *ctl, const char *none)
{
    const char *reason = ctl->options[CTL_REASON];
    apr_size_t length = reason ? crm_text_length(reason, strlen(reason)) : 1;

    *reason_p = reason ? reason : none;
    return length && length <= REASON_MAX ? NULL
           : ctl_misuse(ctl, "--reason must have 1 to 1,000 characters");
}

crm_error_t *ctl_uuid(char *id, ctl_t *ctl, const char *what,
                      const char *given)
{
    if (!crm_uuid_parse(id, given, strlen(given))) {
        return ctl_misuse(ctl, "%s must be an id: 8-4-4-4-12 hexadecimal"
                          " digits", what);
    }
    return NULL;
}

/* Add the syntax and the help of each command of GROUP (NULL: of all) to
 * BUF. */
static void add_commands(crm_buf_t *buf, const char *group, apr_pool_t *pool)
{
    for (const ctl_command_t *command = ctl_commands; command->group;
         command++) {
        if (!group || !strcmp(command->group, group)) {
            crm_buf_puts(buf, "  ");
            add_synopsis(buf, command, pool);
            crm_buf_printf(buf, "\n      %s\n", command->help);
        }
    }
}

const char *ctl_help(const ctl_command_t *command, const char *group,
                     apr_pool_t *pool)
{
    crm_buf_t buf;

    crm_buf_init(&buf, 4096, pool);
    crm_buf_puts(&buf, "usage: crmapictl [--database CONNINFO] [--json] ");
    if (command) {
        add_synopsis(&buf, command, pool);
        crm_buf_printf(&buf, "\n      %s\n\n", command->help);
        add_options(&buf, COMMON | command->needs | command->takes);
    }
    else {
        crm_buf_puts(&buf, "COMMAND\n\n");
        add_commands(&buf, group, pool);
        crm_buf_puts(&buf, "\nW is a workspace's id or slug."
                     " See crmapictl COMMAND --help for its options.\n"
                     "Results go to stdout, errors to stderr."
                     " Exit codes: 0 success, 1 failure,\n"
                     "2 invalid command line.\n\n");
        add_options(&buf, COMMON);
    }
    crm_buf_putc(&buf, '\0');
    return buf.data;
}
