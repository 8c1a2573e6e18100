/* SPDX-License-Identifier: Apache-2.0 */
/* crm_sql.c: building a statement's text and binds */
#include "crm_sql.h"

#include <string.h>

#include "apr_lib.h"
#include "apr_strings.h"

/* Lock timeout of a write for several requests. Without it, all would wait for
 * a lock that only one of them needs. */
#define LOCK_TIMEOUT "20ms"

void crm_sql_init(crm_sql_t *sql, apr_pool_t *pool)
{
    crm_buf_init(&sql->text, 1024, pool);
    sql->binds = apr_array_make(pool, 32, sizeof(const char *));
    sql->casts = apr_array_make(pool, 32, sizeof(const char *));
    sql->distributed = 0;
    sql->row = 0;
    sql->from = 0;
    sql->table = NULL;
}

void crm_sql_add(crm_sql_t *sql, const char *text)
{
    crm_buf_puts(&sql->text, text);
}

void crm_sql_adds(crm_sql_t *sql, ...)
{
    const char *text;
    va_list args;

    va_start(args, sql);
    while ((text = va_arg(args, const char *))) {
        crm_buf_puts(&sql->text, text);
    }
    va_end(args);
}

/* Add the placeholder of bind NUMBER with CAST. */
static void add_placeholder(crm_sql_t *sql, int number, const char *cast)
{
    char digits[16];
    apr_size_t len = (apr_size_t)apr_snprintf(digits, sizeof(digits), "$%d::",
                                              number);

    crm_buf_add(&sql->text, digits, len);
    crm_buf_puts(&sql->text, cast);
}

int crm_sql_value(crm_sql_t *sql, const char *value, const char *cast)
{
    APR_ARRAY_PUSH(sql->binds, const char *) = value;
    APR_ARRAY_PUSH(sql->casts, const char *) = cast;
    return sql->binds->nelts;
}

void crm_sql_bind(crm_sql_t *sql, const char *value, const char *cast)
{
    add_placeholder(sql, crm_sql_value(sql, value, cast), cast);
}

void crm_sql_template(crm_sql_t *sql, const char *template, const char *value,
                      const char *cast)
{
    const char *mark = strchr(template, '?');
    int number = 0;

    while (mark) {
        crm_buf_add(&sql->text, template, (apr_size_t)(mark - template));
        if (!number) {
            number = crm_sql_value(sql, value, cast);
        }
        add_placeholder(sql, number, cast);
        template = mark + 1;
        mark = strchr(template, '?');
    }
    crm_buf_puts(&sql->text, template);
}

void crm_sql_write(crm_sql_t *sql, apr_size_t from, int row, const char *table)
{
    sql->from = from;
    sql->row = row;
    sql->table = table;
}

/* Add STRING as an array element. It is always quoted. */
static void add_element(crm_buf_t *buf, const char *string)
{
    crm_buf_putc(buf, '"');
    while (*string) {
        apr_size_t len = strcspn(string, "\"\\");

        crm_buf_add(buf, string, len);
        string += len;
        if (*string) {
            crm_buf_putc(buf, '\\');
            crm_buf_putc(buf, *string++);
        }
    }
    crm_buf_putc(buf, '"');
}

const char *crm_sql_array(const apr_array_header_t *strings,
                          apr_pool_t *result_pool)
{
    crm_buf_t buf;

    crm_buf_init(&buf, 64, result_pool);
    crm_buf_putc(&buf, '{');
    for (int i = 0; i < strings->nelts; i++) {
        const char *string = APR_ARRAY_IDX(strings, i, const char *);

        if (i) {
            crm_buf_putc(&buf, ',');
        }
        if (string) {
            add_element(&buf, string);
        }
        else {
            crm_buf_puts(&buf, "NULL");
        }
    }
    crm_buf_putc(&buf, '}');
    crm_buf_putc(&buf, '\0');
    return buf.data;
}

/* Add the type of the array of all values of a bind with CAST. PostgreSQL has
 * no arrays of arrays: values that are arrays are passed as text. */
static void add_array_type(crm_buf_t *buf, const char *cast)
{
    crm_buf_puts(buf, strstr(cast, "[]") ? "text" : cast);
    crm_buf_puts(buf, "[]");
}

void crm_sql_bind_array(crm_sql_t *sql, const apr_array_header_t *strings,
                        const char *cast)
{
    int number = crm_sql_value(sql, crm_sql_array(strings, sql->binds->pool),
                               cast);

    crm_buf_printf(&sql->text, "$%d::", number);
    add_array_type(&sql->text, cast);
}

/* Replace each NEEDLE in the text of SQL by infinity. */
static void replace_time(crm_sql_t *sql, const char *needle)
{
    static const char infinity[] = "'infinity'::timestamptz";
    char *at = sql->text.data;

    while ((at = strstr(at, needle))) {
        memset(at, ' ', strlen(needle));
        memcpy(at, infinity, sizeof(infinity) - 1);
    }
}

void crm_sql_stmt(crm_stmt_t *stmt, crm_sql_t *sql)
{
    crm_buf_putc(&sql->text, '\0');
    if (sql->distributed && strstr(sql->text.data, "UPDATE crmapi.")) {
        replace_time(sql, CRM_SQL_LATER);
        replace_time(sql, CRM_SQL_NOW);
    }
    stmt->sql = sql->text.data;
    stmt->count = sql->binds->nelts;
    stmt->values = (const char *const *)sql->binds->elts;
}

/* Return the next placeholder of a bind in TEXT, up to END, or END. */
static const char *placeholder(const char *text, const char *end)
{
    int quoted = 0;

    for (; text < end; text++) {
        quoted ^= *text == '\'';
        if (*text == '$' && !quoted && apr_isdigit(text[1])) {
            break;
        }
    }
    return text;
}

/* Add LEN bytes of TEXT, a statement, with batch.p3 in place of each $3. Casts
 * stay. */
static void add_with_columns(crm_buf_t *buf, const char *text, apr_size_t len)
{
    const char *end = text + len;

    while (text < end) {
        const char *mark = placeholder(text, end);

        crm_buf_add(buf, text, (apr_size_t)(mark - text));
        if (mark < end) {
            crm_buf_puts(buf, "batch.p");
            mark++;
        }
        text = mark;
    }
}

/* Add TEXT, the RETURNING clause, with t.workspace_id in place of $1, its only
 * bind: in an INSERT, RETURNING cannot refer to batch. */
static void add_returning(crm_buf_t *buf, const char *text)
{
    const char *end = text + strlen(text);

    while (text < end) {
        const char *mark = placeholder(text, end);

        crm_buf_add(buf, text, (apr_size_t)(mark - text));
        if (mark < end) {
            crm_buf_puts(buf, "t.workspace_id");
            mark += 2;
        }
        text = mark;
    }
}

/* Add "unnest(...)" of all binds of SQL. */
static void add_unnest(crm_buf_t *buf, const crm_sql_t *sql)
{
    crm_buf_puts(buf, "unnest(");
    for (int i = 0; i < sql->casts->nelts; i++) {
        crm_buf_printf(buf, "%s$%d::", i ? ", " : "", i + 1);
        add_array_type(buf, APR_ARRAY_IDX(sql->casts, i, const char *));
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
    add_with_columns(buf, sql->text.data, strlen(sql->text.data));
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

static void add_batch_write(crm_buf_t *buf, const crm_sql_t *sql)
{
    const char *text = sql->text.data;
    const char *rest = text + sql->from;
    const char *returning = strstr(rest, " RETURNING ");

    add_batch_values(buf, sql);
    add_with_columns(buf, text, sql->from);
    crm_buf_puts(buf, " FROM batch");
    add_with_columns(buf, rest, (apr_size_t)(returning - rest));
    add_returning(buf, returning);
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
