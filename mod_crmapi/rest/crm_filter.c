/* SPDX-License-Identifier: Apache-2.0 */
/* crm_filter.c: filters as SQL predicates */
#include "crm_filter.h"

#include <string.h>

#include "apr_lib.h"

#include "crm_email.h"
#include "crm_filter_address.h"
#include "crm_filter_member.h"
#include "crm_phone.h"
#include "crm_rest.h"
#include "crm_text.h"

static void by_bind(crm_sql_t *sql, const crm_filter_t *filter,
                    const char *bind, const crm_call_t *call)
{
    (void)call;
    crm_sql_add(sql, " AND ");
    crm_sql_template(sql, filter->sql, bind, filter->field.type->cast);
}

static void by_boolean(crm_sql_t *sql, const crm_filter_t *filter,
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

static void by_tags(crm_sql_t *sql, const crm_filter_t *filter,
                    const char *bind, const crm_call_t *call)
{
    (void)filter;
    add_tags(sql, "", bind, call);
}

static void by_tags_unindexed(crm_sql_t *sql, const crm_filter_t *filter,
                              const char *bind, const crm_call_t *call)
{
    (void)filter;
    add_tags(sql, UNINDEXED, bind, call);
}

/* The keys are hashes: the tags themselves are compared, too. The keys of BIND
 * are in a subquery so that they are computed once. Citus would run it on its
 * own: it computes them before it sends the statement. */
static void by_tags_scoped(crm_sql_t *sql, const crm_filter_t *filter,
                           const char *bind, const crm_call_t *call)
{
    (void)filter;
    crm_sql_adds(sql, " AND t.tag_keys", tags_operator(call), NULL);
    crm_sql_template(sql, CRM_SQL_EITHER("(SELECT ", " ")
                     "crmapi.tag_keys(" CRM_SQL_WORKSPACE ", ?)"
                     CRM_SQL_EITHER(")", ""), bind, "text[]");
    add_tags(sql, UNINDEXED, bind, call);
}

static int tags_indexed(const crm_filter_t *filter, const char *bind,
                        apr_pool_t *pool)
{
    (void)filter;
    (void)pool;
    return *bind != '\0';
}

/* Return a LIKE pattern that matches strings which contain TEXT after BEFORE. */
static const char *like_pattern(const char *before, const char *text,
                                apr_pool_t *pool)
{
    char *pattern = apr_palloc(pool, strlen(text) * 2 + strlen(before) + 3);
    char *out = pattern;

    *out++ = '%';
    while (*before) {
        *out++ = *before++;
    }
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

/* What a search compares with phone numbers (contract 7.8). */
typedef struct digits_t {
    const char *given;          /* the digits; NULL: it compares nothing */
    const char *international;  /* those without a leading 00 or 0, for when no
                                   number begins with GIVEN; or NULL */
} digits_t;

/* Return the digits of TEXT if it has only characters used in phone numbers,
 * NULL otherwise. */
static const char *digits_of(const char *text, apr_pool_t *pool)
{
    const char *number = crm_phone_e164(text, pool);
    char *digits, *out;

    if (number) {
        return number + 1;
    }
    text = crm_phone_plain(text, pool);
    digits = out = apr_palloc(pool, strlen(text) + 1);
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

/* Return what FILTER, a search, compares with phone numbers for TEXT. */
static digits_t read_digits(const crm_filter_t *filter, const char *text,
                            apr_pool_t *pool)
{
    digits_t digits = {NULL, NULL};
    const char *rest;

    if (!filter->digits) {
        return digits;
    }
    digits.given = digits_of(text, pool);
    rest = digits.given ? digits.given : "";
    rest += !strncmp(rest, "00", 2) ? 2 : *rest == '0';
    if (*rest && rest != digits.given) {
        digits.international = rest;
    }
    return digits;
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

/* Add the condition that FILTER's column of digits contains DIGITS. */
static void add_digits(crm_sql_t *sql, const crm_filter_t *filter,
                       const digits_t *digits, const char *collation,
                       apr_pool_t *pool)
{
    crm_sql_adds(sql, " OR t.", filter->digits, collation, " LIKE ", NULL);
    crm_sql_bind(sql, like_pattern("", digits->given, pool), "text");
    if (!digits->international) {
        return;
    }
    crm_sql_adds(sql, " OR (t.", filter->digits, collation, " LIKE ", NULL);
    crm_sql_bind(sql, like_pattern("", digits->international, pool), "text");
    crm_sql_adds(sql, " AND NOT EXISTS (SELECT FROM ", filter->digits_table,
                 " n WHERE " CRM_SQL_OWN("n") " AND n.", filter->digits,
                 collation, " LIKE ", NULL);
    crm_sql_bind(sql, like_pattern("", digits->given, pool), "text");
    crm_sql_adds(sql, " AND chr(31) || n.", filter->digits, " LIKE ", NULL);
    crm_sql_bind(sql, like_pattern("\x1f", digits->given, pool), "text");
    crm_sql_add(sql, "))");
}

/* Add the condition that FILTER's column contains TEXT. fold() is in a subquery so
 * that it is evaluated once and not for each row. */
static void add_contains(crm_sql_t *sql, const crm_filter_t *filter,
                         const char *text, const char *collation,
                         apr_pool_t *pool)
{
    crm_sql_adds(sql, filter->sql, collation, NULL);
    crm_sql_template(sql, " LIKE (SELECT crmapi.fold(?))",
                     like_pattern("", text, pool), "text");
}

/* Add the condition that FILTER's column contains TEXT, or that its column of
 * digits contains those of TEXT. COLLATION is "" or UNINDEXED. */
static void add_search(crm_sql_t *sql, const crm_filter_t *filter,
                       const char *text, const char *collation,
                       apr_pool_t *pool)
{
    digits_t digits = read_digits(filter, text, pool);

    crm_sql_add(sql, " AND (");
    add_contains(sql, filter, text, collation, pool);
    if (strchr(text, '@') && strchr(text, ' ')) {
        crm_sql_add(sql, " OR ");
        add_contains(sql, filter, crm_email_plus(text, pool), collation, pool);
    }
    if (digits.given) {
        add_digits(sql, filter, &digits, collation, pool);
    }
    crm_sql_add(sql, ")");
}

static int search_indexed(const crm_filter_t *filter, const char *bind,
                          apr_pool_t *pool)
{
    digits_t digits = read_digits(filter, bind, pool);
    const char *shortest = digits.international ? digits.international
                           : digits.given;

    return has_trigram(bind) && (!shortest || has_trigram(shortest));
}

static void by_search(crm_sql_t *sql, const crm_filter_t *filter,
                      const char *bind, const crm_call_t *call)
{
    int indexed = search_indexed(filter, bind, call->pool);

    add_search(sql, filter, bind, indexed ? "" : UNINDEXED, call->pool);
}

static void by_search_unindexed(crm_sql_t *sql, const crm_filter_t *filter,
                                const char *bind, const crm_call_t *call)
{
    add_search(sql, filter, bind, UNINDEXED, call->pool);
}

/* By crm_filter_by_t. */
static const crm_predicate_t functions[] = {
    [CRM_BY_NOTHING] = {.add = NULL},
    [CRM_BY_VALUE] = {.add = by_bind},
    [CRM_BY_BOOLEAN] = {.add = by_boolean},
    [CRM_BY_SEARCH] = {.add = by_search, .add_unindexed = by_search_unindexed,
                       .indexed = search_indexed},
    [CRM_BY_SCAN] = {.add = by_search},
    [CRM_BY_TAGS] = {.add = by_tags, .add_unindexed = by_tags_unindexed,
                     .add_scoped = by_tags_scoped, .indexed = tags_indexed},
    [CRM_BY_MEMBER] = {.add = crm_filter_member,
                       .add_unindexed = crm_filter_member,
                       .add_scoped = crm_filter_member_scoped},
    [CRM_BY_ADDRESS] = {.add = crm_filter_address},
};

const crm_predicate_t *crm_filter_functions(const crm_filter_t *filter)
{
    return &functions[filter->by];
}

void crm_filter_add(crm_sql_t *sql, const crm_filter_t *filter,
                    const char *bind, const crm_call_t *call)
{
    functions[filter->by].add(sql, filter, bind, call);
}
