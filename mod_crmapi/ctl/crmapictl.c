/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl.c: the operator's tool: tables of options and commands,
 * and what the commands share */
#include "crmapictl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apr_strings.h"

#include "crm_db_conn.h"
#include "crm_sql_print.h"
#include "crmapictl_apply.h"
#include "crmapictl_attachment.h"
#include "crmapictl_audit.h"
#include "crmapictl_data.h"
#include "crmapictl_database.h"
#include "crmapictl_deliver.h"
#include "crmapictl_distribute.h"
#include "crmapictl_dump.h"
#include "crmapictl_hold.h"
#include "crmapictl_httpd.h"
#include "crmapictl_init.h"
#include "crmapictl_intake.h"
#include "crmapictl_job.h"
#include "crmapictl_key.h"
#include "crmapictl_link.h"
#include "crmapictl_person.h"
#include "crmapictl_plan.h"
#include "crmapictl_restore.h"
#include "crmapictl_role.h"
#include "crmapictl_sequence.h"
#include "crmapictl_show.h"
#include "crmapictl_usage.h"
#include "crmapictl_webhook.h"
#include "crmapictl_workspace.h"

#ifndef CRM_SCHEMA_DIR
#define CRM_SCHEMA_DIR "schema"
#endif

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
#define NO_ORIGINAL CTL_BIT(CTL_NO_ORIGINAL)
#define HOURLY CTL_BIT(CTL_HOURLY)
#define AUTHSERV_ID CTL_BIT(CTL_AUTHSERV_ID)
#define YES CTL_BIT(CTL_YES)
#define PASSWORD_FILE CTL_BIT(CTL_PASSWORD_FILE)
#define LOCK_WAIT CTL_BIT(CTL_LOCK_WAIT)
#define ALL CTL_BIT(CTL_ALL)
#define SKIP CTL_BIT(CTL_SKIP_DUE_BEFORE)
#define PERMITS (CTL_BIT(CTL_API) | CTL_BIT(CTL_SEQUENCES))
#define LIMITS (CTL_BIT(CTL_READ_LIMIT) | CTL_BIT(CTL_WRITE_LIMIT))
#define RETENTION (CTL_BIT(CTL_RETENTION_CONVERSATIONS) \
    | CTL_BIT(CTL_RETENTION_SUBMISSIONS) | CTL_BIT(CTL_RETENTION_EVENTS))
#define TERMS (LIMITS | CTL_BIT(CTL_EXPIRES) | CTL_BIT(CTL_ADDRESS))

const ctl_option_info_t ctl_options[CTL_OPTIONS] = {
    [CTL_DATABASE] = {"database", "CONNINFO",
        "connection string or URI of libpq; default $CRMAPI_DATABASE"},
    [CTL_JSON] = {"json", NULL, "print JSON"},
    [CTL_HELP] = {"help", NULL, "print this help and exit"},
    [CTL_TIMEOUT] = {"timeout", "SECONDS",
        "statement timeout; 0: none; default 60, and 0 for what may take long"},
    [CTL_VERSION] = {"version", NULL, "print the version and exit"},
    [CTL_WORKSPACE] = {"workspace", "W", "workspace: id or slug"},
    [CTL_NAME] = {"name", "N", "name, at most 1,000 characters"},
    [CTL_AGENT] = {"agent", "N", "name of the agent"},
    [CTL_SLUG] = {"slug", "S",
        "unique short name: a-z, 0-9 and -; default: made from the name, or the"
        " one in the dump"},
    [CTL_PLAN] = {"plan", "P",
        "free, starter, standard (the default), pro, enterprise, or one of"
        " plan create"},
    [CTL_API] = {"api", "SWITCH", "on or off: whether keys may use the API"},
    [CTL_SEQUENCES] = {"sequences", "SWITCH",
        "on or off: whether keys that may use the API may use sequences"},
    [CTL_ID] = {"id", "UUID", "id of the workspace; default: a new one"},
    [CTL_SCOPES] = {"scopes", "SCOPES",
        "read, or read,write; write implies read"},
    [CTL_KEY_PREFIX] = {"key-prefix", "PREFIX",
        "prefix of the key; default svc_live_"},
    [CTL_SCHEMA] = {"schema", "DIR",
        "folder of the migrations; default $CRMAPI_SCHEMA_DIR, or the one that"
        " was installed"},
    [CTL_EMAIL] = {"email", "E", "e-mail address"},
    [CTL_PHONE] = {"phone", "P", "phone number, for example +4930123456"},
    [CTL_REASON] = {"reason", "R", "reason, at most 1,000 characters"},
    [CTL_CONTACT] = {"contact", "ID", "id of the contact"},
    [CTL_URL] = {"url", "U",
        "URL that events are posted to: http:// or https://"},
    [CTL_EVENTS] = {"events", "EVENTS",
        "webhook: types of events, separated by commas; workspace: on or off"},
    [CTL_STATUS] = {"status", "STATUS", "show only rows with this status"},
    [CTL_ORIGINS] = {"origins", "LIST",
        "allowed origins: https://www.example.com,..., or *; empty: only the"
        " server's own"},
    [CTL_RECIPIENT] = {"recipient", "ADDRESS",
        "recipient of the mail; may be repeated; default: from its headers"},
    [CTL_SENDER] = {"sender", "ADDRESS",
        "envelope sender, may be empty; default: Return-Path"},
    [CTL_MAX_MESSAGE] = {"max-message", "BYTES",
        "maximum size of the mail; default 26214400"},
    [CTL_ATTACHMENT_BYTES] = {"attachment-bytes", "BYTES",
        "maximum size of a stored attachment; default 10485760"},
    [CTL_NO_ORIGINAL] = {"no-original", NULL,
        "do not keep the mail as it came, and its HTML"},
    [CTL_HOURLY] = {"hourly", "COUNT",
        "mails per hour and sender that count as replies; default 30"},
    [CTL_AUTHSERV_ID] = {"authserv-id", "ID",
        "trusted host for Authentication-Results; may be repeated"},
    [CTL_YES] = {"yes", NULL, "confirm the deletion"},
    [CTL_PASSWORD_FILE] = {"password-file", "FILE",
        "file whose first line is the password; default: it is not changed"},
    [CTL_LOCK_WAIT] = {"lock-wait", "SECONDS",
        "how long to retry a step that does not get its locks; default 600"},
    [CTL_ALL] = {"all", NULL,
        "hold: the whole database; release: also each workspace that is held"
        " itself"},
    [CTL_READ_LIMIT] = {"read-limit", "N",
        "GET and HEAD requests per minute, or default: the workspace's or the"
        " virtual host's"},
    [CTL_WRITE_LIMIT] = {"write-limit", "N",
        "other requests per minute, or default: the workspace's or the virtual"
        " host's"},
    [CTL_EXPIRES] = {"expires", "TIME",
        "when the key expires: 2027-01-31T12:00:00Z, or never"},
    [CTL_ADDRESS] = {"address", "LIST",
        "networks from which the key may be used: 203.0.113.0/24,..., or any"},
    [CTL_KEEP_DAYS] = {"keep-days", "DAYS",
        "how long links signed with the old key stay valid; default: until"
        " link-key drop"},
    [CTL_OUTPUT] = {"output", "FILE",
        "file to write, readable by its owner only; default: stdout"},
    [CTL_AS] = {"as", "UUID",
        "restore under this id, or \"new\" for a new one, without keys"},
    [CTL_SINCE] = {"since", "MARK",
        "only what has changed since the dump with this mark"},
    [CTL_SKIP_DUE_BEFORE] = {"skip-due-before", "TIME",
        "skip the steps that were due before: 2027-01-31T12:00:00Z"},
    [CTL_CURRENCY] = {"currency", "CODE",
        "currency of amounts: three letters (ISO 4217), or none"},
    [CTL_TIME_ZONE] = {"time-zone", "ZONE",
        "time zone, such as Europe/Berlin"},
    [CTL_OVERLAP] = {"overlap", "TIME",
        "how long the old key stays valid: 24h (default), 45m, 7d"},
    [CTL_OBJECT] = {"object", "NAMES",
        "only these objects, separated by commas: agent,form"},
    [CTL_SENDER_DOMAINS] = {"sender-domains", "LIST",
        "domains that mails may be from, separated by commas, or none"},
    [CTL_RETENTION_CONVERSATIONS] = {"retention-conversations", "DAYS",
        "delete conversations with messages and attachments after DAYS without"
        " activity, or never"},
    [CTL_RETENTION_SUBMISSIONS] = {"retention-submissions", "DAYS",
        "delete submissions of forms after DAYS, or never"},
    [CTL_RETENTION_EVENTS] = {"retention-events", "DAYS",
        "delete events after DAYS, or never: when crmapid's keep_deliveries is"
        " over"},
    [CTL_FROM] = {"from", "TIME", "from this time on: 2027-01-31"},
    [CTL_TO] = {"to", "TIME", "up to this time: 2027-01-31T12:00:00Z"},
    [CTL_DRY_RUN] = {"dry-run", NULL, "change nothing; print what would be"},
    [CTL_CREATE] = {"create", NULL, "make the workspace if there is none"},
    [CTL_PRUNE] = {"prune", NULL, "delete what the files do not name"},
    [CTL_MOVE_TO] = {"move-to", "ID",
        "prune: what a deleted object still owns gets this agent, stage, form or"
        " template instead; may be repeated"},
    [CTL_SET] = {"set", "NAME=VALUE",
        "value of ${NAME} in the files; may be repeated"},
    [CTL_SET_FILE] = {"set-file", "FILE",
        "file with a line NAME=VALUE for each variable; NAME=FILE: file whose"
        " text is the value; may be repeated"},
    [CTL_PRINT_SCHEMA] = {"schema", NULL,
        "print the JSON Schema of documents, and do nothing else"},
};

const ctl_command_t ctl_commands[] = {
    {"migrate", NULL, NULL, 0, CTL_RECORDS, SCHEMA | LOCK_WAIT | CTL_LONG
     | CTL_ANY_SCHEMA,
     "apply the missing migrations", ctl_migrate},
    {"init", NULL, NULL, 0, NAME | CTL_BIT(CTL_AGENT) | CTL_CHANGES,
     SLUG | PLAN | KEY_PREFIX,
     "make a workspace, an agent and a key, and print them as lines for a shell:"
     " W=, AGENT=, KEY=",
     ctl_init},
    {"distribute", NULL, NULL, 0, CTL_RECORDS, SCHEMA | CTL_LONG,
     "distribute the workspaces over the servers of Citus, for good",
     ctl_distribute},
    {"status", NULL, NULL, 0, 0, CTL_ANY_SCHEMA,
     "print versions, live workers, jobs and sizes",
     ctl_status},
    {"role", "create", "api|worker NAME", 1, CTL_RECORDS, PASSWORD_FILE,
     "make the login NAME for httpd (api) or crmapid (worker), or repair its"
     " rights and settings",
     ctl_role_create},
    {"httpd-conf", NULL, "LOGIN", 0, 0, 0,
     "print the configuration of httpd for this database, with the login LOGIN"
     " of role create api",
     ctl_httpd_conf},
    {"hold", NULL, NULL, 0, ALL | CTL_CHANGES, REASON,
     "hold the database: no step, webhook or mail is sent until release",
     ctl_hold},
    {"release", NULL, NULL, 0, CTL_CHANGES, ALL | SKIP | CTL_LONG,
     "end a hold of the database: what is due is sent", ctl_release},
    {"worker", "list", NULL, 0, 0, 0,
     "print the worker daemons and their last heartbeats",
     ctl_worker_list},
    {"plan", "create", NULL, 0, NAME | PERMITS | CTL_CHANGES, 0,
     "create a plan",
     ctl_plan_create},
    {"plan", "list", NULL, 0, 0, 0, "print the plans and what they permit",
     ctl_plan_list},
    {"plan", "set", "PLAN", 1, CTL_CHANGES, PERMITS,
     "change what a plan permits, with immediate effect on its workspaces",
     ctl_plan_set},
    {"workspace", "create", NULL, 0, NAME | CTL_CHANGES, SLUG | PLAN | ID,
     "create a workspace and print its id", ctl_workspace_create},
    {"workspace", "list", NULL, 0, 0, 0,
     "print all workspaces", ctl_workspace_list},
    {"workspace", "show", "W", 1, 0, 0,
     "print one workspace", ctl_workspace_show},
    {"workspace", "set", "W", 1, CTL_RECORDS, NAME | PLAN | EVENTS | LIMITS
     | CTL_BIT(CTL_CURRENCY) | CTL_BIT(CTL_TIME_ZONE)
     | CTL_BIT(CTL_SENDER_DOMAINS) | RETENTION,
     "change a workspace's name, plan, limits, currency, time zone, sender"
     " domains or retention, or turn GET /events on or off",
     ctl_workspace_set},
    {"workspace", "hold", "W", 1, CTL_RECORDS, REASON | CTL_BIT(CTL_API),
     "hold a workspace: no step, webhook or mail is sent until release; with"
     " --api off its API answers 503, too",
     ctl_workspace_hold},
    {"workspace", "release", "W", 1, CTL_CHANGES, SKIP | CTL_LONG,
     "end a hold of a workspace: what is due is sent",
     ctl_workspace_release},
    {"workspace", "delete", "W", 1, YES | CTL_CHANGES, CTL_LONG,
     "delete a workspace and all its data permanently",
     ctl_workspace_delete},
    {"workspace", "dump", "W", 1, CTL_RECORDS, CTL_BIT(CTL_OUTPUT)
     | CTL_BIT(CTL_SINCE) | CTL_BIT(CTL_API) | CTL_LONG,
     "write all data of a workspace, with its secrets, to FILE or stdout; or"
     " what has changed since another dump; with --api off close its API before",
     ctl_workspace_dump},
    {"workspace", "restore", "FILE", 0, CTL_RECORDS,
     CTL_BIT(CTL_AS) | SLUG | CTL_LONG,
     "make a workspace from a dump in FILE or stdin, and hold it until release;"
     " or bring such a one up to date",
     ctl_workspace_restore},
    {"workspace", "retention", "W", 1, 0, RETENTION | CTL_LONG,
     "print how much would be deleted now by the workspace's retention, or by"
     " this one",
     ctl_workspace_retention},
    {"key", "create", NULL, 0, WORKSPACE | NAME | SCOPES | CTL_CHANGES,
     KEY_PREFIX | TERMS,
     "create an API key and print it; it cannot be shown again",
     ctl_key_create},
    {"key", "import", NULL, 0, WORKSPACE | NAME | SCOPES | CTL_CHANGES,
     KEY_PREFIX | TERMS,
     "add an existing API key, read from stdin, and print its id",
     ctl_key_import},
    {"key", "list", NULL, 0, WORKSPACE, 0,
     "print a workspace's API keys", ctl_key_list},
    {"key", "set", "KEY_ID", 1, CTL_CHANGES, WORKSPACE | TERMS,
     "change the limits, the expiry or the networks of an API key",
     ctl_key_set},
    {"key", "rotate", "KEY_ID", 1, CTL_CHANGES,
     WORKSPACE | KEY_PREFIX | CTL_BIT(CTL_OVERLAP),
     "create a key with the same rights and print it; end the old one later",
     ctl_key_rotate},
    {"key", "revoke", "KEY_ID", 1, CTL_CHANGES, WORKSPACE,
     "revoke an API key permanently, with immediate effect", ctl_key_revoke},
    {"link-key", "rotate", "W", 1, CTL_CHANGES, CTL_BIT(CTL_KEEP_DAYS),
     "sign new links of a workspace with a new key; links in mails already"
     " sent stay valid",
     ctl_link_key_rotate},
    {"link-key", "drop", "W", 1, CTL_CHANGES, 0,
     "delete the old key: links signed with it are no longer valid",
     ctl_link_key_drop},
    {"intake", "create", NULL, 0, WORKSPACE | NAME | CTL_CHANGES, 0,
     "create an intake token and print it; it cannot be shown again",
     ctl_intake_create},
    {"intake", "list", NULL, 0, WORKSPACE, 0,
     "print a workspace's intake tokens", ctl_intake_list},
    {"intake", "revoke", "TOKEN_ID", 1, CTL_CHANGES, WORKSPACE,
     "revoke an intake token permanently, with immediate effect",
     ctl_intake_revoke},
    {"attachment", "list", "MESSAGE_ID", 1, 0, WORKSPACE,
     "print the attachments of a message", ctl_attachment_list},
    {"attachment", "get", "MESSAGE_ID/NUMBER", 1, 0, WORKSPACE,
     "write an attachment to stdout", ctl_attachment_get},
    {"agent", "list", NULL, 0, WORKSPACE, 0,
     "print a workspace's agents", ctl_agent_list},
    {"agent", "origins", "AGENT_ID", 1, CTL_RECORDS, WORKSPACE | ORIGINS,
     "print or set the origins of pages that may use an agent's chat",
     ctl_agent_origins},
    {"deliver", NULL, NULL, 0, 0, WORKSPACE | RECIPIENT | SENDER | MAX_MESSAGE
     | ATTACHMENT_BYTES | NO_ORIGINAL | HOURLY | AUTHSERV_ID,
     "deliver the mail on stdin; the exit code is one of sysexits.h",
     ctl_deliver},
    {"admin", "add", NULL, 0, WORKSPACE | EMAIL | CTL_CHANGES, NAME,
     "add an admin who reviews sequences", ctl_admin_add},
    {"admin", "list", NULL, 0, WORKSPACE, 0,
     "print the admins of a workspace", ctl_admin_list},
    {"admin", "remove", NULL, 0, WORKSPACE | EMAIL | CTL_CHANGES, 0,
     "remove an admin", ctl_admin_remove},
    {"enrollment", "list", NULL, 0, WORKSPACE, STATUS,
     "print a workspace's enrollments, newest first, at most 100",
     ctl_enrollment_list},
    {"enrollment", "show", "ID", 1, 0, WORKSPACE,
     "print an enrollment's steps, with the attempts to send them",
     ctl_enrollment_show},
    {"enrollment", "approve", "ID", 1, CTL_CHANGES, WORKSPACE,
     "approve an enrollment that awaits approval", ctl_enrollment_approve},
    {"enrollment", "reject", "ID", 1, CTL_CHANGES, WORKSPACE,
     "reject an enrollment that awaits approval", ctl_enrollment_reject},
    {"enrollment", "stop", "ID", 1, CTL_CHANGES, WORKSPACE,
     "stop an enrollment: nothing more is sent", ctl_enrollment_stop},
    {"contact", "export", "ID", 0, WORKSPACE, EMAIL | PHONE | CTL_LONG,
     "print all that is kept about a person, with attachments, as JSON Lines",
     ctl_contact_export},
    {"contact", "erase", "ID", 0, WORKSPACE | CTL_RECORDS,
     EMAIL | PHONE | CTL_BIT(CTL_DRY_RUN) | CTL_LONG,
     "delete all that is kept about a person, permanently",
     ctl_contact_erase},
    {"erasure", "list", NULL, 0, 0, CTL_LONG,
     "print the journal of erasures as JSON Lines", ctl_erasure_list},
    {"erasure", "add", "FILE", 0, CTL_CHANGES, CTL_LONG,
     "add a journal of erasures, which restore and release apply",
     ctl_erasure_add},
    {"audit", "list", NULL, 0, 0,
     WORKSPACE | CTL_BIT(CTL_FROM) | CTL_BIT(CTL_TO),
     "print who changed what by crmapictl, a page of review or an erasure,"
     " newest first", ctl_audit_list},
    {"usage", NULL, "W", 1, 0, CTL_BIT(CTL_FROM) | CTL_BIT(CTL_TO),
     "print what a workspace has used, by day: requests, messages, webhooks,"
     " bytes", ctl_usage},
    {"suppress", "add", NULL, 0, WORKSPACE | CTL_CHANGES,
     EMAIL | PHONE | REASON,
     "suppress an address and stop its enrollments",
     ctl_suppress_add},
    {"suppress", "remove", NULL, 0, WORKSPACE | CTL_CHANGES, EMAIL | PHONE,
     "remove an address from the suppression list", ctl_suppress_remove},
    {"suppress", "list", NULL, 0, WORKSPACE, 0,
     "print the suppressed addresses", ctl_suppress_list},
    {"reply", NULL, NULL, 0, WORKSPACE | CONTACT | CTL_CHANGES, 0,
     "record a reply of a contact and stop its enrollments that stop on"
     " replies",
     ctl_reply},
    {"webhook", "add", NULL, 0, WORKSPACE | URL | EVENTS | CTL_CHANGES, 0,
     "add a webhook endpoint and print its id and secret; the secret cannot"
     " be shown again",
     ctl_webhook_add},
    {"webhook", "list", NULL, 0, WORKSPACE, 0,
     "print a workspace's webhook endpoints", ctl_webhook_list},
    {"webhook", "remove", "ID", 1, CTL_CHANGES, WORKSPACE,
     "remove an endpoint and its deliveries", ctl_webhook_remove},
    {"webhook", "rotate", "ID", 1, CTL_CHANGES, WORKSPACE,
     "give an endpoint a new secret; the old one stays valid for 24 hours",
     ctl_webhook_rotate},
    {"webhook", "enable", "ID", 1, CTL_CHANGES, WORKSPACE,
     "enable an endpoint that was disabled",
     ctl_webhook_enable},
    {"webhook", "disable", "ID", 1, CTL_CHANGES, WORKSPACE | REASON,
     "disable an endpoint: it gets no events until webhook enable",
     ctl_webhook_disable},
    {"webhook", "test", "ID", 1, CTL_CHANGES, WORKSPACE,
     "have crmapid send a test event to an endpoint; prints its delivery",
     ctl_webhook_test},
    {"webhook", "deliveries", NULL, 0, WORKSPACE, STATUS,
     "print deliveries with their last attempts, newest first, at most 100",
     ctl_webhook_deliveries},
    {"webhook", "redrive", "ID", 1, CTL_CHANGES, WORKSPACE,
     "redeliver a delivery, or those of an endpoint that failed or will be retried",
     ctl_webhook_redrive},
    {"job", "list", NULL, 0, 0, WORKSPACE | STATUS,
     "print jobs of the worker, by default dead ones, at most 100",
     ctl_job_list},
    {"job", "retry", "ID", 1, CTL_CHANGES, WORKSPACE,
     "retry a dead job", ctl_job_retry},
    {"import", NULL, "FILE", 0, WORKSPACE | CTL_RECORDS, CTL_LONG,
     "import JSON Lines from FILE or stdin, all or nothing", ctl_import},
    {"apply", NULL, "FILE...", 0, CTL_RECORDS, WORKSPACE | CTL_BIT(CTL_CREATE)
     | CTL_BIT(CTL_DRY_RUN) | CTL_BIT(CTL_PRUNE) | CTL_BIT(CTL_MOVE_TO)
     | CTL_BIT(CTL_SET) | CTL_BIT(CTL_SET_FILE) | CTL_BIT(CTL_PRINT_SCHEMA)
     | CTL_LONG,
     "make a workspace as documents say; print what changes, and new secrets",
     ctl_apply},
    {"show", NULL, "W", 1, 0, 0,
     "print the document that makes a workspace, for apply", ctl_show},
    {"export", NULL, NULL, 0, WORKSPACE, CTL_BIT(CTL_OBJECT) | CTL_LONG,
     "export a workspace as JSON Lines", ctl_export},
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

crm_error_t *ctl_query(PGresult **result_p, ctl_t *ctl, const char *sql,
                       int count, const char *const *values)
{
    crm_stmt_t stmt = {crm_sql_form(sql, ctl->distributed, ctl->pool), count,
                       values};

    *result_p = NULL;
    return *stmt.sql ? crm_db_query(result_p, ctl->conn, &stmt, ctl->pool)
           : NULL;
}

crm_error_t *ctl_exec(ctl_t *ctl, const char *sql)
{
    const char *form = crm_sql_form(sql, ctl->distributed, ctl->pool);

    return *form ? crm_db_exec(ctl->conn, form, ctl->pool) : NULL;
}

crm_error_t *ctl_begin(ctl_t *ctl)
{
    return crm_db_exec(ctl->conn, "BEGIN", ctl->pool);
}

crm_error_t *ctl_end(ctl_t *ctl, crm_error_t *error)
{
    if (!error && fflush(stdout)) {     /* a key cannot be shown again */
        error = ctl_fault(ctl, "cannot write: %s", strerror(errno));
    }
    if (error) {
        crm_db_exec(ctl->conn, "ROLLBACK", ctl->pool);
        return error;
    }
    return crm_db_exec(ctl->conn, "COMMIT", ctl->pool);
}

const char *ctl_schema_dir(const ctl_t *ctl)
{
    const char *dir = ctl->options[CTL_SCHEMA];

    if (!dir) {
        dir = getenv("CRMAPI_SCHEMA_DIR");
    }
    return dir ? dir : CRM_SCHEMA_DIR;
}

crm_error_t *ctl_keep_key(PGresult **result_p, ctl_t *ctl, const char *sql,
                          int count, const char *const *values)
{
    const char *home[2] = {values[3], values[1]};

    CRM_ERR(ctl_query(result_p, ctl, CRM_SQL_CITUS "INSERT INTO crmapi.key_home"
                      " VALUES ($1::bytea, $2::uuid)", 2, home));
    return ctl_query(result_p, ctl, sql, count, values);
}
