/* SPDX-License-Identifier: Apache-2.0 */
/* crm_db_error.c: mapping SQLSTATEs to errors */
#include "crm_db_error.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_db_private.h"
#include "crm_text.h"

/* Codes by SQLSTATE. The first entry whose CLASS is a prefix applies. */
static const struct {
    const char *class;
    crm_code_t code;
} sqlstates[] = {
    {"08", CRM_E_UNAVAILABLE},      /* connection */
    {"22", CRM_E_CONFLICT},         /* invalid value */
    {"23503", CRM_E_CONFLICT},      /* foreign key */
    {"23505", CRM_E_CONFLICT},      /* unique key */
    {"23514", CRM_E_CONFLICT},      /* CHECK */
    {"25006", CRM_E_UNAVAILABLE},   /* read-only standby */
    {"26", CRM_E_UNAVAILABLE},      /* unknown prepared statement (pooler) */
    {"28", CRM_E_UNAVAILABLE},      /* login failed */
    {"3D", CRM_E_UNAVAILABLE},      /* no such database */
    {"3F", CRM_E_UNAVAILABLE},      /* no such schema */
    {"40001", CRM_E_UNAVAILABLE},   /* serialization */
    {"40P01", CRM_E_UNAVAILABLE},   /* deadlock */
    {"42", CRM_E_UNAVAILABLE},      /* unexpected schema or privileges */
    {"53", CRM_E_UNAVAILABLE},      /* resources: connections, disk */
    {"55P03", CRM_E_UNAVAILABLE},   /* lock not available */
    {"57", CRM_E_UNAVAILABLE},      /* cancelled, shut down */
};

/* Return whether RESULT is Citus' report of a failure on one of its servers
 * without the SQLSTATE, in place of which it has XX000: the server was lost in the
 * middle of a statement, or a COPY to it failed. */
static int is_node_failure(const PGresult *result)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *from = PQresultErrorField(result, PG_DIAG_SOURCE_FUNCTION);

    return state && from && !strcmp(state, "XX000")
           && (!strcmp(from, "ReportResultError")
               || !strcmp(from, "ReportCopyError"));
}

/* Return the code for STATE (NULL: the connection failed). */
static crm_code_t code_of(const char *state)
{
    if (!state) {
        return CRM_E_UNAVAILABLE;
    }
    for (size_t i = 0; i < CRM_NELTS(sqlstates); i++) {
        const char *class = sqlstates[i].class;

        if (!strncmp(state, class, strlen(class))) {
            return sqlstates[i].code;
        }
    }
    return CRM_E_INTERNAL;
}

const char *crm_db_line(const char *text, apr_pool_t *result_pool)
{
    return crm_text_one_line(text, strlen(text), 0, result_pool);
}

/* Return the server's primary message in RESULT, in POOL. A message of class 22
 * quotes the invalid value, which may be a contact's data, so it is cut before
 * the first quote. */
static const char *primary_message(const PGresult *result, const char *state,
                                   apr_pool_t *pool)
{
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *quote;

    if (!text) {
        text = PQresultErrorMessage(result);
    }
    quote = state && !strncmp(state, "22", 2) ? strchr(text, '"') : NULL;
    if (quote) {
        text = apr_pstrmemdup(pool, text, (apr_size_t)(quote - text));
    }
    return crm_db_line(text, pool);
}

crm_error_t *crm_db_error(const PGresult *result, PGconn *pg,
                          apr_pool_t *result_pool)
{
    const char *state = result
                        ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    const char *message = result
                          ? primary_message(result, state, result_pool)
                          : crm_db_line(PQerrorMessage(pg), result_pool);
    crm_error_t *error;

    if (!*message) {
        message = "the connection failed";
    }
    error = crm_error_logf(is_node_failure(result) ? CRM_E_UNAVAILABLE
                                                : code_of(state), result_pool,
                           "CRM2001: database: %s%s%s", state ? state : "",
                           state ? " " : "", message);
    error->sqlstate = state ? apr_pstrdup(result_pool, state) : NULL;
    return error;
}
