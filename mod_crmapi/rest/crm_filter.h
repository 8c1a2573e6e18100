/* SPDX-License-Identifier: Apache-2.0 */
/* crm_filter.h: filters as SQL predicates */
#ifndef CRM_FILTER_H
#define CRM_FILTER_H

#include "crm_call.h"
#include "crm_resource.h"
#include "crm_sql.h"

/* Add " AND ..." to SQL: FILTER's condition for BIND, its value in CALL. */
typedef void crm_filter_add_t(crm_sql_t *sql, const crm_filter_t *filter,
                              const char *bind, const crm_call_t *call);

/* The functions of a kind of filters. */
typedef struct crm_predicate_t {
    crm_filter_add_t *add;      /* NULL: the parameter only modifies others */
    /* The same predicate, written so that the GIN index is not used. NULL:
     * ADD's predicate does not use a GIN index. */
    crm_filter_add_t *add_unindexed;
    /* The same predicate for an index whose keys have the workspace in them, so
     * that it reads no list of all rows of the workspace. NULL: there is no
     * such index. See crm_list_matches(). */
    crm_filter_add_t *add_scoped;
    /* Return whether ADD's predicate for BIND uses the GIN index. NULL: it
     * does, if there is ADD_UNINDEXED. */
    int (*indexed)(const crm_filter_t *filter, const char *bind,
                   apr_pool_t *pool);
} crm_predicate_t;

/* Return the functions of FILTER's kind. */
const crm_predicate_t *crm_filter_functions(const crm_filter_t *filter);

/* Add the condition of FILTER, which has one. */
void crm_filter_add(crm_sql_t *sql, const crm_filter_t *filter,
                    const char *bind, const crm_call_t *call);

#endif /* CRM_FILTER_H */
