/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_import_rows.h: inserting the rows of an import */
#ifndef CRMAPICTL_IMPORT_ROWS_H
#define CRMAPICTL_IMPORT_ROWS_H

#include "crmapictl_stage.h"

/* Fill conversations of IMPORT without last_message_at from their messages among the
 * lines, as the intake would have (schema/0015-intake.sql). The messages of programs
 * neither ask nor answer, and nobody can answer a call. */
crm_error_t *ctl_import_follow(ctl_import_t *import);

/* Insert the rows of STAGE. Errors: ctl_import_refuse() for the first line that the
 * database refuses. */
crm_error_t *ctl_import_insert(ctl_import_t *import, const ctl_stage_t *stage);

#endif /* CRMAPICTL_IMPORT_ROWS_H */
