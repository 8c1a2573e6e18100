/* SPDX-License-Identifier: Apache-2.0 */
/* crm_schema.h: whether a program can use a database: the schema's version, and
 * the rights of the login */
#ifndef CRM_SCHEMA_H
#define CRM_SCHEMA_H

#include "crm_db.h"

/* The number of the latest migration in schema/. */
#ifndef CRM_SCHEMA_VERSION
#define CRM_SCHEMA_VERSION 19
#endif

/* The key of the advisory lock of the session that migrates: arbitrary, the
 * same in all versions. */
#define CRM_MIGRATE_LOCK "hashtextextended('crmapi.migration', 0)"

/* Which programs can use a database (contract 16.2): those whose
 * CRM_SCHEMA_VERSION is from OLDEST to NUMBER. */
typedef struct crm_schema_t {
    int number;                 /* the last complete migration; 0: none */
    int oldest;                 /* the highest min_module of all migrations with
                                   an applied step */
    int distributed;            /* Citus keeps its workspaces on several
                                   servers: crmapictl distribute */
    int serves;                 /* the login may serve the API, */
    int works;                  /* or do crmapid's work */
} crm_schema_t;

/* Set *SCHEMA from the database of CONN. */
crm_error_t *crm_schema_read(crm_schema_t *schema, crm_conn_t *conn,
                             apr_pool_t *scratch_pool);

/* Set the versions of SCHEMA alone, from the database of CONN, which has a schema. */
crm_error_t *crm_schema_range(crm_schema_t *schema, crm_conn_t *conn,
                              apr_pool_t *scratch_pool);

/* Set *RESULT_P, in RESULT_POOL, to the first migration of the database of CONN
 * that is not complete: one row or none. Its columns are the name of the file;
 * the step, "2 of 5: index contact_digits"; the progress, as text or null; the
 * pid of the backend that executes it, or null. The database must have a
 * schema. */
crm_error_t *crm_schema_unfinished(PGresult **result_p, crm_conn_t *conn,
                                   apr_pool_t *result_pool);

/* Return NULL if this program can use SCHEMA. Otherwise return, in RESULT_POOL,
 * the reason, with both versions if it is that, and what to do. PROGRAM is the
 * program's name: mod_crmapi and crmapid need the rights that crmapictl role
 * create gives. */
const char *crm_schema_fault(const crm_schema_t *schema, const char *program,
                             apr_pool_t *result_pool);

#endif /* CRM_SCHEMA_H */
