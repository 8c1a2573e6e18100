/* SPDX-License-Identifier: Apache-2.0 */
/* crm_db_error.c: mapping SQLSTATEs to errors */
#include "crm_db_error.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_db_private.h"
#include "crm_hosts.h"
#include "crm_text.h"

/* Seconds of a Retry-After while a workspace is held. */
#define HELD_SECONDS 60

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
    {"54000", CRM_E_VALIDATION},    /* too many bytes for a row of an index */
    {"55P03", CRM_E_UNAVAILABLE},   /* lock not available */
    {"57", CRM_E_UNAVAILABLE},      /* cancelled, shut down */
    {"CRM03", CRM_E_UNAVAILABLE},   /* the workspace is held */
};

/* SQLSTATEs by a part of PostgreSQL's messages. */
static const struct {
    const char *part;
    const char *state;
} messages[] = {
    {" violates foreign key constraint ", "23503"},
    {" violates unique constraint ", "23505"},
    {" violates check constraint ", "23514"},
};

/* Return the SQLSTATE of RESULT. Citus reports a failure on one of its servers
 * with XX000 in place of the server's SQLSTATE if a COPY to it failed, also one
 * that Citus made of an INSERT, or if the server was lost in the middle of a
 * statement. The message tells a violated constraint; without one the SQLSTATE is
 * 08006, a connection failure. NULL if RESULT has none. */
static const char *state_of(const PGresult *result)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *from = PQresultErrorField(result, PG_DIAG_SOURCE_FUNCTION);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

    if (!state || !from || !text || strcmp(state, "XX000")
        || (strcmp(from, "ReportResultError")
            && strcmp(from, "ReportCopyError"))) {
        return state;
    }
    for (size_t i = 0; i < CRM_NELTS(messages); i++) {
        if (strstr(text, messages[i].part)) {
            return messages[i].state;
        }
    }
    return "08006";
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

/* Return what STATE tells of the database. No SQLSTATE, or 57P01 to 57P04: the server
 * is going, coming or away. 55P03 and 57014 are the role's lock_timeout and
 * statement_timeout, which may be too short for all. */
static crm_outage_t outage_of(const char *state)
{
    static const char *const refusals[] = {
        "25006", "28", "3D", "3F", "42", "53", "55P03", "57014"
    };

    if (!state || (!strncmp(state, "57P0", 4) && state[4] <= '4')) {
        return CRM_OUTAGE_AWAY;
    }
    return CRM_BEGINS_ONE_OF(state, refusals) ? CRM_OUTAGE_REFUSAL
                                              : CRM_OUTAGE_NONE;
}

/* Return the server's primary message in RESULT, in POOL. A message of class 22
 * quotes the invalid value, which may be a contact's data, so it is cut before
 * the first quote, as is what may be one that Citus reports as of class 08. */
static const char *primary_message(const PGresult *result, const char *state,
                                   apr_pool_t *pool)
{
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *quote;

    if (!text) {
        text = PQresultErrorMessage(result);
    }
    quote = state && (!strncmp(state, "22", 2) || !strncmp(state, "08", 2))
            ? strchr(text, '"') : NULL;
    if (quote) {
        text = apr_pstrmemdup(pool, text, (apr_size_t)(quote - text));
    }
    return crm_text_one_line(text, strlen(text), 0, pool);
}

crm_error_t *crm_db_nameless(apr_pool_t *result_pool)
{
    crm_error_t *error = crm_error_logf(CRM_E_UNAVAILABLE, result_pool,
                                        "CRM2001: database: %s",
                                        crm_hosts_nameless);

    error->outage = CRM_OUTAGE_AWAY;
    return error;
}

crm_error_t *crm_db_error(const PGresult *result, PGconn *pg,
                          apr_pool_t *result_pool)
{
    const char *state = result ? state_of(result) : NULL;
    const char *message = result
                          ? primary_message(result, state, result_pool)
                          : crm_hosts_cause(PQerrorMessage(pg), result_pool);
    crm_error_t *error;

    if (!*message) {
        message = "the connection failed";
    }
    error = crm_error_logf(code_of(state), result_pool,
                           "CRM2001: database: %s%s%s", state ? state : "",
                           state ? " " : "", message);
    error->sqlstate = state ? apr_pstrdup(result_pool, state) : NULL;
    error->outage = outage_of(state);
    if (crm_error_is(error, "54000")) {
        error->message = "a text that lists are filtered by has too many bytes:"
                         " about 2,600 are possible";
    }
    if (crm_error_is(error, "CRM03")) {
        error->message = "The workspace receives nothing at present";
        error->log = NULL;
        error->retry_after = HELD_SECONDS;
    }
    return error;
}
