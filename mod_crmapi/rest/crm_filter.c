/* SPDX-License-Identifier: Apache-2.0 */
/* crm_filter.c: filters as SQL predicates */
#include "crm_filter.h"

#include <string.h>

#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_rest.h"
#include "crm_text.h"

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

/* A collation other than that of the indexes on the column, so that the planner
 * cannot use them for the condition. Equality is the same in both
 * collations. */
#define UNINDEXED " COLLATE \"default\""

/* Return the operator between the tags of a row and those of CALL. */
static const char *tags_operator(const crm_call_t *call)
{
    const char *match = crm_rest_param(call, "tags_match");

    return match && !strcmp(match, "all") ? " @> " : " && ";
}

/* Add the condition that the column tags matches BIND. COLLATION is "" or
 * UNINDEXED. */
static void add_tags(crm_sql_t *sql, const char *collation, const char *bind,
                     const crm_call_t *call)
{
    if (!*bind) {
        return;
    }
    crm_sql_adds(sql, " AND t.tags", collation, tags_operator(call), NULL);
    crm_sql_bind(sql, bind, "text[]");
}

void crm_filter_tags(crm_sql_t *sql, const crm_filter_t *filter,
                     const char *bind, const crm_call_t *call)
{
    (void)filter;
    add_tags(sql, "", bind, call);
}

void crm_filter_tags_unindexed(crm_sql_t *sql, const crm_filter_t *filter,
                               const char *bind, const crm_call_t *call)
{
    (void)filter;
    add_tags(sql, UNINDEXED, bind, call);
}

/* The keys are hashes: the tags themselves are compared, too. The keys of BIND
 * are in a subquery so that they are computed once. Citus would run it on its
 * own: it computes them before it sends the statement. */
void crm_filter_tags_scoped(crm_sql_t *sql, const crm_filter_t *filter,
                            const char *bind, const crm_call_t *call)
{
    (void)filter;
    crm_sql_adds(sql, " AND t.tag_keys", tags_operator(call), NULL);
    crm_sql_template(sql, call->distributed
                     ? " crmapi.tag_keys($1::uuid, ?)"
                     : "(SELECT crmapi.tag_keys($1::uuid, ?))", bind,
                     "text[]");
    add_tags(sql, UNINDEXED, bind, call);
}

int crm_filter_tags_indexed(const crm_filter_t *filter, const char *bind,
                            apr_pool_t *pool)
{
    (void)filter;
    (void)pool;
    return *bind != '\0';
}

/* Return a LIKE pattern that matches strings containing TEXT. */
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

/* Return the digits of TEXT if it has only characters used in phone numbers,
 * NULL otherwise (contract 7.8). */
static const char *digits_of(const char *text, apr_pool_t *pool)
{
    char *digits = apr_palloc(pool, strlen(text) + 1);
    char *out = digits;

    for (; *text; text++) {
        if (apr_isdigit(*text)) {
            *out++ = *text;
        }
        else if (!strchr("+-(). /", *text)) {
            return NULL;
        }
    }
    *out = '\0';
    return *digits ? digits : NULL;
}

/* Return whether C is a letter or digit. This is an approximation, which
 * excludes the Unicode blocks of punctuation and symbols. */
static int is_word_character(int c)
{
    return c < 0x80 ? apr_isalnum(c)
           : c >= 0xC0 && (c < 0x2000 || c >= 0x2C00)
             && (c < 0x3000 || c >= 0x3040) && c < 0x1F000;
}

/* Return whether TEXT has three consecutive letters or digits: a trigram.
 * Without a trigram, a GIN index scan reads the whole index, with the rows of
 * all workspaces. */
static int has_trigram(const char *text)
{
    apr_size_t len = strlen(text), n = 1;
    int run = 0;

    for (; len && n && run < 3; text += n, len -= n) {
        run = is_word_character(crm_text_next(&n, text, len)) ? run + 1 : 0;
    }
    return run == 3;
}

/* Add the condition that FILTER's column contains TEXT, or that its column of
 * digits contains DIGITS (NULL: none). COLLATION is "" or UNINDEXED. fold() is
 * in a subquery so that it is evaluated once and not for each row. */
static void add_search(crm_sql_t *sql, const crm_filter_t *filter,
                       const char *text, const char *digits,
                       const char *collation, apr_pool_t *pool)
{
    crm_sql_adds(sql, " AND (", filter->sql, collation, NULL);
    crm_sql_template(sql, " LIKE (SELECT crmapi.fold(?))",
                     like_pattern(text, pool), "text");
    if (digits) {
        crm_sql_adds(sql, " OR ", filter->digits, collation, " LIKE ", NULL);
        crm_sql_bind(sql, like_pattern(digits, pool), "text");
    }
    crm_sql_add(sql, ")");
}

int crm_filter_search_indexed(const crm_filter_t *filter, const char *bind,
                              apr_pool_t *pool)
{
    const char *digits = filter->digits ? digits_of(bind, pool) : NULL;

    return has_trigram(bind) && (!digits || has_trigram(digits));
}

void crm_filter_search(crm_sql_t *sql, const crm_filter_t *filter,
                       const char *bind, const crm_call_t *call)
{
    const char *digits = filter->digits ? digits_of(bind, call->pool) : NULL;
    int indexed = crm_filter_search_indexed(filter, bind, call->pool);

    add_search(sql, filter, bind, digits, indexed ? "" : UNINDEXED, call->pool);
}

void crm_filter_search_unindexed(crm_sql_t *sql, const crm_filter_t *filter,
                                 const char *bind, const crm_call_t *call)
{
    const char *digits = filter->digits ? digits_of(bind, call->pool) : NULL;

    add_search(sql, filter, bind, digits, UNINDEXED, call->pool);
}
