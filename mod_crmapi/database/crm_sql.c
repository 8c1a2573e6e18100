/* SPDX-License-Identifier: Apache-2.0 */
/* crm_sql.c: building a statement's text and binds */
#include "crm_sql.h"

#include <string.h>

#include "apr_lib.h"
#include "apr_strings.h"

void crm_sql_init(crm_sql_t *sql, apr_pool_t *pool)
{
    crm_buf_init(&sql->text, 1024, pool);
    sql->binds = apr_array_make(pool, 32, sizeof(const char *));
    sql->casts = apr_array_make(pool, 32, sizeof(const char *));
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

void crm_sql_stmt(crm_stmt_t *stmt, crm_sql_t *sql)
{
    crm_buf_putc(&sql->text, '\0');
    stmt->sql = sql->text.data;
    stmt->count = sql->binds->nelts;
    stmt->values = (const char *const *)sql->binds->elts;
}

/* Add the type of the array of all values of a bind with CAST. PostgreSQL has
 * no arrays of arrays: values that are arrays are passed as text. */
static void add_array_type(crm_buf_t *buf, const char *cast)
{
    crm_buf_puts(buf, strstr(cast, "[]") ? "text" : cast);
    crm_buf_puts(buf, "[]");
}

/* Add TEXT, a statement, with batch.p3 in place of each $3. The cast after it
 * stays. */
static void add_with_columns(crm_buf_t *buf, const char *text)
{
    int quoted = 0;

    for (; *text; text++) {
        quoted ^= *text == '\'';
        if (*text == '$' && !quoted && apr_isdigit(text[1])) {
            crm_buf_puts(buf, "batch.p");
        }
        else {
            crm_buf_putc(buf, *text);
        }
    }
}

/* There is no ORDER BY, so that nothing sorts the rows. Only a nested loop can
 * join a LATERAL subquery that depends on the other side. It takes the values
 * in their order and, for each, the rows of the subquery in its order. OFFSET
 * 0 keeps the planner from merging the subquery with the rest. */
const char *crm_sql_batch(const crm_sql_t *sql, apr_pool_t *result_pool)
{
    crm_buf_t buf;

    crm_buf_init(&buf, 2 * sql->text.len, result_pool);
    crm_buf_puts(&buf, "SELECT answer.*, batch.n FROM unnest(");
    for (int i = 0; i < sql->casts->nelts; i++) {
        crm_buf_printf(&buf, "%s$%d::", i ? ", " : "", i + 1);
        add_array_type(&buf, APR_ARRAY_IDX(sql->casts, i, const char *));
    }
    crm_buf_puts(&buf, ") WITH ORDINALITY batch (");
    for (int i = 0; i < sql->casts->nelts; i++) {
        crm_buf_printf(&buf, "p%d, ", i + 1);
    }
    crm_buf_puts(&buf, "n) CROSS JOIN LATERAL (");
    add_with_columns(&buf, sql->text.data);
    crm_buf_puts(&buf, " OFFSET 0) answer");
    crm_buf_putc(&buf, '\0');
    return buf.data;
}
