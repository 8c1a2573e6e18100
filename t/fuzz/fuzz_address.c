/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_address.c: the forms that addresses are compared by (contract 17.1,
 * 17.2). With CRM_FUZZ_DATABASE, a connection string, each result is compared
 * with that of the database's function. */
/* libFuzzer: -max_len=256 */
#include <libpq-fe.h>

#include "apr_strings.h"

#include "fuzz.h"

#include "crm_email.h"
#include "crm_phone.h"
#include "crm_text.h"

/* Return the connection to compare with, NULL if there is none. */
static PGconn *database(void)
{
    static PGconn *conn;
    const char *where = getenv("CRM_FUZZ_DATABASE");

    if (!conn && where && *where) {
        conn = PQconnectdb(where);
        must(PQstatus(conn) == CONNECTION_OK);
        PQclear(PQexec(conn, "SET client_encoding = 'UTF8'"));
    }
    return conn;
}

/* The database's function of SQL, a query with $1, makes RESULT (or NULL) of
 * TEXT. */
static void as_in_sql(const char *sql, const char *text, const char *result)
{
    PGconn *conn = database();
    PGresult *answer;

    if (!conn) {
        return;
    }
    answer = PQexecParams(conn, sql, 1, NULL, &text, NULL, NULL, 0);
    must(PQresultStatus(answer) == PGRES_TUPLES_OK);
    must(PQgetisnull(answer, 0, 0) == !result
         && (!result || !strcmp(PQgetvalue(answer, 0, 0), result)));
    PQclear(answer);
}

/* NUMBER is an E.164 number (E.164, 6). */
static void is_number(const char *number)
{
    size_t digits = strspn(number + 1, "0123456789");

    must(*number == '+' && number[1] != '0' && !number[digits + 1]);
    must(digits >= 8 && digits <= 15);
}

static void phone(const char *text, apr_pool_t *pool)
{
    const char *plain = crm_phone_plain(text, pool);
    const char *number = crm_phone_e164(text, pool);
    const char *key = crm_phone_key(text, pool);

    must(crm_text_valid_utf8(plain, strlen(plain)));
    must(!strcmp(key, number ? number : text));
    must(!strcmp(crm_phone_key(key, pool), key));
    if (number) {
        is_number(number);
    }
    as_in_sql("SELECT crmapi.phone_plain($1::text)", text, plain);
    as_in_sql("SELECT crmapi.phone_e164($1::text)", text, number);
    as_in_sql("SELECT crmapi.phone_key($1::text)", text, key);
}

static void email(const char *text, apr_pool_t *pool)
{
    const char *form = crm_email_canonical(text, pool);
    const char *key = crm_email_key(text, pool), *at;

    must(!crm_email_check(text, strlen(text), pool) == (form != NULL));
    must(!form || !strcmp(key, form));
    if (!form) {        /* the database's function refuses less */
        return;
    }
    at = strchr(form, '@');
    must(at && at > form && strlen(at) <= 254 && at[1] != '.' && at[1] != '-');
    must(!at[1 + strspn(at + 1, "abcdefghijklmnopqrstuvwxyz0123456789-_.")]);
    must(form[strlen(form) - 1] != '.' && !strstr(at, ".."));
    must(!strcmp(crm_email_key(form, pool), form));
    as_in_sql("SELECT crmapi.email_canonical($1::text)", text, form);
    as_in_sql("SELECT crmapi.email_key($1::text)", text, form);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool = fuzz_pool(NULL);
    const char *text;

    text = apr_pstrmemdup(pool, (const char *)data, size);
    if (crm_text_valid_utf8(text, strlen(text))) {
        phone(text, pool);
        email(text, pool);
    }
    apr_pool_destroy(pool);
    return 0;
}
