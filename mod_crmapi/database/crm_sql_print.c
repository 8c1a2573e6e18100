/* SPDX-License-Identifier: Apache-2.0 */
/* crm_sql_print.c: the forms of a statement: plain, for Citus, for several
 * requests */
#include "crm_sql_print.h"

#include <string.h>

#include "crm_sql_cache.h"

/* Lock timeout of a write for several requests. Without it, all would wait for
 * a lock that only one of them needs. */
#define LOCK_TIMEOUT "20ms"

/* A form: how values and marks are printed. */
typedef struct form_t {
    const char *value;          /* before the number of a value, or NULL: it is
                                   always the workspace, here without number */
    char other;                 /* the mark of the text that it does not have */
} form_t;

static const form_t plain = {"$", 'c'};
static const form_t citus = {"$", 'p'};
static const form_t shared = {"batch.p", 'c'};

/* In an INSERT, RETURNING cannot refer to batch. */
static const form_t returning = {NULL, 'c'};

/* Room for a value: what is before its number, and that. */
#define VALUE_MAX 32

/* Return the number of the value in MARK. */
static int number_of(const char *mark)
{
    return (mark[1] & 0x7F) << 14 | (mark[2] & 0x7F) << 7 | (mark[3] & 0x7F);
}

/* Write NUMBER to OUT. Return the end. */
static char *write_number(char *out, int number)
{
    if (number >= 10) {
        out = write_number(out, number / 10);
    }
    *out = (char)('0' + number % 10);
    return out + 1;
}

/* Write the value NUMBER in FORM to OUT. Return the end. */
static char *write_value(char *out, int number, const form_t *form)
{
    return form->value ? write_number(stpcpy(out, form->value), number)
           : stpcpy(out, "t.workspace_id");
}

/* Add to BUF what the bytes FROM to before TO of SQL's text are in FORM. */
static void add_parts(crm_buf_t *buf, const crm_sql_t *sql, apr_size_t from,
                      apr_size_t to, const form_t *form)
{
    int shown = 1;

    while (from < to) {
        char *out = crm_buf_reserve(buf, to - from + VALUE_MAX);
        const char *text = sql->text.data + from;
        const char *mark = memchr(text, CRM_SQL_MARK, to - from);
        apr_size_t len = mark ? (apr_size_t)(mark - text) : to - from;

        from += len;
        if (shown) {
            memcpy(out, text, len);
            out += len;
        }
        if (mark && mark[1] & 0x80) {
            from += 4;
            if (shown) {
                out = write_value(out, number_of(mark), form);
            }
        }
        else if (mark) {
            from += 2;
            shown = mark[1] != form->other;
        }
        buf->len = (apr_size_t)(out - buf->data);
    }
}

/* Add the clauses of SQL from FIRST to before LAST in FORM. */
static void add_clauses(crm_buf_t *buf, const crm_sql_t *sql,
                        crm_clause_t first, crm_clause_t last,
                        const form_t *form)
{
    add_parts(buf, sql, sql->clauses[first],
              last < CRM_SQL_CLAUSES ? sql->clauses[last] : sql->text.len,
              form);
}

void crm_sql_either(crm_sql_t *sql, const char *plain_text,
                    const char *citus_text)
{
    crm_sql_add(sql, sql->distributed ? citus_text : plain_text);
}

/* Return the text of SQL, in its pool. */
static const char *print(const crm_sql_t *sql)
{
    crm_buf_t buf;

    crm_buf_init(&buf, 2 * sql->text.len, sql->text.pool);
    add_parts(&buf, sql, 0, sql->text.len, sql->distributed ? &citus : &plain);
    crm_buf_putc(&buf, '\0');
    return buf.data;
}

const char *crm_sql_form(const char *parts, int distributed,
                         apr_pool_t *result_pool)
{
    crm_sql_t sql;

    if (!strchr(parts, CRM_SQL_MARK)) {
        return parts;
    }
    crm_sql_init(&sql, result_pool);
    sql.distributed = distributed;
    crm_sql_add(&sql, parts);
    return print(&sql);
}

void crm_sql_stmt(crm_stmt_t *stmt, crm_sql_t *sql)
{
    if (!sql->printed) {
        crm_sql_cache_find(sql);
    }
    if (!sql->printed) {
        sql->printed = print(sql);
        crm_sql_cache_add(sql);
    }
    stmt->sql = sql->printed;
    stmt->count = sql->binds->nelts;
    stmt->values = (const char *const *)sql->binds->elts;
}

/* Its values are the first two: the workspace and the terms. */
int crm_sql_before(crm_stmt_t *stmt, const crm_sql_t *sql)
{
    crm_sql_t before;

    if (!sql->distributed || !sql->before) {
        return 0;
    }
    before = *sql;
    before.printed = NULL;
    crm_buf_init(&before.text, 256, sql->text.pool);
    crm_sql_add(&before, sql->before);
    crm_sql_stmt(stmt, &before);
    stmt->count = 2;
    return 1;
}

int crm_sql_sees_settings(const crm_sql_t *sql)
{
    return !sql->distributed;
}

int crm_sql_is_shared(const crm_sql_t *sql)
{
    return !sql->distributed;
}

/* Add "unnest(...)" of all binds of SQL. */
static void add_unnest(crm_buf_t *buf, const crm_sql_t *sql)
{
    crm_buf_puts(buf, "unnest(");
    for (int i = 0; i < sql->casts->nelts; i++) {
        const char *cast = APR_ARRAY_IDX(sql->casts, i, const char *);

        crm_buf_printf(buf, "%s$%d::%s[]", i ? ", " : "", i + 1,
                       crm_sql_element(cast));
    }
    crm_buf_putc(buf, ')');
}

/* Add the columns "p1, p2, ..." of the binds of SQL. */
static void add_columns(crm_buf_t *buf, const crm_sql_t *sql)
{
    for (int i = 0; i < sql->casts->nelts; i++) {
        crm_buf_printf(buf, "%sp%d", i ? ", " : "", i + 1);
    }
}

/* Add the statement for several SELECTs. It has no ORDER BY, so that the rows
 * are not sorted. Only a nested loop can join a LATERAL subquery that depends
 * on the other side. It takes the sets of values in their order and, for each,
 * the rows of the subquery in its order. OFFSET 0 keeps the planner from
 * merging the subquery with the rest. */
static void add_batch_read(crm_buf_t *buf, const crm_sql_t *sql)
{
    crm_buf_puts(buf, "SELECT answer.*, batch.n FROM ");
    add_unnest(buf, sql);
    crm_buf_puts(buf, " WITH ORDINALITY batch (");
    add_columns(buf, sql);
    crm_buf_puts(buf, ", n) CROSS JOIN LATERAL (");
    add_clauses(buf, sql, CRM_SQL_HEAD, CRM_SQL_CLAUSES, &shared);
    crm_buf_puts(buf, " OFFSET 0) answer");
}

/* Add the sets of values as the query "batch". For an UPDATE it has only the
 * sets whose rows could be locked. MATERIALIZED: it is executed once, first. */
static void add_batch_values(crm_buf_t *buf, const crm_sql_t *sql)
{
    crm_buf_puts(buf, "WITH batch AS MATERIALIZED (SELECT v.* FROM ");
    if (sql->table) {
        crm_buf_puts(buf, "(SELECT * FROM ");
    }
    add_unnest(buf, sql);
    crm_buf_puts(buf, " v (");
    add_columns(buf, sql);
    crm_buf_putc(buf, ')');
    if (sql->table) {
        crm_buf_printf(buf, " ORDER BY p1, p%d) v CROSS JOIN LATERAL (SELECT"
                       " FROM crmapi.%s r WHERE r.workspace_id = v.p1::uuid"
                       " AND r.id = v.p%d::uuid FOR NO KEY UPDATE SKIP LOCKED)"
                       " held", sql->row, sql->table, sql->row);
    }
    crm_buf_puts(buf, " WHERE (SELECT set_config('lock_timeout', '" LOCK_TIMEOUT
                 "', true)) IS NOT NULL) ");
}

/* Add the statement for several writes. */
static void add_batch_write(crm_buf_t *buf, const crm_sql_t *sql)
{
    add_batch_values(buf, sql);
    add_clauses(buf, sql, CRM_SQL_HEAD, CRM_SQL_FROM, &shared);
    crm_buf_puts(buf, " FROM batch");
    add_clauses(buf, sql, CRM_SQL_WHERE, CRM_SQL_RETURNING, &shared);
    add_clauses(buf, sql, CRM_SQL_RETURNING, CRM_SQL_CLAUSES, &returning);
    crm_buf_puts(buf, ", t.workspace_id, t.id");
}

const char *crm_sql_batch(const crm_sql_t *sql, apr_pool_t *result_pool)
{
    crm_buf_t buf;

    crm_buf_init(&buf, 2 * sql->text.len, result_pool);
    if (sql->row) {
        add_batch_write(&buf, sql);
    }
    else {
        add_batch_read(&buf, sql);
    }
    crm_buf_putc(&buf, '\0');
    return buf.data;
}
