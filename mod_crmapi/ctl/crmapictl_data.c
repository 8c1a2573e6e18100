/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_data.c: the commands import and export */
#include "crmapictl_data.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "crm_text.h"
#include "crm_type_list.h"
#include "crmapictl_audit.h"
#include "crmapictl_export.h"
#include "crmapictl_import.h"
#include "crmapictl_lines.h"
#include "crmapictl_output.h"
#include "crmapictl_workspace.h"

static void show_progress(void *baton, apr_int64_t lines)
{
    (void)baton;
    fprintf(stderr, "\r%" APR_INT64_T_FMT " lines", lines);
}

/* A crm_import_end_t: the command is a row of crmapi.audit. */
static crm_error_t *end_import(void *baton)
{
    return ctl_audit(baton);
}

/* Print the lines of TEXT but the last, what is wrong with the file NAME. Return the
 * last. */
static const char *print_faults(ctl_t *ctl, const char *name, const char *text)
{
    for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
        fprintf(stderr, "crmapictl: %s: %.*s\n", ctl_clean(name, ctl->pool),
                (int)(end - text), text);
    }
    return text;
}

crm_error_t *ctl_import(ctl_t *ctl)
{
    int in, terminal = isatty(STDERR_FILENO);
    const char *workspace, *name;
    crm_error_t *error;
    apr_int64_t count;

    CRM_ERR(ctl_workspace_id(&workspace, ctl, ctl->options[CTL_WORKSPACE]));
    CRM_ERR(ctl_open(&in, &name, ctl, ctl->args[0]));
    error = crm_import(&count, ctl->conn, workspace, in,
                       terminal ? show_progress : NULL, end_import, ctl,
                       ctl->pool);
    ctl_close(in);
    if (terminal) {
        fputs("\r\033[K", stderr);
    }
    if (error && !error->log) {
        return ctl_fault(ctl, "%s: %s", name,
                         print_faults(ctl, name, error->message));
    }
    if (!error) {
        printf(ctl->options[CTL_JSON] ? "{\"lines\":%" APR_INT64_T_FMT "}\n"
               : "%" APR_INT64_T_FMT " line%s imported\n", count,
               CRM_TEXT_S(count));
    }
    return error;
}

crm_error_t *ctl_export(ctl_t *ctl)
{
    const char *given = ctl->options[CTL_OBJECT], *workspace, *rule;
    apr_array_header_t *names = given ? crm_type_parts(given, ctl->pool) : NULL;

    rule = names ? crm_export_rule(names, ctl->pool) : NULL;
    if (names && !names->nelts) {
        return ctl_misuse(ctl, "--object names no object");
    }
    if (rule) {
        return ctl_misuse(ctl, "--object: %s", rule);
    }
    CRM_ERR(ctl_workspace_id(&workspace, ctl, ctl->options[CTL_WORKSPACE]));
    return crm_export(ctl->conn, workspace, names, stdout, ctl->pool);
}
