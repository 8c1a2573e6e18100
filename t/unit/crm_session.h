/* SPDX-License-Identifier: Apache-2.0 */
/* crm_session.h: a second session, in which a test looks, locks and kills */
#ifndef CRM_SESSION_H
#define CRM_SESSION_H

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>
#include <libpq-fe.h>

#include "apr_strings.h"

#include "crm_check.h"

static PGconn *other;

/* Open the session with $CRM_TEST_DATABASE. */
static inline void session_open(void)
{
    other = PQconnectdb(getenv("CRM_TEST_DATABASE"));
    ck_assert_msg(PQstatus(other) == CONNECTION_OK, "%s",
                  PQerrorMessage(other));
}

/* Run SQL in the session. Return the first value of its result, "" if there is
 * none. */
static inline const char *look(const char *sql)
{
    PGresult *result = PQexec(other, sql);
    const char *value = "";

    ck_assert_msg(PQresultStatus(result) == PGRES_COMMAND_OK
                  || PQresultStatus(result) == PGRES_TUPLES_OK,
                  "%s: %s", sql, PQerrorMessage(other));
    if (PQntuples(result) && PQnfields(result)) {
        value = apr_pstrdup(crm_check_pool(), PQgetvalue(result, 0, 0));
    }
    PQclear(result);
    return value;
}

/* The warning "SyncRepWaitForLSN" comes from the server's function of that name, as
 * when it stops waiting for its standby. */
#define UNCONFIRMED "SyncRepWaitForLSN"

/* Takes the place of libpq's, which crm_db asks where a notice comes from. */
char *PQresultErrorField(const PGresult *result, int field);
char *PQresultErrorField(const PGresult *result, int field)
{
    char *(*real)(const PGresult *, int);
    char *text;

    *(void **)&real = dlsym(RTLD_NEXT, "PQresultErrorField");
    text = real(result, PG_DIAG_MESSAGE_PRIMARY);
    return field == PG_DIAG_SOURCE_FUNCTION && text
           && !strcmp(text, UNCONFIRMED) ? text : real(result, field);
}

#endif /* CRM_SESSION_H */
