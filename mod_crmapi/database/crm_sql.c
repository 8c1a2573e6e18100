/* SPDX-License-Identifier: Apache-2.0 */
/* crm_sql.c: statements made of parts */
#include "crm_sql.h"

#include <string.h>

#include "apr_strings.h"

void crm_sql_init(crm_sql_t *sql, apr_pool_t *pool)
{
    memset(sql, 0, sizeof(*sql));
    crm_buf_init(&sql->text, 4096, pool);
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

void crm_sql_clause(crm_sql_t *sql, crm_clause_t clause)
{
    do {
        sql->clauses[clause--] = sql->text.len;
    } while (clause > CRM_SQL_HEAD && !sql->clauses[clause]);
}

/* Add the mark of the bind NUMBER, and its CAST. */
static void add_mark(crm_sql_t *sql, int number, const char *cast)
{
    apr_size_t len = strlen(cast);
    char *mark = crm_buf_reserve(&sql->text, 6 + len);

    mark[0] = CRM_SQL_MARK;
    mark[1] = (char)(0x80 | (number >> 14 & 0x7F));
    mark[2] = (char)(0x80 | (number >> 7 & 0x7F));
    mark[3] = (char)(0x80 | (number & 0x7F));
    mark[4] = mark[5] = ':';
    memcpy(mark + 6, cast, len);
    sql->text.len += 6 + len;
}

int crm_sql_value(crm_sql_t *sql, const char *value, const char *cast)
{
    APR_ARRAY_PUSH(sql->binds, const char *) = value;
    APR_ARRAY_PUSH(sql->casts, const char *) = cast;
    return sql->binds->nelts;
}

int crm_sql_bind(crm_sql_t *sql, const char *value, const char *cast)
{
    int number = crm_sql_value(sql, value, cast);

    add_mark(sql, number, cast);
    return number;
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
        add_mark(sql, number, cast);
        template = mark + 1;
        mark = strchr(template, '?');
    }
    crm_buf_puts(&sql->text, template);
}

const char *crm_sql_cut(crm_sql_t *sql)
{
    const char *text = apr_pstrmemdup(sql->text.pool, sql->text.data,
                                      sql->text.len);

    sql->text.len = 0;
    memset(sql->clauses, 0, sizeof(sql->clauses));
    sql->row = 0;
    return text;
}

void crm_sql_write(crm_sql_t *sql, int row, const char *table)
{
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

const char *crm_sql_words(const char *const *words, int count,
                          apr_pool_t *result_pool)
{
    crm_buf_t buf;

    crm_buf_init(&buf, 64, result_pool);
    crm_buf_putc(&buf, '{');
    for (int i = 0; i < count; i++) {
        if (i) {
            crm_buf_putc(&buf, ',');
        }
        if (words[i]) {
            add_element(&buf, words[i]);
        }
        else {
            crm_buf_puts(&buf, "NULL");
        }
    }
    crm_buf_putc(&buf, '}');
    crm_buf_putc(&buf, '\0');
    return buf.data;
}

const char *crm_sql_array(const apr_array_header_t *strings,
                          apr_pool_t *result_pool)
{
    return crm_sql_words((const char *const *)(const void *)strings->elts,
                         strings->nelts, result_pool);
}

void crm_sql_bind_array(crm_sql_t *sql, const apr_array_header_t *strings,
                        const char *cast)
{
    apr_pool_t *pool = sql->binds->pool;

    crm_sql_bind(sql, crm_sql_array(strings, pool),
                 apr_pstrcat(pool, crm_sql_element(cast), "[]", NULL));
}
