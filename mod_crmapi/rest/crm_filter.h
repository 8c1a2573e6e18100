/* SPDX-License-Identifier: Apache-2.0 */
/* crm_filter.h: filters as SQL predicates */
#ifndef CRM_FILTER_H
#define CRM_FILTER_H

#include "crm_resource.h"
#include "crm_sql.h"
#include "crm_type_list.h"

/* The filter by ids (contract 13.5). */
#define CRM_FILTER_IDS \
    {.field = {.name = "ids", .example = "01939f2c-6d1e-7a40-8b5c-2f9e1d3a7c64", \
               .type = &crm_type_ids, \
               .doc = "comma-separated, up to 100; others are left out " \
                      "(extension)"}, \
     .add = crm_filter_bind, \
     .sql = "t.id = ANY (?)", \
     .by_key = 1}

/* The filters by the time at which rows were made, which is in COLUMN. */
#define CRM_FILTER_CREATED(column) \
    {.field = {.name = "created_after", .type = &crm_type_time, \
               .doc = "inclusive"}, \
     .add = crm_filter_bind, \
     .sql = column " >= ?"}, \
    {.field = {.name = "created_before", .type = &crm_type_time, \
               .doc = "inclusive"}, \
     .add = crm_filter_bind, \
     .sql = column " <= ?"}

/* The filters by updated_at (contract 13.3). */
#define CRM_FILTER_UPDATED \
    {.field = {.name = "updated_after", .type = &crm_type_time, \
               .doc = "inclusive"}, \
     .add = crm_filter_bind, \
     .sql = "t.updated_at >= ?", .sql_by_time = "c.updated_at >= ?"}, \
    {.field = {.name = "updated_before", .type = &crm_type_time, \
               .doc = "inclusive"}, \
     .add = crm_filter_bind, \
     .sql = "t.updated_at <= ?", .sql_by_time = "c.updated_at <= ?"}

/* Implementations of crm_filter_t.add, add_unindexed and add_scoped. */
void crm_filter_bind(crm_sql_t *sql, const crm_filter_t *filter,
                     const char *bind, const crm_call_t *call);
void crm_filter_boolean(crm_sql_t *sql, const crm_filter_t *filter,
                        const char *bind, const crm_call_t *call);
void crm_filter_search(crm_sql_t *sql, const crm_filter_t *filter,
                       const char *bind, const crm_call_t *call);
void crm_filter_search_unindexed(crm_sql_t *sql, const crm_filter_t *filter,
                                 const char *bind, const crm_call_t *call);
void crm_filter_tags(crm_sql_t *sql, const crm_filter_t *filter,
                     const char *bind, const crm_call_t *call);
void crm_filter_tags_unindexed(crm_sql_t *sql, const crm_filter_t *filter,
                               const char *bind, const crm_call_t *call);
void crm_filter_tags_scoped(crm_sql_t *sql, const crm_filter_t *filter,
                            const char *bind, const crm_call_t *call);

/* Implementations of crm_filter_t.indexed. */
int crm_filter_search_indexed(const crm_filter_t *filter, const char *bind,
                              apr_pool_t *pool);
int crm_filter_tags_indexed(const crm_filter_t *filter, const char *bind,
                            apr_pool_t *pool);

#endif /* CRM_FILTER_H */
