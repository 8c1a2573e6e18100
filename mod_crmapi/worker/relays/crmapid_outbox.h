/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_outbox.h: forgetting messages in the folder of the relay maildir */
#ifndef CRMAPID_OUTBOX_H
#define CRMAPID_OUTBOX_H

#include "crm_db.h"

/* Delete the files of the maildir ROOT that are messages to people who were erased
 * (contract 14.4), as the database of CONN knows them by their ids. Set *COUNT_P to
 * how many. A folder that is not there is empty. Errors: a folder cannot be read
 * (CRM_E_INTERNAL: the database is not to blame); those of the database. */
crm_error_t *crmd_outbox_forget(apr_int64_t *count_p, const char *root,
                                crm_conn_t *conn, apr_pool_t *scratch_pool);

#endif /* CRMAPID_OUTBOX_H */
