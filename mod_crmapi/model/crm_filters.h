/* SPDX-License-Identifier: Apache-2.0 */
/* crm_filters.h: filters that several resources have */
#ifndef CRM_FILTERS_H
#define CRM_FILTERS_H

#include "crm_resource.h"
#include "crm_type_list.h"
#include "crm_type_member.h"

/* The condition that COLUMN has the filter's value. The second half says nothing
 * new, but a planner that does not know the value takes it for a third of the rows:
 * an index without COLUMN is then the worse one, also if the statistics know one
 * value of COLUMN only. */
#define CRM_FILTER_IS(column) column " = ? AND " column " >= ?"

/* The filters by tags. */
#define CRM_FILTER_TAGS \
    {.field = {.name = "tags", .example = "vip", .type = &crm_type_tags, \
               .doc = "comma-separated; rows that have any of them"}, \
     .by = CRM_BY_TAGS}, \
    {.field = {.name = "tags_match", .type = &crm_type_enum, \
               .values = crm_tags_matches, \
               .doc = "any (default) or all of the tags"}, \
     .absent = "any"}

/* The filter by the agent of a row. COUNTED: see crm_filter_t. */
#define CRM_FILTER_AGENT(counted_) \
    {.field = {.name = "bot_id", .type = &crm_type_ref, \
               .doc = "only rows of this agent"}, \
     .by = CRM_BY_VALUE, \
     .sql = CRM_FILTER_IS("t.bot_id"), .order = "t.created_at", \
     .counted = (counted_)}

/* The filter by external_id (contract 20.3). */
#define CRM_FILTER_EXTERNAL_ID \
    {.field = {.name = "external_id", .example = "shop-1001", \
               .type = &crm_type_text, .max = 255, \
               .doc = "exact"}, \
     .by = CRM_BY_VALUE, \
     .sql = "t.external_id = ?", .by_key = 1}

/* What else than the usual is shown of rows: MORE are the CRM_F_ON_REQUEST fields,
 * ended by NULL, and NAMES those that the document names (extension). */
#define CRM_FILTER_INCLUDE(more, names) \
    {.field = {.name = "include", .example = names, \
               .type = &crm_type_names, .values = more, \
               .doc = "also show: " names}, \
     .only_shows = 1}

/* The filter by ids (contract 13.5). */
#define CRM_FILTER_IDS \
    {.field = {.name = "ids", .example = "01939f2c-6d1e-7a40-8b5c-2f9e1d3a7c64", \
               .type = &crm_type_ids, \
               .doc = "comma-separated, up to 100"}, \
     .by = CRM_BY_VALUE, \
     .sql = "t.id = ANY (?)", \
     .by_key = 1}

/* The filters by the time at which rows were made, which is in COLUMN. */
#define CRM_FILTER_CREATED(column) \
    {.field = {.name = "created_after", .type = &crm_type_time, \
               .doc = "inclusive"}, \
     .by = CRM_BY_VALUE, \
     .sql = column " >= ?", .order = column}, \
    {.field = {.name = "created_before", .type = &crm_type_time, \
               .doc = "inclusive"}, \
     .by = CRM_BY_VALUE, \
     .sql = column " <= ?", .order = column}

/* The filters by updated_at (contract 13.3). */
#define CRM_FILTER_UPDATED \
    {.field = {.name = "updated_after", .type = &crm_type_time, \
               .doc = "inclusive"}, \
     .by = CRM_BY_VALUE, \
     .sql = "t.updated_at >= ?", .sql_by_time = "c.updated_at >= ?", \
     .order = "t.updated_at"}, \
    {.field = {.name = "updated_before", .type = &crm_type_time, \
               .doc = "inclusive"}, \
     .by = CRM_BY_VALUE, \
     .sql = "t.updated_at <= ?", .sql_by_time = "c.updated_at <= ?", \
     .order = "t.updated_at"}

/* The filter by a member of custom_fields. */
#define CRM_FILTER_MEMBER \
    {.field = {.name = "custom_fields.NAME", .example = "pro", \
               .type = &crm_type_member, \
               .doc = "rows whose custom field NAME is this text, number, " \
                      "boolean or null. NAME stands for a name of at most 100 " \
                      "characters, whatever they are; up to 10 different ones " \
                      "may be sent"}, \
     .by = CRM_BY_MEMBER, \
     .members = "custom_fields."}

#endif /* CRM_FILTERS_H */
