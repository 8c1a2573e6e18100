/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl.h: what the files of the operator's tool share */
#ifndef CRMAPICTL_H
#define CRMAPICTL_H

#include "crm_db.h"
#include "crm_error.h"

/* All options. Each command says which of them it takes. */
typedef enum ctl_option_t {
    CTL_DATABASE,
    CTL_JSON,
    CTL_HELP,
    CTL_TIMEOUT,
    CTL_VERSION,
    CTL_WORKSPACE,
    CTL_NAME,
    CTL_SLUG,
    CTL_PLAN,
    CTL_ID,
    CTL_SCOPES,
    CTL_KEY_PREFIX,
    CTL_SCHEMA,
    CTL_EMAIL,
    CTL_PHONE,
    CTL_REASON,
    CTL_CONTACT,
    CTL_URL,
    CTL_EVENTS,
    CTL_STATUS,
    CTL_ORIGINS,
    CTL_RECIPIENT,
    CTL_SENDER,
    CTL_MAX_MESSAGE,
    CTL_ATTACHMENT_BYTES,
    CTL_HOURLY,
    CTL_AUTHSERV_ID,
    CTL_YES,
    CTL_OPTIONS
} ctl_option_t;

/* The bit of OPTION in a set of options. */
#define CTL_BIT(option) (1u << (option))

/* A pseudo-option of commands whose statements have no timeout by default. */
#define CTL_LONG (1u << 31)

/* The properties of an option. */
typedef struct ctl_option_info_t {
    const char *name;           /* without the hyphens */
    const char *value;          /* what its value is called; NULL: has none */
    const char *help;
} ctl_option_info_t;

/* A run of the tool. */
typedef struct ctl_t {
    apr_pool_t *pool;
    crm_conn_t *conn;           /* open while a command runs */
    const char *options[CTL_OPTIONS];   /* NULL: not given; "" for those
                                           without a value; of those that may
                                           be given again all values, with a
                                           line feed between them */
    const char *args[1];        /* the command's operand, or NULL */
    int code;                   /* what the tool ends with; 0: by the error */
} ctl_t;

/* A command. Parsing, help and messages all come from the table of commands,
 * and tests compare the manual page with it. */
typedef struct ctl_command_t {
    const char *group;          /* first word: "workspace", "migrate" */
    const char *verb;           /* second word, or NULL */
    const char *operand;        /* the operand's name, or NULL */
    int operand_needed;
    unsigned needs;             /* options, as bits */
    unsigned takes;             /* others that may be given; those up to
                                   CTL_VERSION go with every command */
    const char *help;           /* "create a workspace and print its id" */
    crm_error_t *(*run)(ctl_t *ctl);
} ctl_command_t;

/* The tables of options and of commands; the latter ends with a command without
 * a group. */
extern const ctl_option_info_t ctl_options[CTL_OPTIONS];
extern const ctl_command_t ctl_commands[];

/* Parse the COUNT words of a command line, without the program's name: fill CTL
 * and set *COMMAND_P (NULL: no command is named). Errors: ctl_misuse(). */
crm_error_t *ctl_parse(const ctl_command_t **command_p, ctl_t *ctl, int count,
                       const char *const *words);

/* Return the help of COMMAND (NULL: of the tool), in POOL. */
const char *ctl_help(const ctl_command_t *command, apr_pool_t *pool);

/* Set *NUMBER_P to the value of OPTION, 0 to MAX, if the option is given.
 * Errors: ctl_misuse(). */
crm_error_t *ctl_number(long *number_p, ctl_t *ctl, ctl_option_t option,
                        long max);

/* Return an error with a message made from FORMAT. The exit code is 1. */
crm_error_t *ctl_fault(ctl_t *ctl, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same for an invalid command line. The exit code is 2. */
crm_error_t *ctl_misuse(ctl_t *ctl, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A column of a result. Tables of columns end with one without a name. */
typedef struct ctl_column_t {
    const char *name;
    char form;                  /* 's' text, 'n' number, 't' timestamptz, 'a'
                                   text[], as JSON */
} ctl_column_t;

/* Print RESULT, whose first columns are COLUMNS. With --json: an array of
 * objects, or the first row as an object if SINGLE. Otherwise: a heading and a
 * line with tabs for each row, or a line for each column of the first row if
 * SINGLE. */
void ctl_print(ctl_t *ctl, const PGresult *result,
               const ctl_column_t *columns, int single);

/* Print the result of a command that creates or changes something: with --json
 * the first row of RESULT, otherwise the line ALONE (NULL: nothing). */
void ctl_print_one(ctl_t *ctl, const char *alone, const PGresult *result,
                   const ctl_column_t *columns);

/* Return TEXT in POOL with control characters replaced by spaces, safe for a
 * terminal. */
const char *ctl_clean(const char *text, apr_pool_t *pool);

/* Run SQL with COUNT VALUES and set *RESULT_P to its rows. */
crm_error_t *ctl_query(PGresult **result_p, ctl_t *ctl, const char *sql,
                       int count, const char *const *values);

/* Set *ID_P to the id of the workspace WHAT, an id or a slug. Errors: there is
 * no such workspace. */
crm_error_t *ctl_workspace_id(const char **id_p, ctl_t *ctl,
                              const char *what);

/* SQL for ctl_owner(): the workspaces in whose TABLE the id $1 exists. */
#define CTL_OWNERS(table) \
    "SELECT t.workspace_id FROM crmapi." table " t WHERE t.id = $1"

/* Set *WORKSPACE_P to the workspace of ID, an operand: that of --workspace, or
 * the one found by OWNERS, SQL with ID as $1; NULL if there is none. Errors:
 * several workspaces have ID. Ids are unique within a workspace only, and an
 * export may be imported into several. */
crm_error_t *ctl_owner(const char **workspace_p, ctl_t *ctl,
                       const char *owners, const char *id);

/* Set ID to GIVEN, the operand WHAT, in lower case. Errors: GIVEN is not a
 * UUID. */
crm_error_t *ctl_uuid(char *id, ctl_t *ctl, const char *what,
                      const char *given);

/* Check a name: 1 to 1,000 characters (contract 6.3). */
crm_error_t *ctl_check_name(ctl_t *ctl, const char *name);

/* Return the exit code (sysexits.h) of the command deliver for ERROR (NULL:
 * none). */
int ctl_deliver_code(const ctl_t *ctl, const crm_error_t *error);

/* The commands. The manual page describes their output. */
crm_error_t *ctl_migrate(ctl_t *ctl);
crm_error_t *ctl_status(ctl_t *ctl);
crm_error_t *ctl_worker_list(ctl_t *ctl);
crm_error_t *ctl_workspace_create(ctl_t *ctl);
crm_error_t *ctl_workspace_list(ctl_t *ctl);
crm_error_t *ctl_workspace_show(ctl_t *ctl);
crm_error_t *ctl_workspace_set(ctl_t *ctl);
crm_error_t *ctl_workspace_delete(ctl_t *ctl);
crm_error_t *ctl_key_create(ctl_t *ctl);
crm_error_t *ctl_key_import(ctl_t *ctl);
crm_error_t *ctl_key_list(ctl_t *ctl);
crm_error_t *ctl_key_revoke(ctl_t *ctl);
crm_error_t *ctl_intake_create(ctl_t *ctl);
crm_error_t *ctl_intake_list(ctl_t *ctl);
crm_error_t *ctl_intake_revoke(ctl_t *ctl);
crm_error_t *ctl_agent_origins(ctl_t *ctl);
crm_error_t *ctl_attachment_list(ctl_t *ctl);
crm_error_t *ctl_attachment_get(ctl_t *ctl);
crm_error_t *ctl_deliver(ctl_t *ctl);
crm_error_t *ctl_admin_add(ctl_t *ctl);
crm_error_t *ctl_admin_list(ctl_t *ctl);
crm_error_t *ctl_admin_remove(ctl_t *ctl);
crm_error_t *ctl_enrollment_approve(ctl_t *ctl);
crm_error_t *ctl_enrollment_reject(ctl_t *ctl);
crm_error_t *ctl_enrollment_stop(ctl_t *ctl);
crm_error_t *ctl_enrollment_list(ctl_t *ctl);
crm_error_t *ctl_suppress_add(ctl_t *ctl);
crm_error_t *ctl_suppress_remove(ctl_t *ctl);
crm_error_t *ctl_suppress_list(ctl_t *ctl);
crm_error_t *ctl_reply(ctl_t *ctl);
crm_error_t *ctl_job_list(ctl_t *ctl);
crm_error_t *ctl_job_retry(ctl_t *ctl);
crm_error_t *ctl_webhook_add(ctl_t *ctl);
crm_error_t *ctl_webhook_list(ctl_t *ctl);
crm_error_t *ctl_webhook_remove(ctl_t *ctl);
crm_error_t *ctl_webhook_rotate(ctl_t *ctl);
crm_error_t *ctl_webhook_enable(ctl_t *ctl);
crm_error_t *ctl_webhook_deliveries(ctl_t *ctl);
crm_error_t *ctl_webhook_redrive(ctl_t *ctl);
crm_error_t *ctl_import(ctl_t *ctl);
crm_error_t *ctl_export(ctl_t *ctl);

#endif /* CRMAPICTL_H */
