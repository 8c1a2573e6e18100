/* SPDX-License-Identifier: Apache-2.0 */
/* crm_list_walk.h: pages of lists that a cursor names (contract 13.3) */
#ifndef CRM_LIST_WALK_H
#define CRM_LIST_WALK_H

#include "crm_rest.h"

/* Make the statement for the page of CALL's list that its cursor names
 * (contract 13.3). If the key is valid, it returns at least one row, like that
 * of any list. After the columns of the shape come the sort keys and the id. */
void crm_walk_make(crm_sql_t *sql, crm_call_t *call);

/* Return how many of ROWS are on the page. The statement asks for one more. */
int crm_walk_count(const crm_call_t *call, const crm_rows_t *rows);

/* Add the member "pagination" for the page in ROWS to BODY, and the header Link
 * to CALL's response if there is a next page. Errors: CRM_E_INTERNAL. */
crm_error_t *crm_walk_answer(crm_buf_t *body, crm_call_t *call,
                             const crm_rows_t *rows);

/* Return the value of the header Link (RFC 8288), in CALL's pool: the target of
 * CALL with CURSOR in place of its own cursor. */
const char *crm_walk_link(const crm_call_t *call, const char *cursor);

#endif /* CRM_LIST_WALK_H */
