/* SPDX-License-Identifier: Apache-2.0 */
/* crm_db_copy.c: COPY, in text format */
#include "crm_db_copy.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_db_private.h"

/* Bytes of COPY data given to libpq at once. */
#define COPY_PART 65536

/* End a COPY that failed: return the error of RESULT (NULL: of CONN) and clear
 * RESULT. */
static crm_error_t *failed(crm_conn_t *conn, PGresult *result,
                           apr_pool_t *pool)
{
    crm_error_t *error = crm_db_failure(conn, result, pool);

    PQclear(result);
    crm_db_end(conn, conn->in_transaction);
    return error;
}

/* Run SQL, which begins a COPY with the status STATUS. */
static crm_error_t *start(crm_conn_t *conn, const char *sql,
                          ExecStatusType status, apr_pool_t *pool)
{
    PGresult *result;

    CRM_ERR(crm_db_begin(&conn->in_transaction, conn, pool));
    result = crm_db_command(conn, sql);
    if (PQresultStatus(result) != status) {
        return failed(conn, result, pool);
    }
    PQclear(result);
    return NULL;
}

crm_error_t *crm_db_copy_begin(crm_conn_t *conn, const char *sql,
                               apr_pool_t *scratch_pool)
{
    return start(conn, sql, PGRES_COPY_IN, scratch_pool);
}

crm_error_t *crm_db_copy_put(crm_conn_t *conn, const char *data,
                             apr_size_t len, apr_pool_t *scratch_pool)
{
    crm_db_prolong(conn);
    while (len) {
        apr_size_t part = len < COPY_PART ? len : COPY_PART;
        int sent = PQputCopyData(conn->pg, data, (int)part);

        if (sent < 0 || !crm_db_flush(conn)) {
            conn->broken = 1;
            return failed(conn, NULL, scratch_pool);
        }
        data += sent ? part : 0;
        len -= sent ? part : 0;
    }
    return NULL;
}

/* Return the number of the row that RESULT, an error of COPY, is about, or 0.
 * The context of the error is "COPY contact, line 3, column id: ...". */
static apr_int64_t row_of(const PGresult *result)
{
    const char *context = PQresultErrorField(result, PG_DIAG_CONTEXT);
    const char *copy = context ? strstr(context, "COPY ") : NULL;
    const char *line = copy ? strstr(copy, ", line ") : NULL;

    return line ? apr_atoi64(line + 7) : 0;
}

/* End the COPY, as a failure because of REASON unless that is NULL. Return the
 * server's answer, or NULL if the connection failed. */
static PGresult *finish(crm_conn_t *conn, const char *reason)
{
    int sent;

    crm_db_prolong(conn);
    while ((sent = PQputCopyEnd(conn->pg, reason)) == 0
           && crm_db_flush(conn)) {
    }
    conn->broken |= sent <= 0;
    return sent > 0 ? crm_db_results(conn) : NULL;
}

void crm_db_copy_abort(crm_conn_t *conn)
{
    PQclear(finish(conn, "given up"));
    crm_db_end(conn, conn->in_transaction);
}

crm_error_t *crm_db_copy_end(apr_int64_t *row_p, crm_conn_t *conn,
                             apr_pool_t *scratch_pool)
{
    PGresult *result = finish(conn, NULL);

    *row_p = 0;
    if (PQresultStatus(result) != PGRES_COMMAND_OK) {
        *row_p = row_of(result);
        return failed(conn, result, scratch_pool);
    }
    *row_p = apr_atoi64(PQcmdTuples(result));
    PQclear(result);
    crm_db_end(conn, conn->in_transaction);
    return NULL;
}

/* Receive the next row: *LINE_P and its length, which is -1 after the last one
 * and -2 after an error. The caller frees *LINE_P. */
static int next_line(char **line_p, crm_conn_t *conn)
{
    int len;

    while ((len = PQgetCopyData(conn->pg, line_p, 1)) == 0) {
        if (!crm_db_await_input(conn)) {
            return -2;
        }
    }
    return len;
}

crm_error_t *crm_db_copy_out(crm_conn_t *conn, const char *sql,
                             crm_db_line_t each, void *baton,
                             apr_pool_t *scratch_pool)
{
    crm_error_t *error = NULL;
    PGresult *result;
    char *line;
    int len;

    CRM_ERR(start(conn, sql, PGRES_COPY_OUT, scratch_pool));
    while ((len = next_line(&line, conn)) > 0) {
        if (!error) {
            error = each(baton, line, (apr_size_t)len);
        }
        PQfreemem(line);
        crm_db_prolong(conn);
    }
    result = conn->silent ? NULL : crm_db_results(conn);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) {
        crm_error_t *fault = failed(conn, result, scratch_pool);

        return error ? error : fault;
    }
    PQclear(result);
    crm_db_end(conn, conn->in_transaction);
    return error;
}
