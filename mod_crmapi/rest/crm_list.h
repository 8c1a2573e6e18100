/* SPDX-License-Identifier: Apache-2.0 */
/* crm_list.h: what the statements of lists have in common */
#ifndef CRM_LIST_H
#define CRM_LIST_H

#include "crm_rest.h"

/* The columns of a list's rows. The resource's begin at CRM_LIST_FIRST. */
#define CRM_LIST_TOTAL 0
#define CRM_LIST_FIRST 1

/* The maximum number of matches of a filter that are collected. If there are more,
 * the list is read in its order: see add_collected() of crm_op_list.c. */
#define CRM_LIST_MATCHES 2000

/* At this offset and above, the ids of a page are selected first, and then its
 * rows by id. That is cheaper from about 1,000 rows on. */
#define CRM_LIST_DEEP 1000

/* The number of rows among which the list's order gives a page soon: see
 * crm_list_lead_few(). */
#define CRM_LIST_WINDOW 1000

/* The largest page_size (contract 7.2). */
#define CRM_LIST_PAGE 100

#define CRM_LIST_TEXT(number) CRM_LIST_TEXT_OF(number)
#define CRM_LIST_TEXT_OF(number) #number

/* Add " AND" the condition of the rows that follow a cursor, if there is one. */
typedef void crm_list_start_t(crm_sql_t *sql, const crm_call_t *call);

/* Return the number of rows before CALL's page. */
apr_int64_t crm_list_offset(const crm_call_t *call);

/* Add " FROM ... WHERE" and the workspace, so that the rows t can be read in the order
 * of CALL's list, which has no parent. */
void crm_list_all(crm_sql_t *sql, const crm_call_t *call);

/* Add " FROM ... WHERE" and all conditions, so that the rows t can be read in the
 * order of CALL's list. UNINDEXED: write filters by content so that their GIN
 * index is not used, and others so that no index in another order is. */
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

/* Return whether CALL's matches are collected first: it has a filter by content,
 * or one whose index has another order than the list (crm_list_lead()). */
int crm_list_collects(const crm_call_t *call);

/* Add "WITH m": the rows that match, with their sort keys, in no order. There may be
 * too many of them: see crm_list_few(). */
void crm_list_matches(crm_sql_t *sql, const crm_call_t *call);

/* Add the condition that m has all rows that match, and the page of COUNT rows after
 * START (may be NULL) is best taken from m. */
void crm_list_few(crm_sql_t *sql, const crm_call_t *call,
                  crm_list_start_t *start, apr_int64_t count);

/* Add N as a bind. */
void crm_list_number(crm_sql_t *sql, const crm_call_t *call, apr_int64_t n);

#endif /* CRM_LIST_H */
