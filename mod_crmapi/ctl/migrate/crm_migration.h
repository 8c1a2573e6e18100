/* SPDX-License-Identifier: Apache-2.0 */
/* crm_migration.h: reading the migrations in schema/ */
#ifndef CRM_MIGRATION_H
#define CRM_MIGRATION_H

#include "apr_tables.h"

#include "crm_error.h"
#include "crm_key.h"

/* How a step is run. schema/README says what each is for. */
typedef enum crm_migration_kind_t {
    CRM_MIGRATION_TRANSACTION,  /* in a transaction, with short waits */
    CRM_MIGRATION_INDEX,        /* a CREATE INDEX CONCURRENTLY */
    CRM_MIGRATION_ALONE,        /* outside of a transaction */
    CRM_MIGRATION_BATCHES,      /* repeated for batches of a table's rows */
    CRM_MIGRATION_KINDS
} crm_migration_kind_t;

/* A step of a migration. */
typedef struct crm_migration_step_t {
    crm_migration_kind_t kind;
    const char *title;          /* what follows "-- step: " */
    const char *object;         /* the index, or the table of the batches,
                                   without its schema; otherwise NULL */
    const char *sql;
} crm_migration_step_t;

/* A migration file. */
typedef struct crm_migration_t {
    int number;
    const char *name;           /* of the file */
    char sha256[2 * CRM_KEY_HASH_LEN + 1];
    int min_module;             /* the lowest CRM_SCHEMA_VERSION of programs
                                   that can use a database with it */
    apr_array_header_t *steps;  /* of crm_migration_step_t; not empty */
} crm_migration_t;

/* Return an error for the operator in RESULT_POOL, with a message made from
 * FORMAT. */
crm_error_t *crm_migration_fault(apr_pool_t *result_pool, const char *format,
                                 ...) __attribute__((format(printf, 2, 3)));

/* Set *MIGRATIONS_P to the migrations in the folder DIR in order, an array of
 * crm_migration_t in RESULT_POOL. Their files are NNNN-name.sql, numbered from
 * 0001. Errors: a gap, a duplicate number, a file whose steps do not conform to
 * schema/README. */
crm_error_t *crm_migration_read(apr_array_header_t **migrations_p,
                                const char *dir, apr_pool_t *result_pool);

/* Take the steps of those MIGRATIONS, of crm_migration_read(), that have a file
 * of the same name in the folder DIR from there: what a distributed database
 * needs instead. DIR need not exist. Allocate in RESULT_POOL. Errors: a file
 * whose steps do not conform to schema/README. */
crm_error_t *crm_migration_replace(apr_array_header_t *migrations,
                                   const char *dir, apr_pool_t *result_pool);

#endif /* CRM_MIGRATION_H */
