/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl.c: the operator's tool: its commands, and running one */
#include "crmapictl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apr_general.h"
#include "apr_strings.h"

#include "crm_resources.h"
#include "crm_endpoint.h"

#ifndef CRM_VERSION
#define CRM_VERSION "unknown"
#endif

/* How long a statement may take, in seconds: less than mail systems wait for
 * "deliver", and at most. */
#define TIMEOUT_DEFAULT 60
#define TIMEOUT_MAX 86400

#define WORKSPACE CTL_BIT(CTL_WORKSPACE)
#define NAME CTL_BIT(CTL_NAME)
#define SLUG CTL_BIT(CTL_SLUG)
#define PLAN CTL_BIT(CTL_PLAN)
#define ID CTL_BIT(CTL_ID)
#define SCOPES CTL_BIT(CTL_SCOPES)
#define KEY_PREFIX CTL_BIT(CTL_KEY_PREFIX)
#define SCHEMA CTL_BIT(CTL_SCHEMA)
#define EMAIL CTL_BIT(CTL_EMAIL)
#define PHONE CTL_BIT(CTL_PHONE)
#define REASON CTL_BIT(CTL_REASON)
#define CONTACT CTL_BIT(CTL_CONTACT)
#define URL CTL_BIT(CTL_URL)
#define EVENTS CTL_BIT(CTL_EVENTS)
#define STATUS CTL_BIT(CTL_STATUS)
#define ORIGINS CTL_BIT(CTL_ORIGINS)
#define RECIPIENT CTL_BIT(CTL_RECIPIENT)
#define SENDER CTL_BIT(CTL_SENDER)
#define MAX_MESSAGE CTL_BIT(CTL_MAX_MESSAGE)
#define ATTACHMENT_BYTES CTL_BIT(CTL_ATTACHMENT_BYTES)
#define HOURLY CTL_BIT(CTL_HOURLY)
#define AUTHSERV_ID CTL_BIT(CTL_AUTHSERV_ID)
#define YES CTL_BIT(CTL_YES)

const ctl_option_info_t ctl_options[CTL_OPTIONS] = {
    [CTL_DATABASE] = {"database", "CONNINFO",
        "the database, as libpq wants it; default $CRMAPI_DATABASE"},
    [CTL_JSON] = {"json", NULL, "print JSON"},
    [CTL_HELP] = {"help", NULL, "print this and end"},
    [CTL_TIMEOUT] = {"timeout", "SECONDS",
        "cancel a statement after this time; 0: never; default 60, and 0 for"
        " migrate, import, export, workspace delete"},
    [CTL_VERSION] = {"version", NULL, "print the version and end"},
    [CTL_WORKSPACE] = {"workspace", "W", "the workspace, by id or slug"},
    [CTL_NAME] = {"name", "N", "a name, at most 1,000 characters"},
    [CTL_SLUG] = {"slug", "S",
        "a short name of a-z, 0-9 and -; default made from the name"},
    [CTL_PLAN] = {"plan", "P",
        "free, starter, standard (the default), pro or enterprise"},
    [CTL_ID] = {"id", "UUID", "the id it shall have; default a new one"},
    [CTL_SCOPES] = {"scopes", "SCOPES",
        "read, or read,write; write implies read"},
    [CTL_KEY_PREFIX] = {"key-prefix", "PREFIX",
        "what the key begins with; default svc_live_"},
    [CTL_SCHEMA] = {"schema", "DIR",
        "the migrations; default $CRMAPI_SCHEMA_DIR or as installed"},
    [CTL_EMAIL] = {"email", "E", "an e-mail address"},
    [CTL_PHONE] = {"phone", "P", "a phone number, such as +4930123456"},
    [CTL_REASON] = {"reason", "R", "why; default \"suppressed\""},
    [CTL_CONTACT] = {"contact", "ID", "the contact's id"},
    [CTL_URL] = {"url", "U", "where events are posted: http:// or https://"},
    [CTL_EVENTS] = {"events", "EVENTS",
        "contact.created, form.submitted, or both with a comma"},
    [CTL_STATUS] = {"status", "STATUS", "only those that are so"},
    [CTL_ORIGINS] = {"origins", "LIST",
        "https://www.example.com,..., or *; empty: none but our own"},
    [CTL_RECIPIENT] = {"recipient", "ADDRESS",
        "whom the mail is for; may be given again; default its headers"},
    [CTL_SENDER] = {"sender", "ADDRESS",
        "the envelope's sender, may be empty; default Return-Path"},
    [CTL_MAX_MESSAGE] = {"max-message", "BYTES",
        "a larger mail is refused; default 26214400"},
    [CTL_ATTACHMENT_BYTES] = {"attachment-bytes", "BYTES",
        "larger attachments are only listed; default 262144"},
    [CTL_HOURLY] = {"hourly", "COUNT",
        "more mails an hour from one sender are automatic; default 30"},
    [CTL_AUTHSERV_ID] = {"authserv-id", "ID",
        "a host whose Authentication-Results count; may be given again"},
    [CTL_YES] = {"yes", NULL, "really do it"},
};

const ctl_command_t ctl_commands[] = {
    {"migrate", NULL, NULL, 0, 0, SCHEMA | CTL_LONG,
     "bring the database to this version's schema", ctl_migrate},
    {"status", NULL, NULL, 0, 0, 0,
     "tell the schema's version, whether workers live, queues and sizes",
     ctl_status},
    {"worker", "list", NULL, 0, 0, 0,
     "print the worker daemons and when each was last heard of",
     ctl_worker_list},
    {"workspace", "create", NULL, 0, NAME, SLUG | PLAN | ID,
     "make a workspace and print its id", ctl_workspace_create},
    {"workspace", "list", NULL, 0, 0, 0,
     "print all workspaces", ctl_workspace_list},
    {"workspace", "show", "W", 1, 0, 0,
     "print one workspace", ctl_workspace_show},
    {"workspace", "set", "W", 1, 0, NAME | PLAN,
     "change a workspace's name or plan", ctl_workspace_set},
    {"workspace", "delete", "W", 1, YES, CTL_LONG,
     "delete a workspace and all that is in it, for good",
     ctl_workspace_delete},
    {"key", "create", NULL, 0, WORKSPACE | NAME | SCOPES, KEY_PREFIX,
     "make an API key and print it, this once", ctl_key_create},
    {"key", "import", NULL, 0, WORKSPACE | NAME | SCOPES, KEY_PREFIX,
     "take over the API key on stdin and print its id", ctl_key_import},
    {"key", "list", NULL, 0, WORKSPACE, 0,
     "print a workspace's API keys", ctl_key_list},
    {"key", "revoke", "KEY_ID", 1, 0, WORKSPACE,
     "end an API key, at once and for good", ctl_key_revoke},
    {"intake", "create", NULL, 0, WORKSPACE | NAME, 0,
     "make an intake token and print it, this once", ctl_intake_create},
    {"intake", "list", NULL, 0, WORKSPACE, 0,
     "print a workspace's intake tokens", ctl_intake_list},
    {"intake", "revoke", "TOKEN_ID", 1, 0, WORKSPACE,
     "end an intake token, at once and for good", ctl_intake_revoke},
    {"attachment", "list", "MESSAGE_ID", 1, 0, WORKSPACE,
     "print what came with a message", ctl_attachment_list},
    {"attachment", "get", "MESSAGE_ID/NUMBER", 1, 0, WORKSPACE,
     "write the bytes of one to stdout", ctl_attachment_get},
    {"agent", "origins", "AGENT_ID", 1, 0, WORKSPACE | ORIGINS,
     "print, or set, the origins from which an agent's chat may be used",
     ctl_agent_origins},
    {"deliver", NULL, NULL, 0, 0, WORKSPACE | RECIPIENT | SENDER | MAX_MESSAGE
     | ATTACHMENT_BYTES | HOURLY | AUTHSERV_ID,
     "take the mail on stdin, and end as sysexits.h has it", ctl_deliver},
    {"admin", "add", NULL, 0, WORKSPACE | EMAIL, NAME,
     "have somebody asked to review sequences", ctl_admin_add},
    {"admin", "list", NULL, 0, WORKSPACE, 0,
     "print who is asked", ctl_admin_list},
    {"admin", "remove", NULL, 0, WORKSPACE | EMAIL, 0,
     "have somebody no longer asked", ctl_admin_remove},
    {"enrollment", "list", NULL, 0, WORKSPACE, STATUS,
     "print a workspace's enrollments, newest first, at most 100",
     ctl_enrollment_list},
    {"enrollment", "approve", "ID", 1, 0, WORKSPACE,
     "approve one that waits for it", ctl_enrollment_approve},
    {"enrollment", "reject", "ID", 1, 0, WORKSPACE,
     "reject one that waits for approval", ctl_enrollment_reject},
    {"enrollment", "stop", "ID", 1, 0, WORKSPACE,
     "stop one: nothing more is sent", ctl_enrollment_stop},
    {"suppress", "add", NULL, 0, WORKSPACE, EMAIL | PHONE | REASON,
     "never write to an address again; what runs for it stops",
     ctl_suppress_add},
    {"suppress", "remove", NULL, 0, WORKSPACE, EMAIL | PHONE,
     "let an address be written to again", ctl_suppress_remove},
    {"suppress", "list", NULL, 0, WORKSPACE, 0,
     "print the addresses that are never written to", ctl_suppress_list},
    {"reply", NULL, NULL, 0, WORKSPACE | CONTACT, 0,
     "tell that a contact has replied; what stops on replies stops",
     ctl_reply},
    {"webhook", "add", NULL, 0, WORKSPACE | URL | EVENTS, 0,
     "have events posted to a URL; prints its id and its secret, this once",
     ctl_webhook_add},
    {"webhook", "list", NULL, 0, WORKSPACE, 0,
     "print a workspace's webhook endpoints", ctl_webhook_list},
    {"webhook", "remove", "ID", 1, 0, WORKSPACE,
     "remove an endpoint with all its deliveries", ctl_webhook_remove},
    {"webhook", "rotate", "ID", 1, 0, WORKSPACE,
     "give an endpoint a new secret; the old one signs too for 24 hours",
     ctl_webhook_rotate},
    {"webhook", "enable", "ID", 1, 0, WORKSPACE,
     "let an endpoint that was disabled get events again",
     ctl_webhook_enable},
    {"webhook", "deliveries", NULL, 0, WORKSPACE, STATUS,
     "print deliveries, the newest first, with their last attempt",
     ctl_webhook_deliveries},
    {"webhook", "redrive", "ID", 1, 0, WORKSPACE,
     "send a delivery again, or all failed ones of an endpoint",
     ctl_webhook_redrive},
    {"job", "list", NULL, 0, 0, WORKSPACE | STATUS,
     "print jobs of the worker (dead ones, unless --status), at most 100",
     ctl_job_list},
    {"job", "retry", "ID", 1, 0, WORKSPACE,
     "have a dead job done once more", ctl_job_retry},
    {"import", NULL, "FILE", 0, WORKSPACE, CTL_LONG,
     "read JSON Lines from FILE or stdin, all or nothing", ctl_import},
    {"export", NULL, NULL, 0, WORKSPACE, CTL_LONG,
     "print all of a workspace as JSON Lines", ctl_export},
    {NULL, NULL, NULL, 0, 0, 0, NULL, NULL}
};

crm_error_t *ctl_misuse(ctl_t *ctl, const char *format, ...)
{
    crm_error_t *error = crm_error_create(CRM_E_BAD_REQUEST, NULL, ctl->pool);
    va_list args;

    va_start(args, format);
    error->message = apr_pvsprintf(ctl->pool, format, args);
    va_end(args);
    return error;
}

crm_error_t *ctl_fault(ctl_t *ctl, const char *format, ...)
{
    crm_error_t *error = crm_error_create(CRM_E_CONFLICT, NULL, ctl->pool);
    va_list args;

    va_start(args, format);
    error->message = apr_pvsprintf(ctl->pool, format, args);
    va_end(args);
    return error;
}

crm_error_t *ctl_query(PGresult **result_p, ctl_t *ctl,
                           const char *sql, int count,
                           const char *const *values)
{
    crm_stmt_t stmt = {sql, count, values};

    return crm_db_query(result_p, ctl->conn, &stmt, ctl->pool);
}

/* Set *TIMEOUT_P to the time a statement of COMMAND may take. */
static crm_error_t *get_timeout(apr_interval_time_t *timeout_p, ctl_t *ctl,
                                const ctl_command_t *command)
{
    long seconds = command->takes & CTL_LONG ? 0 : TIMEOUT_DEFAULT;

    CRM_ERR(ctl_number(&seconds, ctl, CTL_TIMEOUT, TIMEOUT_MAX));
    *timeout_p = apr_time_from_sec(seconds);
    return NULL;
}

/* Connect to the database that CTL names and run COMMAND. */
static crm_error_t *run_command(ctl_t *ctl, const ctl_command_t *command)
{
    const char *database = ctl->options[CTL_DATABASE];
    apr_interval_time_t timeout;

    if (!database) {
        database = getenv("CRMAPI_DATABASE");
    }
    if (!database || !*database) {
        return ctl_misuse(ctl, "no database: give --database or set"
                             " $CRMAPI_DATABASE");
    }
    CRM_ERR(get_timeout(&timeout, ctl, command));
    CRM_ERR(crm_conn_open(&ctl->conn, database, timeout, ctl->pool,
                          ctl->pool));
    CRM_ERR(crm_endpoint_init(crm_resources, ctl->pool));
    return command->run(ctl);
}

static crm_error_t *run(ctl_t *ctl, int argc, const char *const *argv)
{
    const ctl_command_t *command = NULL;
    crm_error_t *error = ctl_parse(&command, ctl, argc, argv);

    if (error) {
        return error;
    }
    if (ctl->options[CTL_HELP]) {
        fputs(ctl_help(command, ctl->pool), stdout);
    }
    else if (ctl->options[CTL_VERSION]) {
        puts("crmapictl " CRM_VERSION);
    }
    else {
        error = run_command(ctl, command);
        if (command->run == ctl_deliver) {
            ctl->code = ctl_deliver_code(ctl, error);
        }
    }
    if ((fflush(stdout) || ferror(stdout)) && !error) {
        error = ctl_fault(ctl, "cannot write: %s", strerror(errno));
    }
    return error;
}

int main(int argc, const char *const *argv)
{
    crm_error_t *error;
    ctl_t ctl;
    int code = EXIT_SUCCESS;

    apr_initialize();
    atexit(apr_terminate);
    memset(&ctl, 0, sizeof(ctl));
    apr_pool_create(&ctl.pool, NULL);
    error = run(&ctl, argc - 1, argv + 1);
    if (error) {
        /* What the log would have is for whoever runs this. */
        fprintf(stderr, "crmapictl: %s\n",
                ctl_clean(error->log ? error->log : error->message,
                              ctl.pool));
        code = error->code == CRM_E_BAD_REQUEST ? 2 : EXIT_FAILURE;
    }
    if (ctl.code) {
        code = ctl.code;
    }
    apr_pool_destroy(ctl.pool);
    return code;
}
