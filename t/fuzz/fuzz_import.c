/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_import.c: the lines of crmapictl import */
/* libFuzzer: -max_len=8192 */
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

#include "crm_db_copy.h"
#include "crm_resources.h"
#include "crm_schema.h"
#include "crm_shape.h"
#include "crm_text.h"
#include "crmapictl_import.h"

/* --- instead of the database (the linker's --wrap) --- */

/* The compiler compares these with what they stand for. */
__typeof__(crm_schema_read) __wrap_crm_schema_read;
__typeof__(crm_db_exec) __wrap_crm_db_exec;
__typeof__(crm_db_query) __wrap_crm_db_query;
__typeof__(crm_db_rollback) __wrap_crm_db_rollback;
__typeof__(crm_db_copy_begin) __wrap_crm_db_copy_begin;
__typeof__(crm_db_copy_put) __wrap_crm_db_copy_put;
__typeof__(crm_db_copy_end) __wrap_crm_db_copy_end;
__typeof__(crm_db_copy_abort) __wrap_crm_db_copy_abort;

/* Whether all lines were read: then the database would check them. */
static int checks, copies;

crm_error_t *__wrap_crm_schema_read(crm_schema_t *schema, crm_conn_t *conn,
                                    apr_pool_t *result_pool)
{
    (void)conn;
    (void)result_pool;
    memset(schema, 0, sizeof(*schema));
    return NULL;
}

crm_error_t *__wrap_crm_db_exec(crm_conn_t *conn, const char *sql,
                                apr_pool_t *scratch_pool)
{
    (void)conn;
    must(crm_text_valid_utf8(sql, strlen(sql)));
    return strncmp(sql, "ANALYZE", 7) ? NULL
           : crm_error_createf(CRM_E_INTERNAL, scratch_pool, "enough");
}

crm_error_t *__wrap_crm_db_query(PGresult **result_p, crm_conn_t *conn,
                                 const crm_stmt_t *stmt, apr_pool_t *pool)
{
    (void)conn;
    must(crm_text_valid_utf8(stmt->sql, strlen(stmt->sql)));
    *result_p = NULL;
    return checks++ ? crm_error_createf(CRM_E_INTERNAL, pool, "enough") : NULL;
}

void __wrap_crm_db_rollback(crm_conn_t *conn)
{
    (void)conn;
}

crm_error_t *__wrap_crm_db_copy_begin(crm_conn_t *conn, const char *sql,
                                      apr_pool_t *scratch_pool)
{
    (void)conn;
    (void)sql;
    (void)scratch_pool;
    must(!copies++);
    return NULL;
}

/* Rows are whole, in COPY's text format, and PostgreSQL takes their text. */
crm_error_t *__wrap_crm_db_copy_put(crm_conn_t *conn, const char *data,
                                    apr_size_t len, apr_pool_t *scratch_pool)
{
    (void)conn;
    (void)scratch_pool;
    must(copies && len > 0 && data[len - 1] == '\n');
    must(!memchr(data, '\r', len) && crm_text_valid_utf8(data, len));
    return NULL;
}

crm_error_t *__wrap_crm_db_copy_end(apr_int64_t *row_p, crm_conn_t *conn,
                                    apr_pool_t *scratch_pool)
{
    (void)conn;
    (void)scratch_pool;
    must(copies--);
    *row_p = 1;
    return NULL;
}

void __wrap_crm_db_copy_abort(crm_conn_t *conn)
{
    (void)conn;
    must(copies--);
}

/* --- the file --- */

/* A crm_import_end_t: blank lines alone are an import, too. */
static crm_error_t *end(void *baton)
{
    (void)baton;
    return NULL;
}

/* Make the shapes of all resources in POOL. */
static void init(apr_pool_t *pool)
{
    must(!crm_shape_init(crm_resources, pool));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool = fuzz_pool(init);
    apr_int64_t count;
    crm_error_t *error;
    int file;

    file = memfd_create("lines", MFD_CLOEXEC);
    must(file >= 0 && write(file, data, size) == (ssize_t)size
         && !lseek(file, 0, SEEK_SET));
    checks = copies = 0;
    error = crm_import(&count, NULL, "01900000-0000-7000-8000-000000000000",
                       file, NULL, end, NULL, pool);
    close(file);
    must(!copies && count <= (apr_int64_t)size);
    if (error) {
        must(crm_text_valid_utf8(error->message, strlen(error->message)));
    }
    apr_pool_destroy(pool);
    return 0;
}
