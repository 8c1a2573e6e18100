/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl.h: options, commands and a run of the operator's tool */
#ifndef CRMAPICTL_H
#define CRMAPICTL_H

#include "crm_db_conn.h"
#include "crm_error.h"

/* All options. The table of commands says which of them each command takes. */
typedef enum ctl_option_t {
    CTL_DATABASE,
    CTL_JSON,
    CTL_HELP,
    CTL_TIMEOUT,
    CTL_VERSION,
    CTL_WORKSPACE,
    CTL_NAME,
    CTL_AGENT,
    CTL_SLUG,
    CTL_PLAN,
    CTL_API,
    CTL_SEQUENCES,
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
    CTL_NO_ORIGINAL,
    CTL_HOURLY,
    CTL_AUTHSERV_ID,
    CTL_YES,
    CTL_PASSWORD_FILE,
    CTL_LOCK_WAIT,
    CTL_ALL,
    CTL_READ_LIMIT,
    CTL_WRITE_LIMIT,
    CTL_EXPIRES,
    CTL_ADDRESS,
    CTL_KEEP_DAYS,
    CTL_OUTPUT,
    CTL_AS,
    CTL_SINCE,
    CTL_SKIP_DUE_BEFORE,
    CTL_CURRENCY,
    CTL_TIME_ZONE,
    CTL_DRY_RUN,
    CTL_SENDER_DOMAINS,
    CTL_OVERLAP,
    CTL_OBJECT,
    CTL_FROM,
    CTL_TO,
    CTL_RETENTION_CONVERSATIONS,
    CTL_RETENTION_SUBMISSIONS,
    CTL_RETENTION_EVENTS,
    CTL_CREATE,
    CTL_PRUNE,
    CTL_MOVE_TO,
    CTL_SET,
    CTL_SET_FILE,
    CTL_PRINT_SCHEMA,
    CTL_OPTIONS
} ctl_option_t;

/* The bit of OPTION in a set of options. */
#define CTL_BIT(option) (APR_UINT64_C(1) << (option))

/* Not an option: it marks commands whose statements have no timeout by default. */
#define CTL_LONG CTL_BIT(63)

/* Not an option: it marks commands that run with any version of the schema. */
#define CTL_ANY_SCHEMA CTL_BIT(62)

/* Not options either, and only in what a command needs. CTL_CHANGES marks one that
 * changes something: it runs in a transaction, with the row of ctl_audit().
 * CTL_RECORDS marks one whose transactions are its own: it calls ctl_audit() in one
 * of these, else the row is written afterwards, unless it sets ctl_t.reads. */
#define CTL_CHANGES CTL_BIT(63)
#define CTL_RECORDS CTL_BIT(62)

/* The properties of an option. */
typedef struct ctl_option_info_t {
    const char *name;           /* without the hyphens */
    const char *value;          /* the name of its value in the help; NULL: it
                                   takes none */
    const char *help;
} ctl_option_info_t;

/* An option of the command line with its value. */
typedef struct ctl_given_t {
    ctl_option_t option;
    const char *value;
} ctl_given_t;

/* A run of the tool. */
typedef struct ctl_t {
    apr_pool_t *pool;
    crm_conn_t *conn;           /* open while a command runs */
    const char *options[CTL_OPTIONS];   /* their values; NULL: not given; "":
                                           given, takes no value. The values
                                           of an option that was repeated are
                                           separated by line feeds */
    apr_array_header_t *given;  /* ctl_given_t: the options that may be
                                   repeated, in their order */
    const char *const *args;    /* the command's operands, then NULLs */
    const char *group;          /* for --help: the first word of several
                                   commands, of which none was named; or NULL */
    int distributed;            /* the database is: crm_schema_t */
    const struct ctl_command_t *command;    /* that runs */
    const char *workspace;      /* that it is done to, for ctl_audit(); or NULL */
    const char *object;         /* and its row there, if no operand names it */
    int audited;                /* ctl_audit() was called */
    int reads;                  /* nothing was changed */
    int code;                   /* the exit code; 0: it depends on the error */
} ctl_t;

/* A command. The table of commands is the source of parsing, help and messages.
 * t/93-docs.t compares the manual page with it. */
typedef struct ctl_command_t {
    const char *group;          /* first word: "workspace", "migrate" */
    const char *verb;           /* second word, or NULL */
    const char *operand;        /* the operand's name, or NULL; two are
                                   separated by a space. "FILE...": any
                                   number */
    int operand_needed;
    apr_uint64_t needs;         /* required options: CTL_BIT() of each */
    apr_uint64_t takes;         /* further options. Every command takes those
                                   up to CTL_VERSION */
    const char *help;           /* "create a workspace and print its id" */
    crm_error_t *(*run)(ctl_t *ctl);
} ctl_command_t;

/* The tables of options and of commands; the latter ends with a command without
 * a group. */
extern const ctl_option_info_t ctl_options[CTL_OPTIONS];
extern const ctl_command_t ctl_commands[];

/* Return an error with a message made from FORMAT. The exit code is 1. */
crm_error_t *ctl_fault(ctl_t *ctl, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same for an invalid command line. The exit code is 2. */
crm_error_t *ctl_misuse(ctl_t *ctl, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Run SQL, in the form of the database (CRM_SQL_EITHER), with COUNT VALUES. Set
 * *RESULT_P to its rows, or to NULL if that form has no statement. */
crm_error_t *ctl_query(PGresult **result_p, ctl_t *ctl, const char *sql,
                       int count, const char *const *values);

/* Run the statements SQL, which return nothing, unless the form of the database
 * has none. */
crm_error_t *ctl_exec(ctl_t *ctl, const char *sql);

/* Begin a transaction, of a command with CTL_RECORDS: one with CTL_CHANGES runs in
 * one. */
crm_error_t *ctl_begin(ctl_t *ctl);

/* End it: commit, or roll back if there is an ERROR. Return ERROR, or that of the
 * commit. */
crm_error_t *ctl_end(ctl_t *ctl, crm_error_t *error);

/* Return the folder of the migrations, from the options, the environment or the
 * build. */
const char *ctl_schema_dir(const ctl_t *ctl);

/* Run SQL, an INSERT of a key or token, as ctl_query() does, in a transaction.
 * VALUES[1] is its workspace, VALUES[3] its hash, which leads to the workspace in a
 * distributed database. */
crm_error_t *ctl_keep_key(PGresult **result_p, ctl_t *ctl, const char *sql,
                          int count, const char *const *values);

#endif /* CRMAPICTL_H */
