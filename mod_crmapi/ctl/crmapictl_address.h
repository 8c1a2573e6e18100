/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_address.h: addresses that belong to others (contract 14.2) */
#ifndef CRMAPICTL_ADDRESS_H
#define CRMAPICTL_ADDRESS_H

#include "crm_db.h"

/* Find the first line of an import into WORKSPACE_ID, whose agents are in the table
 * stage_agent, with an address that belongs to another agent. Set *LINE_P to it, 0
 * if there is none, and *FIELD_P and *RULE_P to the field and to what is wrong, in
 * RESULT_POOL. Errors: the database's. */
crm_error_t *ctl_address_check(apr_int64_t *line_p, const char **field_p,
                               const char **rule_p, crm_conn_t *conn,
                               const char *workspace_id,
                               apr_pool_t *result_pool);

#endif /* CRMAPICTL_ADDRESS_H */
