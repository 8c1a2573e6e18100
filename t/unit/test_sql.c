/* SPDX-License-Identifier: Apache-2.0 */
/* test_sql.c: a statement's parts and values, and its forms */
#include <string.h>

#include "apr_strings.h"

#include "crm_check.h"
#include "crm_sql_cache.h"
#include "crm_sql_print.h"

/* A statement of parts: its clauses, each with '?' for one more value (uuid), and
 * its three forms. */
typedef struct sample_t {
    const char *clauses[CRM_SQL_CLAUSES];
    int row;                    /* a write: the bind that is its id */
    const char *table;          /* the table of an UPDATE */
    const char *plain, *citus, *shared;
} sample_t;

#define BATCH(types, columns) \
    "SELECT answer.*, batch.n FROM unnest(" types ") WITH ORDINALITY" \
    " batch (" columns ", n) CROSS JOIN LATERAL ("

#define UPDATE_HEAD "WITH batch AS MATERIALIZED (SELECT v.* FROM (SELECT *" \
    " FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[]) v (p1, p2," \
    " p3, p4) ORDER BY p1, p4) v CROSS JOIN LATERAL (SELECT FROM" \
    " crmapi.contact r WHERE r.workspace_id = v.p1::uuid AND r.id =" \
    " v.p4::uuid FOR NO KEY UPDATE SKIP LOCKED) held" LOCK

#define LOCK \
    " WHERE (SELECT set_config('lock_timeout', '20ms', true)) IS NOT NULL) "

#define TIME "date_trunc('milliseconds', clock_timestamp())"

static const sample_t samples[] = {
    {{"SELECT t.id FROM crmapi.contact t", NULL, " WHERE " CRM_SQL_OWN("t")},
     0, NULL,
     "SELECT t.id FROM crmapi.contact t WHERE t.workspace_id = $1::uuid",
     "SELECT t.id FROM crmapi.contact t WHERE t.workspace_id = $1::uuid",
     BATCH("$1::uuid[], $2::uuid[]", "p1, p2")
     "SELECT t.id FROM crmapi.contact t WHERE t.workspace_id = batch.p1::uuid"
     " OFFSET 0) answer"},
    /* a value has one number, wherever it stands; a '$' of the text has none */
    {{"SELECT '$1', ?, ", NULL, CRM_SQL_TERMS " = " CRM_SQL_WORKSPACE}, 0, NULL,
     "SELECT '$1', $3::uuid, $2::uuid = $1::uuid",
     "SELECT '$1', $3::uuid, $2::uuid = $1::uuid",
     BATCH("$1::uuid[], $2::uuid[], $3::uuid[]", "p1, p2, p3")
     "SELECT '$1', batch.p3::uuid, batch.p2::uuid = batch.p1::uuid"
     " OFFSET 0) answer"},
    /* text of one form, with values */
    {{"SELECT ", "a" CRM_SQL_EITHER("", ", k WHERE " CRM_SQL_OWN("k")),
      CRM_SQL_EITHER(" WHERE " CRM_SQL_OWN("a"), "") " LIMIT 1"}, 0, NULL,
     "SELECT a WHERE a.workspace_id = $1::uuid LIMIT 1",
     "SELECT a, k WHERE k.workspace_id = $1::uuid LIMIT 1",
     BATCH("$1::uuid[], $2::uuid[]", "p1, p2")
     "SELECT a WHERE a.workspace_id = batch.p1::uuid LIMIT 1 OFFSET 0) answer"},
    {{"SELECT ", NULL, " WHERE " CRM_SQL_OWN_HIDDEN("t")}, 0, NULL,
     "SELECT  WHERE (t.workspace_id = $1::uuid) IS TRUE",
     "SELECT  WHERE t.workspace_id = $1::uuid",
     BATCH("$1::uuid[], $2::uuid[]", "p1, p2")
     "SELECT  WHERE (t.workspace_id = batch.p1::uuid) IS TRUE OFFSET 0)"
     " answer"},
    /* an INSERT: FROM batch stands where Citus has the key */
    {{"INSERT INTO crmapi.tag AS t SELECT "
      CRM_SQL_EITHER(CRM_SQL_WORKSPACE, "k.workspace_id") ", ?",
      CRM_SQL_EITHER("", " FROM k WHERE " CRM_SQL_OWN("k")),
      CRM_SQL_EITHER(" WHERE " CRM_SQL_TERMS " = 'RETURNING '", ""),
      " RETURNING t.id, " CRM_SQL_WORKSPACE},
     3, NULL,
     "INSERT INTO crmapi.tag AS t SELECT $1::uuid, $3::uuid WHERE $2::uuid ="
     " 'RETURNING ' RETURNING t.id, $1::uuid",
     "INSERT INTO crmapi.tag AS t SELECT k.workspace_id, $3::uuid FROM k WHERE"
     " k.workspace_id = $1::uuid RETURNING t.id, $1::uuid",
     "WITH batch AS MATERIALIZED (SELECT v.* FROM unnest($1::uuid[],"
     " $2::uuid[], $3::uuid[]) v (p1, p2, p3)" LOCK
     "INSERT INTO crmapi.tag AS t SELECT batch.p1::uuid, batch.p3::uuid"
     " FROM batch WHERE batch.p2::uuid = 'RETURNING ' RETURNING t.id,"
     " t.workspace_id::uuid, t.workspace_id, t.id"},
    /* an UPDATE: with Citus a trigger puts the time */
    {{"UPDATE crmapi.contact t SET a = ?, at = " CRM_SQL_NOW ", updated_at = "
      CRM_SQL_LATER, NULL,
      " WHERE " CRM_SQL_OWN("t") " AND t.id = ?", " RETURNING t.id"},
     4, "contact",
     "UPDATE crmapi.contact t SET a = $3::uuid, at = " TIME ", updated_at ="
     " greatest(" TIME ", t.updated_at + interval '1 millisecond') WHERE"
     " t.workspace_id = $1::uuid AND t.id = $4::uuid RETURNING t.id",
     "UPDATE crmapi.contact t SET a = $3::uuid, at = 'infinity'::timestamptz,"
     " updated_at = 'infinity'::timestamptz WHERE"
     " t.workspace_id = $1::uuid AND t.id = $4::uuid RETURNING t.id",
     UPDATE_HEAD
     "UPDATE crmapi.contact t SET a = batch.p3::uuid, at = " TIME
     ", updated_at = greatest(" TIME ", t.updated_at + interval"
     " '1 millisecond') FROM batch WHERE t.workspace_id = batch.p1::uuid AND"
     " t.id = batch.p4::uuid RETURNING t.id, t.workspace_id, t.id"},
};

/* Begin SQL with the values of crm_rest_sql(). */
static void begin(crm_sql_t *sql, int distributed)
{
    crm_sql_init(sql, crm_check_pool());
    sql->distributed = distributed;
    crm_sql_value(sql, "workspace", "uuid");
    crm_sql_value(sql, "terms", "uuid");
}

/* Make SQL of SAMPLE. */
static void make(crm_sql_t *sql, const sample_t *sample, int distributed)
{
    begin(sql, distributed);
    for (int i = 0; i < CRM_SQL_CLAUSES; i++) {
        if (i && sample->clauses[i]) {
            crm_sql_clause(sql, (crm_clause_t)i);
        }
        crm_sql_template(sql, sample->clauses[i] ? sample->clauses[i] : "",
                         "value", "uuid");
    }
    if (sample->row) {
        crm_sql_write(sql, sample->row, sample->table);
    }
}

static const char *text_of(crm_sql_t *sql)
{
    crm_stmt_t stmt;

    crm_sql_stmt(&stmt, sql);
    return stmt.sql;
}

START_TEST(a_statement_has_three_forms)
{
    const sample_t *sample = &samples[_i];
    crm_sql_t sql;

    make(&sql, sample, 1);
    ck_assert_str_eq(text_of(&sql), sample->citus);
    ck_assert(!crm_sql_is_shared(&sql));
    ck_assert(!crm_sql_sees_settings(&sql));
    make(&sql, sample, 0);
    ck_assert_str_eq(text_of(&sql), sample->plain);
    ck_assert_str_eq(text_of(&sql), sample->plain);
    ck_assert(crm_sql_is_shared(&sql));
    ck_assert(crm_sql_sees_settings(&sql));
    ck_assert_str_eq(crm_sql_batch(&sql, crm_check_pool()), sample->shared);
}
END_TEST

START_TEST(values_are_numbered_in_their_order)
{
    crm_sql_t sql;
    crm_stmt_t stmt;

    crm_sql_init(&sql, crm_check_pool());
    crm_sql_add(&sql, "SELECT ");
    ck_assert_int_eq(crm_sql_bind(&sql, "a", "text"), 1);
    crm_sql_adds(&sql, ", ", "x", ", ", NULL);
    ck_assert_int_eq(crm_sql_bind(&sql, NULL, "uuid"), 2);
    crm_sql_stmt(&stmt, &sql);
    ck_assert_str_eq(stmt.sql, "SELECT $1::text, x, $2::uuid");
    ck_assert_int_eq(stmt.count, 2);
    ck_assert_str_eq(stmt.values[0], "a");
    ck_assert_ptr_null(stmt.values[1]);
}
END_TEST

START_TEST(a_template_has_one_value)
{
    crm_sql_t sql;

    crm_sql_init(&sql, crm_check_pool());
    crm_sql_bind(&sql, "first", "int");
    crm_sql_template(&sql, " x = ? OR y = ?", "v'; --", "text");
    crm_sql_template(&sql, " AND z", "unused", "text");
    ck_assert_int_eq(sql.binds->nelts, 2);
    ck_assert_str_eq(APR_ARRAY_IDX(sql.binds, 1, const char *), "v'; --");
    ck_assert_str_eq(text_of(&sql),
                     "$1::int x = $2::text OR y = $2::text AND z");
}
END_TEST

START_TEST(a_statement_may_have_many_values)
{
    crm_sql_t sql;
    const char *text;
    apr_size_t len;

    crm_sql_init(&sql, crm_check_pool());
    for (int i = 0; i < 65535; i++) {
        crm_sql_add(&sql, ",");
        crm_sql_bind(&sql, apr_itoa(crm_check_pool(), i), "int");
    }
    text = text_of(&sql);
    len = strlen(text);
    ck_assert_int_eq(sql.binds->nelts, 65535);
    ck_assert(strstr(text, ",$1::int,$2::int,$3::int") == text);
    ck_assert(strstr(text, ",$128::int,$129::int,") != NULL);
    ck_assert(strstr(text, ",$16384::int,$16385::int,") != NULL);
    ck_assert_str_eq(text + len - 12, ",$65535::int");
    ck_assert_str_eq(APR_ARRAY_IDX(sql.binds, 65534, const char *), "65534");
}
END_TEST

START_TEST(an_array_is_one_value)
{
    apr_array_header_t *strings = apr_array_make(crm_check_pool(), 2,
                                                 sizeof(const char *));
    crm_sql_t sql;

    APR_ARRAY_PUSH(strings, const char *) = "a\"b";
    APR_ARRAY_PUSH(strings, const char *) = NULL;
    crm_sql_init(&sql, crm_check_pool());
    crm_sql_bind_array(&sql, strings, "uuid");
    crm_sql_add(&sql, ", ");
    crm_sql_bind_array(&sql, strings, "text[]");
    ck_assert_str_eq(text_of(&sql), "$1::uuid[], $2::text[]");
    ck_assert_str_eq(APR_ARRAY_IDX(sql.binds, 0, const char *),
                     "{\"a\\\"b\",NULL}");
}
END_TEST

START_TEST(a_statement_can_stand_in_another)
{
    crm_sql_t sql;
    const char *write;

    begin(&sql, 0);
    crm_sql_template(&sql, "DELETE FROM x WHERE id = ? AND "
                     CRM_SQL_EITHER(CRM_SQL_TERMS, "false"), "id", "uuid");
    write = crm_sql_cut(&sql);
    crm_sql_adds(&sql, "WITH w AS (", write, "), ", NULL);
    crm_sql_bind(&sql, "more", "text");
    ck_assert_str_eq(text_of(&sql), "WITH w AS (DELETE FROM x WHERE id ="
                     " $3::uuid AND $2::uuid), $4::text");
}
END_TEST

START_TEST(with_citus_another_statement_asks_for_the_key_before)
{
    crm_sql_t sql;
    crm_stmt_t stmt;

    begin(&sql, 1);
    ck_assert(!crm_sql_before(&stmt, &sql));
    sql.before = "SELECT FROM k WHERE " CRM_SQL_OWN("k");
    crm_sql_bind(&sql, "more", "text");
    ck_assert(crm_sql_before(&stmt, &sql));
    ck_assert_str_eq(stmt.sql, "SELECT FROM k WHERE k.workspace_id = $1::uuid");
    ck_assert_int_eq(stmt.count, 2);
    ck_assert_str_eq(stmt.values[1], "terms");
    begin(&sql, 0);
    sql.before = "SELECT";
    ck_assert(!crm_sql_before(&stmt, &sql));
}
END_TEST

/* Return the text of a statement with the parts HEAD and TAIL and a value of the
 * type CAST. */
static const char *text_with(const char *head, const char *cast,
                             const char *tail, int distributed)
{
    crm_sql_t sql;

    begin(&sql, distributed);
    crm_sql_add(&sql, head);
    crm_sql_bind(&sql, "value", cast);
    crm_sql_add(&sql, tail);
    return text_of(&sql);
}

START_TEST(a_statement_is_printed_once)
{
    char head[] = "SELECT " CRM_SQL_EITHER("a", "b") " WHERE x = ";
    const char *first = text_with(head, "text", " LIMIT 1", 0);
    char *copy = apr_pstrdup(crm_check_pool(), head);

    ck_assert_str_eq(first, "SELECT a WHERE x = $3::text LIMIT 1");
    ck_assert_ptr_eq(text_with(copy, "text", " LIMIT 1", 0), first);
    /* its memory has another text now */
    strcpy(copy, "SELECT c WHERE x = ");
    ck_assert_str_eq(text_with(copy, "text", " LIMIT 1", 0),
                     "SELECT c WHERE x = $3::text LIMIT 1");
    ck_assert_str_eq(text_with(head, "uuid", " LIMIT 1", 0),
                     "SELECT a WHERE x = $3::uuid LIMIT 1");
    ck_assert_str_eq(text_with(head, "text", " LIMIT 2", 0),
                     "SELECT a WHERE x = $3::text LIMIT 2");
    ck_assert_str_eq(text_with(head, "text", " LIMIT 1", 1),
                     "SELECT b WHERE x = $3::text LIMIT 1");
    ck_assert_ptr_eq(text_with(head, "text", " LIMIT 1", 0), first);
}
END_TEST

/* Each byte of a statement is changed once, so that also those are tried that the
 * hash of the cache does not look at. */
START_TEST(no_statements_share_a_text)
{
    char parts[512];
    crm_sql_t sql;

    memset(parts, 'a', sizeof(parts) - 1);
    parts[sizeof(parts) - 1] = '\0';
    for (size_t i = 0; i < sizeof(parts) - 1; i++) {
        for (char c = 'a'; c <= 'c'; c++) {
            for (int again = 0; again < 2; again++) {
                parts[i] = c;
                begin(&sql, 0);
                crm_sql_add(&sql, parts);
                ck_assert_str_eq(text_of(&sql), parts);
            }
        }
        parts[i] = 'a';
    }
}
END_TEST

START_TEST(what_is_kept_is_bounded)
{
    enum { LEN = 16 * 1024 };
    char *parts = apr_pcalloc(crm_check_pool(), LEN + 1);
    int kept = 0, tries = 0;

    memset(parts, 'x', LEN);
    for (; tries < 2 * CRM_SQL_CACHE_MAX / LEN; tries++) {
        const char *first;

        memcpy(parts, apr_psprintf(crm_check_pool(), "%06d", tries), 6);
        first = text_with(parts, "text", "", 0);
        kept += text_with(parts, "text", "", 0) == first;
    }
    ck_assert_int_gt(kept, 0);
    ck_assert_int_le(kept, CRM_SQL_CACHE_MAX / (2 * LEN));
    ck_assert_str_eq(text_with("SELECT ", "text", " AS new", 0),
                     "SELECT $3::text AS new");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sql");
    TCase *tcase = tcase_create("sql");

    tcase_add_loop_test(tcase, a_statement_has_three_forms, 0,
                        COUNT(samples));
    tcase_add_test(tcase, values_are_numbered_in_their_order);
    tcase_add_test(tcase, a_template_has_one_value);
    tcase_add_test(tcase, a_statement_may_have_many_values);
    tcase_add_test(tcase, an_array_is_one_value);
    tcase_add_test(tcase, a_statement_can_stand_in_another);
    tcase_add_test(tcase, with_citus_another_statement_asks_for_the_key_before);
    tcase_add_test(tcase, a_statement_is_printed_once);
    tcase_add_test(tcase, no_statements_share_a_text);
    tcase_add_test(tcase, what_is_kept_is_bounded);
    suite_add_tcase(suite, tcase);
    return crm_check_main(suite);
}
