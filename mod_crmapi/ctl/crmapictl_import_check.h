/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_import_check.h: ids, references and addresses of an import */
#ifndef CRMAPICTL_IMPORT_CHECK_H
#define CRMAPICTL_IMPORT_CHECK_H

#include "crmapictl_stage.h"

/* Check all ids, references and addresses of IMPORT, whose lines are in their tables.
 * Errors: ctl_import_refuse() for the first line that breaks a rule, and the
 * database's. */
crm_error_t *ctl_import_check(ctl_import_t *import);

#endif /* CRMAPICTL_IMPORT_CHECK_H */
