/* SPDX-License-Identifier: Apache-2.0 */
/* crm_type_list.h: types of lists and of free-form JSON */
#ifndef CRM_TYPE_LIST_H
#define CRM_TYPE_LIST_H

#include "apr_tables.h"

#include "crm_type.h"

extern const crm_type_t crm_type_object;    /* free-form JSON, contract 6.3 */
extern const crm_type_t crm_type_array;     /* free-form JSON array */
extern const crm_type_t crm_type_tags;
extern const char *const crm_tags_matches[]; /* values of the filter tags_match */
extern const crm_type_t crm_type_strings;   /* string[] or null */
extern const crm_type_t crm_type_names;     /* several of FIELD->values, in a
                                               query */
extern const crm_type_t crm_type_ids;       /* up to 100, in a query; 13.5 */

/* Set *MERGED_P to the tags HAVE followed by those of MORE that it lacks
 * (contract 11.5). All are binds of crm_type_tags. */
void crm_type_merge_tags(const char **merged_p, const char *have,
                         const char *more, apr_pool_t *pool);

/* Return the strings of ARRAY, PostgreSQL's output of a text[] without nulls,
 * as an array of const char * in POOL. */
apr_array_header_t *crm_type_array_strings(const char *array,
                                           apr_pool_t *pool);

/* Return the parts of TEXT, "a,b", an array of const char * in POOL. They are
 * trimmed, and empty ones are left out. A part with commas is in quotes
 * (contract 7.4). */
apr_array_header_t *crm_type_parts(const char *text, apr_pool_t *pool);

/* What crm_type_parts() leaves out around the parts and between two of them, as
 * regular expressions in JSON. */
#define CRM_PARTS_AROUND "[\\\\s,]*"
#define CRM_PARTS_BETWEEN "\\\\s*,[\\\\s,]*"

#endif /* CRM_TYPE_LIST_H */
