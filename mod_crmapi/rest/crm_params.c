/* SPDX-License-Identifier: Apache-2.0 */
/* crm_params.c: reading the query of a request (contract 7) */
#include "crm_params.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_filter.h"
#include "crm_hash.h"
#include "crm_idempotency.h"
#include "crm_op_log.h"
#include "crm_params_unknown.h"
#include "crm_query.h"
#include "crm_rest.h"
#include "crm_text.h"

#define PAGE_SIZE 25            /* specification, Limits */
#define PAGE_SIZE_MAX 100
#define PAGE_MAX APR_INT64_C(9007199254740991) /* exact in every JSON parser;
                                                  offsets fit 64 bits */
#define WAIT_MAX 30             /* seconds */

/* Parameters of lists other than filters. */
typedef struct list_param_t {
    const char *name;
    /* Set CALL from TEXT. Return NULL or the rule that TEXT breaks. */
    const char *(*set)(crm_call_t *call, const char *text);
    int (*takes)(const crm_operation_t *operation);
} list_param_t;

/* Set *NUMBER_P to TEXT, an integer from 1 to MAX. Return 0 if it is not
 * one. */
static int positive(apr_int64_t *number_p, const char *text, apr_int64_t max)
{
    apr_size_t len = strspn(text, "0123456789");
    apr_int64_t number;

    if (!len || text[len] || len > 18) {
        return 0;
    }
    number = apr_atoi64(text);
    if (number < 1 || number > max) {
        return 0;
    }
    *number_p = number;
    return 1;
}

static const char *set_page(crm_call_t *call, const char *text)
{
    return positive(&crm_rest(call)->page, text, PAGE_MAX)
           ? NULL : "must be an integer from 1 to 9007199254740991";
}

static const char *set_page_size(crm_call_t *call, const char *text)
{
    return positive(&crm_rest(call)->page_size, text, PAGE_SIZE_MAX)
           ? NULL : "must be an integer from 1 to 100";
}

static const char *set_sort(crm_call_t *call, const char *text)
{
    const crm_sort_t *sort = crm_rest(call)->endpoint->operation->sorts;
    const char *names = NULL;

    for (; sort->keys[0]; sort++) {
        if (!strcmp(sort->name, text)) {
            crm_rest(call)->sort = sort;
            return NULL;
        }
        names = names ? apr_pstrcat(call->pool, names, " or ", sort->name,
                                    NULL) : sort->name;
    }
    return apr_pstrcat(call->pool, "must be ", names, NULL);
}

static const char *set_order(crm_call_t *call, const char *text)
{
    crm_rest(call)->ascending = !strcmp(text, "asc");
    return crm_rest(call)->ascending || !strcmp(text, "desc")
           ? NULL : "must be asc or desc";
}

static const char *set_wait(crm_call_t *call, const char *text)
{
    apr_int64_t seconds = 0;

    if (strcmp(text, "0") && !positive(&seconds, text, WAIT_MAX)) {
        return "must be an integer from 0 to 30";
    }
    crm_rest(call)->wait = (int)seconds;
    return NULL;
}

/* Return whether CURSOR is a word, and not the place after a row. */
static int is_word(const crm_operation_t *operation, const char *cursor)
{
    return !strcmp(cursor, CRM_CURSOR_START)
           || (operation->kind == CRM_OP_LOG && !strcmp(cursor, CRM_LOG_END));
}

/* Return what a cursor of OPERATION must be. */
static const char *cursor_rule(const crm_operation_t *operation)
{
    return operation->kind == CRM_OP_LOG
           ? "must be *, end or a next_cursor of this log with this type"
           : "must be * or the next_cursor of this list with these filters and"
             " this order";
}

/* The cursor is parsed after all other parameters: see read_cursor(). What no list
 * has as a cursor is told beside what is wrong with them. */
static const char *set_cursor(crm_call_t *call, const char *text)
{
    crm_rest_t *rest = crm_rest(call);
    const crm_operation_t *operation = rest->endpoint->operation;

    rest->cursor = text;
    return crm_cursor_has_form(text) || is_word(operation, text)
           ? NULL : cursor_rule(operation);
}

static int takes_page(const crm_operation_t *operation)
{
    return operation->kind == CRM_OP_LIST && !operation->whole;
}

static int takes_cursor(const crm_operation_t *operation)
{
    return takes_page(operation) || operation->kind == CRM_OP_LOG;
}

static int takes_sort(const crm_operation_t *operation)
{
    return operation->sorts && operation->sorts->name;
}

static int takes_order(const crm_operation_t *operation)
{
    return operation->ordered;
}

static int takes_wait(const crm_operation_t *operation)
{
    return operation->waits;
}

static const list_param_t list_params[] = {
    {"page", set_page, takes_page},
    {"page_size", set_page_size, takes_cursor},
    {"sort", set_sort, takes_sort},
    {"order", set_order, takes_order},
    {"cursor", set_cursor, takes_cursor},
    {"wait", set_wait, takes_wait},
};
#define LIST_PARAMS ((int)CRM_NELTS(list_params))

/* Return the rule that PARAM breaks whatever its type is, or NULL. AGAIN: the
 * query had it before. */
static const char *value_check(const crm_query_param_t *param, int again)
{
    return param->bad ? param->bad
           : again ? "is given more than once" : NULL;
}

static int is_search(const crm_filter_t *filter)
{
    return filter->by == CRM_BY_SEARCH || filter->by == CRM_BY_SCAN;
}

/* Read TEXT into PARAM. The text of a search is trimmed (contract 7.8). Empty
 * text means no filter for search and tags and is refused for others (contract
 * 7.3). */
static const char *set_filter(crm_param_t *param, const char *text,
                              apr_pool_t *pool)
{
    const crm_field_t *field = &param->filter->field;
    const char *rule;

    if (is_search(param->filter)) {
        apr_size_t len = strlen(text);

        crm_text_trim_blanks(&text, &len);
        text = apr_pstrmemdup(pool, text, len);
    }
    if (!*text) {
        return is_search(param->filter) || param->filter->by == CRM_BY_TAGS
               ? NULL : "must not be empty";
    }
    rule = field->type->parse_query(&param->bind, field, text, pool);
    param->given = !rule && !(param->filter->absent && param->bind
                              && !strcmp(param->bind, param->filter->absent));
    return rule;
}

/* Set *PARAM_P to a place for MEMBER, a name, among those of CALL's parameters
 * that follow the filters: in the order of their names, so that two queries with
 * the same ones have one fingerprint. Return NULL, or the rule that is
 * broken. */
static const char *add_member(crm_param_t **param_p, crm_call_t *call,
                              const crm_filter_t *filter, const char *member)
{
    crm_param_t *first = crm_rest(call)->params, *at;
    int count = 0;

    while (first->filter && !first->member) {
        first++;
    }
    for (at = first; at->filter; at++, count++) {
        if (!strcmp(at->member, member)) {
            return "is given more than once";
        }
    }
    if (count == CRM_MEMBERS_MAX) {
        return "is one too many: there may be 10";
    }
    for (; at > first && strcmp(at[-1].member, member) > 0; at--) {
        *at = at[-1];
    }
    memset(at, 0, sizeof(*at));
    at->filter = filter;
    at->member = member;
    *param_p = at;
    return NULL;
}

/* Read ITEM, whose name begins as FILTER's members do, into a parameter of its
 * own. Return NULL or the rule that it breaks. */
static const char *read_member(crm_call_t *call, const crm_filter_t *filter,
                               const crm_query_param_t *item)
{
    const char *member = item->name + strlen(filter->members);
    crm_field_t field = filter->field;
    const char *rule = value_check(item, 0), *bind = NULL;
    crm_param_t *param;

    if (!rule && crm_text_length(member, strlen(member)) > CRM_MEMBER_MAX) {
        rule = "must have a name of at most 100 characters";
    }
    if (!rule && !*item->value) {
        rule = "must not be empty";
    }
    if (!rule) {
        field.name = member;
        rule = field.type->parse_query(&bind, &field, item->value, call->pool);
    }
    if (!rule) {
        rule = add_member(&param, call, filter, member);
    }
    if (!rule) {
        param->bind = bind;
        param->given = 1;
    }
    return rule;
}

/* Return whether ITEM is of FILTER. */
static int is_of(const crm_filter_t *filter, const crm_query_param_t *item)
{
    return filter->members
           ? !strncmp(filter->members, item->name, strlen(filter->members))
           : !strcmp(filter->field.name, item->name);
}

/* Read ITEM if it is one of the operation's filters; return 0 if it is not.
 * SEEN counts each filter. */
static int read_filter(crm_input_t *input, crm_call_t *call,
                       unsigned char *seen, const crm_query_param_t *item)
{
    const crm_filter_t *filter = crm_rest(call)->endpoint->operation->filters;
    const char *rule;

    for (int i = 0; filter && filter[i].field.name; i++) {
        if (!is_of(&filter[i], item)) {
            continue;
        }
        rule = filter[i].members ? read_member(call, &filter[i], item)
               : value_check(item, seen[i]++);
        if (!rule && !filter[i].members) {
            rule = set_filter(&crm_rest(call)->params[i], item->value,
                              call->pool);
        }
        if (rule) {
            crm_input_error(input, item->name, rule);
        }
        return 1;
    }
    return 0;
}

/* The same for page, page_size, sort, order and cursor. */
static int read_list_param(crm_input_t *input, crm_call_t *call,
                           unsigned char *seen, const crm_query_param_t *item)
{
    const crm_operation_t *operation = crm_rest(call)->endpoint->operation;
    const char *rule;

    for (int i = 0; i < LIST_PARAMS; i++) {
        if (strcmp(list_params[i].name, item->name)
            || !list_params[i].takes(operation)) {
            continue;
        }
        rule = value_check(item, seen[i]++);
        if (!rule) {
            rule = list_params[i].set(call, item->value);
        }
        if (rule) {
            crm_input_error(input, item->name, rule);
        }
        return 1;
    }
    return 0;
}

/* ---- all parameters ---- */

const char *crm_param_name(const crm_operation_t *operation, const char *name,
                           crm_near_fn *is_it)
{
    const crm_filter_t *filter = operation->filters;

    for (; filter && filter->field.name; filter++) {
        if (is_it(filter->field.name, name)) {
            return filter->field.name;
        }
    }
    for (int i = 0; i < LIST_PARAMS; i++) {
        if (list_params[i].takes(operation)
            && is_it(list_params[i].name, name)) {
            return list_params[i].name;
        }
    }
    return NULL;
}

/* Return the number of filters of OPERATION. */
static size_t filter_count(const crm_operation_t *operation)
{
    size_t count = 0;

    while (operation->filters && operation->filters[count].field.name) {
        count++;
    }
    return count;
}

/* Set CALL's parameters to their defaults. */
static void set_defaults(crm_call_t *call)
{
    const crm_operation_t *operation = crm_rest(call)->endpoint->operation;
    size_t count = filter_count(operation);

    crm_rest(call)->page = 0;
    crm_rest(call)->page_size = PAGE_SIZE;
    crm_rest(call)->wait = 0;
    crm_rest(call)->sort = operation->sorts;
    crm_rest(call)->ascending = -1;
    crm_rest(call)->params = apr_pcalloc(call->pool,
                               (count + CRM_MEMBERS_MAX + 1)
                               * sizeof(*crm_rest(call)->params));
    for (size_t i = 0; i < count; i++) {
        crm_rest(call)->params[i].filter = &operation->filters[i];
    }
}

/* Return a hash that identifies CALL's list: workspace, operation, parent,
 * filters and order (contract 13.3). */
static apr_uint64_t hash_list(const crm_call_t *call)
{
    const crm_rest_t *rest = crm_rest(call);
    const char *parts[] = {
        call->key.workspace_id, rest->endpoint->operation->id,
        rest->path_id ? rest->path_id : "",
        rest->sort->keys[0] ? rest->sort->keys[0] : "",
        rest->ascending ? "asc" : "desc",
    };
    apr_uint64_t hash = CRM_HASH_START;

    for (size_t i = 0; i < CRM_NELTS(parts); i++) {
        hash = crm_hash(hash, parts[i], strlen(parts[i]) + 1);
    }
    for (const crm_param_t *param = rest->params; param->filter; param++) {
        const char *bind = param->given ? param->bind : NULL;

        if (param->filter->only_shows) {
            continue;
        }
        /* absent, null and empty are different */
        hash = crm_hash(hash + (apr_uint64_t)param->given, bind ? bind : "",
                        bind ? strlen(bind) + 1 : 0);
    }
    return hash;
}

/* Set order and page if the query has none, and parse the cursor if it has
 * one. */
static void read_cursor(crm_input_t *input, crm_call_t *call)
{
    crm_rest_t *rest = crm_rest(call);
    const crm_operation_t *operation = rest->endpoint->operation;
    crm_cursor_t *cursor;

    if (rest->ascending < 0) {
        rest->ascending = rest->sort->ascending;
    }
    if (rest->cursor && rest->page) {
        crm_input_error(input, "page", "cannot be used with cursor");
    }
    rest->page = rest->page ? rest->page : 1;
    if (!rest->cursor && operation->kind == CRM_OP_LOG) {
        rest->cursor = CRM_CURSOR_START;
    }
    if (!rest->cursor || input->error) {
        return;
    }
    rest->list = hash_list(call);
    if (!is_word(operation, rest->cursor)) {
        cursor = apr_palloc(call->pool, sizeof(*cursor));
        rest->after = cursor;
        if (!crm_cursor_read(cursor, rest->cursor, rest->sort, rest->list,
                             call->pool)) {
            crm_input_error(input, "cursor", cursor_rule(operation));
        }
    }
}

/* Return the entity tags of CALL's header NAME, NULL if it was not sent. */
static const crm_etags_t *read_condition(crm_input_t *input,
                                         const crm_call_t *call,
                                         const char *name)
{
    const char *header = crm_request_header(call->request, name), *rule;
    crm_etags_t *tags;

    if (!header) {
        return NULL;
    }
    tags = apr_palloc(call->pool, sizeof(*tags));
    rule = crm_etags_read(tags, header, call->pool);
    if (rule) {
        crm_input_error(input, name, rule);
    }
    return tags;
}

/* Add to INPUT the required filters of OPERATION that were not SEEN. */
static void check_required(crm_input_t *input, const crm_operation_t *operation,
                           const unsigned char *seen)
{
    for (size_t i = 0; i < filter_count(operation); i++) {
        const crm_field_t *field = &operation->filters[i].field;

        if ((field->flags & CRM_F_REQUIRED) && !seen[i]) {
            crm_input_error(input, field->name, "is required");
        }
    }
}

crm_error_t *crm_rest_params(crm_call_t *call)
{
    crm_input_t input = {call->pool, NULL, 0};
    const crm_operation_t *operation = crm_rest(call)->endpoint->operation;
    size_t count = filter_count(operation);
    unsigned char *seen = apr_pcalloc(call->pool, count + LIST_PARAMS);
    apr_array_header_t *ignored = apr_array_make(call->pool, 2,
                                                 sizeof(const char *));
    apr_array_header_t *items;

    set_defaults(call);
    if (crm_rest(call)->endpoint->write) {
        input.error = crm_idempotency_read(&crm_rest(call)->idempotency, call,
                                           !crm_kind_of(operation)->has_body);
        if (input.error && input.error->code != CRM_E_VALIDATION) {
            return input.error;
        }
    }
    crm_query_parse(&items, call->request->query, call->pool);
    for (int i = 0; i < items->nelts; i++) {
        const crm_query_param_t *item = &APR_ARRAY_IDX(items, i,
                                                       crm_query_param_t);

        if (!read_filter(&input, call, seen, item)
            && !read_list_param(&input, call, seen + count, item)) {
            crm_params_unknown(&input, call, ignored, item->name);
        }
    }
    check_required(&input, operation, seen);
    if (crm_rest(call)->sort) {
        read_cursor(&input, call);
    }
    if (crm_kind_of(operation)->conditional) {
        crm_rest(call)->match = read_condition(&input, call, "If-Match");
        crm_rest(call)->none_match = read_condition(&input, call,
                                                    "If-None-Match");
    }
    return input.error;
}
