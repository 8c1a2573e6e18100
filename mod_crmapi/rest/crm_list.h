/* SPDX-License-Identifier: Apache-2.0 */
/* crm_list.h: what the statements of lists have in common */
#ifndef CRM_LIST_H
#define CRM_LIST_H

#include "crm_rest.h"

/* The columns of a list's rows. The resource's begin at CRM_LIST_FIRST. */
#define CRM_LIST_TOTAL 0
#define CRM_LIST_FIRST 1

/* The maximum number of matches of a filter by content (tags, search) that are
 * collected. If there are more, the list is read in its order: see
 * add_by_content() of crm_op_list.c. */
#define CRM_LIST_MATCHES 2000

/* The largest page_size (contract 7.2). */
#define CRM_LIST_PAGE 100

#define CRM_LIST_TEXT(number) CRM_LIST_TEXT_OF(number)
#define CRM_LIST_TEXT_OF(number) #number

/* Add " FROM ... WHERE" and all conditions, so that the rows t can be read in the
 * order of CALL's list. UNINDEXED: write filters by content so that their GIN
 * index is not used. */
void crm_list_rows(crm_sql_t *sql, const crm_call_t *call, int unindexed);

/* The same, after "SELECT" the ids of the rows. */
void crm_list_ids(crm_sql_t *sql, const crm_call_t *call);

/* Add "SELECT count(*) FROM ... WHERE" and all conditions. */
void crm_list_count(crm_sql_t *sql, const crm_call_t *call);

/* Add sort key INDEX, or the id after the last key, of the rows of
 * crm_list_rows(). If ROWS is not NULL, they are its columns o0, o1 ... id. */
void crm_list_key(crm_sql_t *sql, const crm_call_t *call, const char *rows,
                  int index);

/* Add " ORDER BY" the sort keys, in the opposite direction if REVERSE. ROWS: as
 * in crm_list_key(). */
void crm_list_order(crm_sql_t *sql, const crm_call_t *call, const char *rows,
                    int reverse);

/* Add "SELECT", COLUMNS and the sort keys as o0, o1 ... */
void crm_list_keys(crm_sql_t *sql, const crm_call_t *call,
                   const char *columns);

/* Return whether PARAM of CALL is a filter by content that has an index. */
int crm_list_is_indexed(const crm_param_t *param, const crm_call_t *call);

/* Add "WITH m": the rows that match, with their sort keys, in no order, and at
 * most one more than CRM_LIST_MATCHES: that one shows that they are too
 * many. */
void crm_list_matches(crm_sql_t *sql, const crm_call_t *call);

/* Add N as a bind. */
void crm_list_number(crm_sql_t *sql, const crm_call_t *call, apr_int64_t n);

/* Return whether CALL has a filter by content. */
int crm_list_is_by_content(const crm_call_t *call);

#endif /* CRM_LIST_H */
