/* SPDX-License-Identifier: Apache-2.0 */
/* crm_sql_cache.h: the texts of a process's statements, printed once */
#ifndef CRM_SQL_CACHE_H
#define CRM_SQL_CACHE_H

#include "crm_sql.h"

/* The maximum size of the cache, in bytes. When it is full, further statements are
 * printed each time. A text is never removed, so that it needs no lock and a
 * statement can use it for as long as it likes. */
#define CRM_SQL_CACHE_MAX (4 * 1024 * 1024)

/* Set SQL's hash, and its text PRINTED to that of a statement with exactly the
 * same parts and the same form, or to NULL if the cache has none. The text lives as
 * long as the process. */
void crm_sql_cache_find(crm_sql_t *sql);

/* Add the text of SQL, which crm_sql_cache_find() did not find, unless the cache is
 * full, and let SQL use that. */
void crm_sql_cache_add(crm_sql_t *sql);

#endif /* CRM_SQL_CACHE_H */
