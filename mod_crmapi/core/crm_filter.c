/* SPDX-License-Identifier: Apache-2.0 */
/* crm_filter.c: the conditions that query parameters become */
#include <string.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_op.h"

void crm_filter_bind(crm_sql_t *sql, const crm_filter_t *filter,
                     const char *bind, const crm_call_t *call)
{
    (void)call;
    crm_sql_add(sql, " AND ");
    crm_sql_template(sql, filter->sql, bind, filter->field.type->cast);
}

void crm_filter_boolean(crm_sql_t *sql, const crm_filter_t *filter,
                        const char *bind, const crm_call_t *call)
{
    const char *condition = *bind == 't' ? filter->sql : filter->sql_false;

    (void)call;
    if (*condition) {
        crm_sql_adds(sql, " AND ", condition, NULL);
    }
}

void crm_filter_tags(crm_sql_t *sql, const crm_filter_t *filter,
                     const char *bind, const crm_call_t *call)
{
    const char *match = crm_call_param(call, "tags_match");

    (void)filter;
    if (!*bind) {
        return;
    }
    crm_sql_add(sql, match && !strcmp(match, "all")
                ? " AND t.tags @> " : " AND t.tags && ");
    crm_sql_bind(sql, bind, "text[]");
}

/* Return TEXT as a LIKE pattern that finds it anywhere. */
static const char *like_pattern(const char *text, apr_pool_t *pool)
{
    char *pattern = apr_palloc(pool, strlen(text) * 2 + 3);
    char *out = pattern;

    *out++ = '%';
    for (; *text; text++) {
        if (strchr("%_\\", *text)) {
            *out++ = '\\';
        }
        *out++ = *text;
    }
    *out++ = '%';
    *out = '\0';
    return pattern;
}

/* Return a pattern of the digits of TEXT, if it is made of what telephone
 * numbers are written with, or NULL (contract 7.8). */
static const char *digits_pattern(const char *text, apr_pool_t *pool)
{
    char *pattern = apr_palloc(pool, strlen(text) + 3);
    char *out = pattern;

    *out++ = '%';
    for (; *text; text++) {
        if (apr_isdigit(*text)) {
            *out++ = *text;
        }
        else if (!strchr("+-(). /", *text)) {
            return NULL;
        }
    }
    if (out == pattern + 1) {
        return NULL;
    }
    *out++ = '%';
    *out = '\0';
    return pattern;
}

void crm_filter_search(crm_sql_t *sql, const crm_filter_t *filter,
                       const char *bind, const crm_call_t *call)
{
    const char *pattern = like_pattern(bind, call->pool);
    const char *digits = filter->digits_sql
                         ? digits_pattern(bind, call->pool) : NULL;

    crm_sql_add(sql, " AND (");
    crm_sql_template(sql, filter->sql, pattern, "text");
    if (digits) {
        crm_sql_add(sql, " OR ");
        crm_sql_template(sql, filter->digits_sql, digits, "text");
    }
    crm_sql_add(sql, ")");
}
