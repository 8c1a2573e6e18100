/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_workspace.h: workspaces */
#ifndef CRMAPICTL_WORKSPACE_H
#define CRMAPICTL_WORKSPACE_H

#include "crmapictl.h"
#include "crmapictl_output.h"

/* Return the error that there is no workspace WHAT, an id or a slug. */
crm_error_t *ctl_no_workspace(ctl_t *ctl, const char *what);

/* Set *ID_P to the id of the workspace WHAT, an id or a slug. Errors: there is
 * no such workspace. */
crm_error_t *ctl_workspace_id(const char **id_p, ctl_t *ctl,
                              const char *what);

/* Print the rows that SQL returns for the workspace --workspace, $1; SHOWN are their
 * columns. */
crm_error_t *ctl_workspace_rows(ctl_t *ctl, const char *sql,
                                const ctl_column_t *shown);

/* SQL for ctl_owner(): the workspaces in whose TABLE the id $1 exists. */
#define CTL_OWNERS(table) \
    "SELECT t.workspace_id FROM crmapi." table " t WHERE t.id = $1"

/* Set *WORKSPACE_P to the workspace of ID, an operand: that of --workspace, or
 * the one found by OWNERS, SQL with ID as $1; NULL if there is none. Errors:
 * several workspaces have ID. Ids are unique within a workspace only, and an
 * export may be imported into several. */
crm_error_t *ctl_owner(const char **workspace_p, ctl_t *ctl,
                       const char *owners, const char *id);

/* The plan of a workspace that is made without one. */
#define CTL_DEFAULT_PLAN "standard"

/* The maximum number of days of a retention, as in the schema. */
#define CTL_DAYS_MAX 36500

/* Return NULL or the rule that SLUG breaks: what the schema says, and that it does
 * not look like an id. */
const char *ctl_slug_rule(const char *slug);

/* Return whether CODE has the form of a currency (ISO 4217). */
int ctl_currency_ok(const char *code);

/* Add the sender domain TEXT as A-labels to DOMAINS, unless they have it: the forms
 * of one name are one domain. Return NULL, or the rule that TEXT breaks. The domain
 * is in DOMAINS' pool. */
const char *ctl_domain_add(apr_array_header_t *domains, const char *text);

/* Turn the events of the workspace ID on or off, as EVENTS, a boolean of SQL,
 * says, if it is not NULL. */
crm_error_t *ctl_events_set(ctl_t *ctl, const char *id, const char *events);

/* Wait until all transactions have ended that may not have seen such a change of
 * the workspace ID, which was committed. */
crm_error_t *ctl_events_wait(ctl_t *ctl, const char *id);

/* Check the name that OPTION gives: 1 to 1,000 characters (contract 6.3). */
crm_error_t *ctl_check_name(ctl_t *ctl, ctl_option_t option);

/* Check a slug as the schema does, and that it does not look like an id. */
crm_error_t *ctl_check_slug(ctl_t *ctl, const char *slug);

/* Make a workspace as --name, --slug, --plan and --id say, and set *RESULT_P to
 * its row; the first column is its id. Errors: a value of the options. */
crm_error_t *ctl_workspace_make(PGresult **result_p, ctl_t *ctl);

/* The commands. The manual page describes their output. */
crm_error_t *ctl_workspace_create(ctl_t *ctl);
crm_error_t *ctl_workspace_list(ctl_t *ctl);
crm_error_t *ctl_workspace_show(ctl_t *ctl);
crm_error_t *ctl_workspace_retention(ctl_t *ctl);
crm_error_t *ctl_workspace_set(ctl_t *ctl);
crm_error_t *ctl_workspace_delete(ctl_t *ctl);

#endif /* CRMAPICTL_WORKSPACE_H */
