/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_workspace.h: workspaces */
#ifndef CRMAPICTL_WORKSPACE_H
#define CRMAPICTL_WORKSPACE_H

#include "crmapictl.h"

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
