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

/* Check a name: 1 to 1,000 characters (contract 6.3). */
crm_error_t *ctl_check_name(ctl_t *ctl, const char *name);

/* Check a slug as the schema does, and that it does not look like an id. */
crm_error_t *ctl_check_slug(ctl_t *ctl, const char *slug);

/* The commands. The manual page describes their output. */
crm_error_t *ctl_workspace_create(ctl_t *ctl);
crm_error_t *ctl_workspace_list(ctl_t *ctl);
crm_error_t *ctl_workspace_show(ctl_t *ctl);
crm_error_t *ctl_workspace_set(ctl_t *ctl);
crm_error_t *ctl_workspace_delete(ctl_t *ctl);

#endif /* CRMAPICTL_WORKSPACE_H */
