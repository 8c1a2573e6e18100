/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_main.c: main(): runs the command that the arguments name */
#include "crmapictl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "apr_general.h"
#include "apr_time.h"

#include "crm_process.h"
#include "crm_resources.h"
#include "crm_schema.h"
#include "crm_shape.h"
#include "crmapictl_audit.h"
#include "crmapictl_deliver.h"
#include "crmapictl_options.h"
#include "crmapictl_output.h"

#ifndef CRM_VERSION
#define CRM_VERSION "unknown"
#endif

/* The default and the maximum of --timeout, in seconds. Mail systems wait
 * longer than the default for "deliver". */
#define TIMEOUT_DEFAULT 60
#define TIMEOUT_MAX 86400

/* Set *TIMEOUT_P to the statement timeout of COMMAND. */
static crm_error_t *get_timeout(apr_interval_time_t *timeout_p, ctl_t *ctl,
                                const ctl_command_t *command)
{
    long seconds = command->takes & CTL_LONG ? 0 : TIMEOUT_DEFAULT;

    CRM_ERR(ctl_number(&seconds, ctl, CTL_TIMEOUT, TIMEOUT_MAX));
    *timeout_p = apr_time_from_sec(seconds);
    return NULL;
}

/* Return an error unless this program can run COMMAND with the schema of the
 * database. */
static crm_error_t *check_schema(ctl_t *ctl)
{
    crm_schema_t schema;
    const char *fault;

    CRM_ERR(crm_schema_read(&schema, ctl->conn, ctl->pool));
    fault = crm_schema_fault(&schema, "crmapictl", ctl->pool);
    ctl->distributed = schema.distributed;
    return fault ? crm_error_logf(CRM_E_UNAVAILABLE, ctl->pool, "%s", fault)
                 : NULL;
}

/* Run CTL's command and write its row of crmapi.audit, in one transaction. */
static crm_error_t *run_change(ctl_t *ctl)
{
    crm_error_t *error;

    CRM_ERR(ctl_begin(ctl));
    error = ctl->command->run(ctl);
    return ctl_end(ctl, error ? error : ctl_audit(ctl));
}

/* Run CTL's command, whose transactions are its own. */
static crm_error_t *run_records(ctl_t *ctl)
{
    CRM_ERR(ctl->command->run(ctl));
    return ctl->audited || ctl->reads || ctl->options[CTL_DRY_RUN] ? NULL
           : ctl_audit(ctl);
}

/* Connect to the database and run COMMAND. */
static crm_error_t *run_command(ctl_t *ctl, const ctl_command_t *command)
{
    const char *database = ctl->options[CTL_DATABASE];
    crm_conn_options_t options = {.named_statements = CRM_NAMES_OWN};

    if (!database) {
        database = getenv("CRMAPI_DATABASE");
        ctl->options[CTL_DATABASE] = database;
    }
    if (ctl->options[CTL_PRINT_SCHEMA]) {
        CRM_ERR(crm_shape_init(crm_resources, ctl->pool));
        return command->run(ctl);
    }
    if (!database || !*database) {
        return ctl_misuse(ctl, "no database: give --database or set"
                          " $CRMAPI_DATABASE");
    }
    CRM_ERR(get_timeout(&options.timeout, ctl, command));
    ctl->command = command;
    CRM_ERR(crm_conn_open(&ctl->conn, database, &options, ctl->pool,
                          ctl->pool));
    if (!(command->takes & CTL_ANY_SCHEMA)) {
        CRM_ERR(check_schema(ctl));
    }
    CRM_ERR(crm_shape_init(crm_resources, ctl->pool));
    return command->needs & CTL_CHANGES ? run_change(ctl)
           : command->needs & CTL_RECORDS ? run_records(ctl)
           : command->run(ctl);
}

/* What the process ends with if there is no memory. */
static int without_memory = EXIT_FAILURE;

/* See crm_process_memory(). */
static int no_memory(void)
{
    static const char text[] = "crmapictl: out of memory\n";

    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
    return without_memory;
}

static crm_error_t *run(ctl_t *ctl, int argc, const char *const *argv)
{
    const ctl_command_t *command = NULL;
    crm_error_t *error = ctl_parse(&command, ctl, argc, argv);

    if (error) {
        return error;
    }
    if (ctl->options[CTL_HELP]) {
        fputs(ctl_help(command, ctl->group, ctl->pool), stdout);
    }
    else if (ctl->options[CTL_VERSION]) {
        puts("crmapictl " CRM_VERSION);
    }
    else {
        if (command->run == ctl_deliver) {
            without_memory = EX_TEMPFAIL;
            ctl_deliver_prepare();
        }
        error = run_command(ctl, command);
        if (command->run == ctl_deliver) {
            ctl->code = ctl_deliver_code(ctl, error);
        }
    }
    if ((fflush(stdout) || ferror(stdout)) && !error) {
        error = ctl_fault(ctl, "cannot write: %s", strerror(errno));
        ctl->code = EXIT_FAILURE;
    }
    return error;
}

int main(int argc, const char *const *argv)
{
    crm_error_t *error;
    ctl_t ctl;
    int code = EXIT_SUCCESS;

    crm_process_files();
    crm_process_seal();         /* if that fails, it is as any other program */
    apr_initialize();
    atexit(apr_terminate);
    memset(&ctl, 0, sizeof(ctl));
    apr_pool_create(&ctl.pool, NULL);
    crm_process_memory(no_memory, ctl.pool);
    error = run(&ctl, argc - 1, argv + 1);
    if (error) {
        /* The operator sees the line that a server would log. */
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
