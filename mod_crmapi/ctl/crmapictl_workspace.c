/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_workspace.c: workspaces */
#include "crmapictl_workspace.h"

#include <ctype.h>
#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_bare.h"
#include "crm_db.h"
#include "crm_email.h"
#include "crm_sql.h"
#include "crm_text.h"
#include "crm_type_list.h"
#include "crm_uuid.h"
#include "crm_zone.h"
#include "crmapictl_audit.h"
#include "crmapictl_options.h"
#include "crmapictl_output.h"

#define SLUG_MAX 63

/* The maximum number of sender domains. */
#define DOMAINS_MAX 100

/* Numbered slugs that are tried before a unique one is made. */
#define SLUG_TRIES 50

/* The columns of a workspace, and their SQL. */
#define FIELDS "workspace.id, name, slug, plan, created_at"
#define COLUMNS {"id", 's'}, {"name", 's'}, {"slug", 's'}, {"plan", 's'}, \
    {"created_at", 't'}
static const ctl_column_t columns[] = {COLUMNS, {NULL, 0}};

/* Since when it is held, and why: its own hold, or that of the database; and what
 * they are read from. */
#define HELD_FIELDS ", coalesce(h.held_at, i.held_at)," \
    " coalesce(h.reason, i.held_reason)"
#define HELD_FROM " FROM crmapi.workspace LEFT JOIN crmapi.workspace_hold h" \
    " ON h.workspace_id = workspace.id CROSS JOIN crmapi.instance i"

/* The same, and values of the workspace $1 from other tables; "api" is what hold
 * --api says. */
#define ALL_FIELDS FIELDS ", time_zone, currency, to_json(sender_domains)," \
    " read_limit, write_limit, retention_conversations," \
    " retention_submissions, retention_events," \
    " CASE WHEN EXISTS (" \
    "SELECT FROM crmapi.event_feed f WHERE f.workspace_id = $1::uuid" \
    " AND f.log) THEN 'on' ELSE 'off' END" HELD_FIELDS \
    ", CASE WHEN h.closed THEN 'off' ELSE 'on' END"
static const ctl_column_t all_columns[] = {
    COLUMNS, {"time_zone", 's'}, {"currency", 's'},
    {"sender_domains", 'a'}, {"read_limit", 'n'},
    {"write_limit", 'n'}, {"retention_conversations", 'n'},
    {"retention_submissions", 'n'}, {"retention_events", 'n'}, {"events", 's'},
    {"held_at", 't'}, {"held_reason", 's'}, {"api", 's'}, {NULL, 0}
};

crm_error_t *ctl_check_name(ctl_t *ctl, ctl_option_t option)
{
    const char *name = ctl->options[option];
    const char *shown = ctl_options[option].name;
    apr_size_t len = strlen(name);

    if (!len || crm_text_length(name, len) > 1000) {
        return ctl_misuse(ctl, "--%s must have 1 to 1,000 characters",
                          shown);
    }
    if (!crm_text_shows(name)) {
        return ctl_misuse(ctl, "--%s must not be blank", shown);
    }
    return NULL;
}

const char *ctl_slug_rule(const char *slug)
{
    size_t len = strlen(slug);
    char uuid[CRM_UUID_LEN + 1];

    if (!len || len > SLUG_MAX
        || strspn(slug, "abcdefghijklmnopqrstuvwxyz0123456789-") != len
        || slug[0] == '-' || slug[len - 1] == '-') {
        return "must be 1 to 63 of a-z, 0-9 and -, without - at its ends";
    }
    return crm_uuid_parse(uuid, slug, len) ? "must not look like an id" : NULL;
}

crm_error_t *ctl_check_slug(ctl_t *ctl, const char *slug)
{
    const char *rule = ctl_slug_rule(slug);

    return rule ? ctl_misuse(ctl, "--slug %s", rule) : NULL;
}

/* Return a slug made from NAME: its ASCII letters and digits in lower case,
 * with one hyphen for all other characters between them, and room for
 * "-99999999". A name that gives none, or an id, gives "workspace". */
static const char *slug_from(const char *name, apr_pool_t *pool)
{
    char *slug = apr_palloc(pool, SLUG_MAX + 1);
    int len = 0, gap = 0;

    for (const char *p = name; *p && len < SLUG_MAX - 10; p++) {
        unsigned char c = (unsigned char)*p;

        if (c < 0x80 && isalnum(c)) {
            if (gap && len) {
                slug[len++] = '-';
            }
            slug[len++] = (char)tolower(c);
        }
        gap = !(c < 0x80 && isalnum(c));
    }
    slug[len] = '\0';
    return ctl_slug_rule(slug) ? "workspace" : slug;
}

/* Run an INSERT or UPDATE of the workspace VALUES[0]. Errors name that or the
 * PLAN. */
static crm_error_t *change(PGresult **result_p, ctl_t *ctl,
                           const char *sql, int count,
                           const char *const *values, const char *plan)
{
    crm_error_t *error = ctl_query(result_p, ctl, sql, count, values);

    /* the name of a plan is checked by the type of its column, too */
    if (crm_error_is(error, "23503")
        || (plan && crm_error_is(error, "23514"))) {
        return ctl_fault(ctl, "there is no plan \"%s\"", plan);
    }
    if (crm_error_is(error, "23505")) {
        return ctl_fault(ctl, "there is a workspace with the id %s"
                         " already", values[0]);
    }
    return error;
}

/* Insert the workspace with VALUES: id, name, slug, plan. *DONE_P = 0 if the
 * slug is taken. In a distributed database a reference table has the slugs. */
static crm_error_t *insert(int *done_p, PGresult **result_p, ctl_t *ctl,
                           const char *const values[4])
{
    const char *home[2] = {values[2], values[0]};

    CRM_ERR(ctl_query(result_p, ctl, CRM_SQL_CITUS "INSERT INTO"
                      " crmapi.slug_home VALUES ($1::text, $2::uuid)"
                      " ON CONFLICT (slug) DO NOTHING RETURNING 1", 2, home));
    *done_p = !*result_p || PQntuples(*result_p);
    if (*done_p) {
        CRM_ERR(change(result_p, ctl, "INSERT INTO crmapi.workspace"
                       " (id, name, slug, plan) VALUES ($1::uuid, $2::text,"
                       " $3::text, $4::text)" CRM_SQL_PLAIN " ON CONFLICT"
                       " (slug) DO NOTHING" CRM_SQL_BOTH " RETURNING " FIELDS,
                       4, values, values[3]));
        *done_p = PQntuples(*result_p);
    }
    return NULL;
}

/* Return the slug for attempt TRY: "demo", "demo-2", and so on; the last one
 * has a part of ID, which is unique. */
static const char *numbered(const char *slug, int try, const char *id,
                            apr_pool_t *pool)
{
    if (try == SLUG_TRIES) {
        return apr_pstrcat(pool, slug, "-", id + CRM_UUID_LEN - 8, NULL);
    }
    return try == 1 ? slug : apr_psprintf(pool, "%s-%d", slug, try);
}

crm_error_t *ctl_workspace_make(PGresult **result_p, ctl_t *ctl)
{
    const char *slug = ctl->options[CTL_SLUG];
    const char *plan = ctl->options[CTL_PLAN];
    const char *chosen = ctl->options[CTL_ID];
    int tries = slug ? 1 : SLUG_TRIES;
    char id[CRM_UUID_LEN + 1];
    const char *values[4] = {id, ctl->options[CTL_NAME], NULL,
                             plan ? plan : CTL_DEFAULT_PLAN};
    int done = 0;

    *result_p = NULL;
    CRM_ERR(ctl_check_name(ctl, CTL_NAME));
    if (slug) {
        CRM_ERR(ctl_check_slug(ctl, slug));
    }
    else {
        slug = slug_from(values[1], ctl->pool);
    }
    if (!chosen) {
        crm_uuid_v7(id);
    }
    else if (!crm_uuid_parse(id, chosen, strlen(chosen))) {
        return ctl_misuse(ctl, "--id must be a UUID");
    }
    for (int try = 1; !done && try <= tries; try++) {
        values[2] = numbered(slug, try, id, ctl->pool);
        CRM_ERR(insert(&done, result_p, ctl, values));
    }
    if (done) {
        ctl_audit_object(ctl, NULL, PQgetvalue(*result_p, 0, 0));
    }
    return done ? NULL
           : ctl_fault(ctl, "there is a workspace with the slug \"%s\""
                       " already", slug);
}

crm_error_t *ctl_workspace_create(ctl_t *ctl)
{
    PGresult *result;

    CRM_ERR(ctl_workspace_make(&result, ctl));
    ctl_print_one(ctl, PQgetvalue(result, 0, 0), result, columns);
    return NULL;
}

crm_error_t *ctl_workspace_list(ctl_t *ctl)
{
    static const ctl_column_t list_columns[] = {
        COLUMNS, {"held_at", 't'}, {"held_reason", 's'}, {NULL, 0}
    };
    PGresult *result;

    CRM_ERR(ctl_query(&result, ctl, "SELECT " FIELDS HELD_FIELDS HELD_FROM
                      " ORDER BY created_at, workspace.id", 0, NULL));
    ctl_print(ctl, result, list_columns, 0);
    return NULL;
}

crm_error_t *ctl_no_workspace(ctl_t *ctl, const char *what)
{
    return ctl_fault(ctl, "there is no workspace \"%s\"", what);
}

crm_error_t *ctl_workspace_id(const char **id_p, ctl_t *ctl,
                              const char *what)
{
    char id[CRM_UUID_LEN + 1];
    int by_id = crm_uuid_parse(id, what, strlen(what));
    const char *value = by_id ? id : what;
    PGresult *result;

    CRM_ERR(ctl_query(&result, ctl, by_id
                      ? "SELECT id FROM crmapi.workspace WHERE id = $1::uuid"
                      : "SELECT id FROM crmapi.workspace WHERE slug = $1::text",
                      1, &value));
    if (!PQntuples(result)) {
        return ctl_no_workspace(ctl, what);
    }
    *id_p = ctl->workspace = PQgetvalue(result, 0, 0);
    return NULL;
}

crm_error_t *ctl_workspace_rows(ctl_t *ctl, const char *sql,
                                const ctl_column_t *shown)
{
    const char *workspace;
    PGresult *result;

    CRM_ERR(ctl_workspace_id(&workspace, ctl, ctl->options[CTL_WORKSPACE]));
    CRM_ERR(ctl_query(&result, ctl, sql, 1, &workspace));
    ctl_print(ctl, result, shown, 0);
    return NULL;
}

crm_error_t *ctl_owner(const char **workspace_p, ctl_t *ctl,
                       const char *owners, const char *id)
{
    const char *named = ctl->options[CTL_WORKSPACE];
    PGresult *result;

    if (named) {
        return ctl_workspace_id(workspace_p, ctl, named);
    }
    CRM_ERR(ctl_query(&result, ctl, owners, 1, &id));
    if (PQntuples(result) > 1) {
        return ctl_fault(ctl, "%d workspaces have the id %s: say which one by"
                         " --workspace W", PQntuples(result), id);
    }
    *workspace_p = PQntuples(result) ? PQgetvalue(result, 0, 0) : NULL;
    ctl->workspace = *workspace_p;
    return NULL;
}

/* Set *RESULT_P to the row of the workspace ID, given as WHAT. */
static crm_error_t *find(PGresult **result_p, ctl_t *ctl, const char *id,
                         const char *what)
{
    CRM_ERR(ctl_query(result_p, ctl, "SELECT " ALL_FIELDS HELD_FROM
                      " WHERE workspace.id = $1::uuid", 1, &id));
    return PQntuples(*result_p) ? NULL : ctl_no_workspace(ctl, what);
}

crm_error_t *ctl_workspace_show(ctl_t *ctl)
{
    PGresult *result;
    const char *id;

    CRM_ERR(ctl_workspace_id(&id, ctl, ctl->args[0]));
    CRM_ERR(find(&result, ctl, id, ctl->args[0]));
    ctl_print(ctl, result, all_columns, 1);
    return NULL;
}

crm_error_t *ctl_events_set(ctl_t *ctl, const char *id, const char *events)
{
    const char *values[2] = {id, events};
    PGresult *result;

    return !events ? NULL
           : ctl_query(&result, ctl, "SELECT crmapi.event_log($1::uuid,"
                       " $2::boolean)", 2, values);
}

crm_error_t *ctl_events_wait(ctl_t *ctl, const char *id)
{
    PGresult *result;

    return ctl_query(&result, ctl, "SELECT crmapi.event_log_wait($1::uuid)", 1,
                     &id);
}

int ctl_currency_ok(const char *code)
{
    return strlen(code) == 3 && strspn(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 3;
}

/* Set *CURRENCY_P to the value of --currency, "" for "none"; NULL: it was not
 * given. */
static crm_error_t *read_currency(const char **currency_p, ctl_t *ctl)
{
    const char *code = ctl->options[CTL_CURRENCY];

    *currency_p = code && !strcmp(code, "none") ? "" : code;
    return !code || !**currency_p || ctl_currency_ok(code)
           ? NULL : ctl_misuse(ctl, "--currency must be three capital letters"
                               " (ISO 4217), or none");
}

/* Check the value of --time-zone, if it was given. */
static crm_error_t *check_time_zone(ctl_t *ctl)
{
    const char *zone = ctl->options[CTL_TIME_ZONE];

    return !zone || crm_zone_known(zone) ? NULL
           : ctl_misuse(ctl, "--time-zone " CRM_ZONE_RULE);
}

/* Return the domain TEXT as A-labels, in POOL; NULL if it is no domain. The word
 * "none" is none, so that a list with it is not taken for a domain of that name. */
static const char *to_labels(const char *text, apr_pool_t *pool)
{
    const char *address = NULL, *labels;

    if (crm_text_valid_utf8(text, strlen(text)) && !strchr(text, '@')) {
        address = crm_email_canonical(apr_pstrcat(pool, "x@", text, NULL),
                                      pool);
    }
    labels = address ? strchr(address, '@') + 1 : NULL;
    return labels && strcmp(labels, "none") ? labels : NULL;
}

const char *ctl_domain_add(apr_array_header_t *domains, const char *text)
{
    const char *labels = to_labels(text, domains->pool);

    if (!labels) {
        return "must be a domain such as example.com";
    }
    if (crm_array_has(domains, labels)) {
        return NULL;
    }
    if (domains->nelts == DOMAINS_MAX) {
        return "is more than the 100th domain";
    }
    APR_ARRAY_PUSH(domains, const char *) = labels;
    return NULL;
}

/* Set *ARRAY_P to the value of --sender-domains as A-labels, "{}" for "none"; NULL:
 * it was not given. */
static crm_error_t *read_domains(const char **array_p, ctl_t *ctl)
{
    const char *given = ctl->options[CTL_SENDER_DOMAINS];
    apr_array_header_t *parts, *domains = apr_array_make(ctl->pool, 4,
                                                         sizeof(const char *));

    *array_p = given ? "{}" : NULL;
    if (!given || !strcmp(given, "none")) {
        return NULL;
    }
    parts = crm_type_parts(given, ctl->pool);
    for (int i = 0; i < parts->nelts; i++) {
        const char *one = APR_ARRAY_IDX(parts, i, const char *);
        const char *rule = ctl_domain_add(domains, one);

        if (rule) {
            return ctl_misuse(ctl, "--sender-domains: \"%s\" %s", one, rule);
        }
    }
    if (!domains->nelts) {
        return ctl_misuse(ctl, "--sender-domains must be domains, or none");
    }
    *array_p = crm_sql_array(domains, ctl->pool);
    return NULL;
}

/* Set VALUES to the days of the three options of retention, "0" for "never"; NULL:
 * it was not given. */
static crm_error_t *read_retention(const char *values[3], ctl_t *ctl)
{
    for (int i = 0; i < 3; i++) {
        int option = CTL_RETENTION_CONVERSATIONS + i;
        const char *given = ctl->options[option];
        size_t len = given ? strspn(given, "0123456789") : 0;
        apr_int64_t days = given && len <= 5 ? apr_atoi64(given) : 0;

        values[i] = given && !strcmp(given, "never") ? "0" : given;
        if (values[i] == given && given
            && (!len || given[len] || days < 1 || days > CTL_DAYS_MAX)) {
            return ctl_misuse(ctl, "--%s must be 1 to %d days, or never",
                              ctl_options[option].name, CTL_DAYS_MAX);
        }
    }
    return NULL;
}

crm_error_t *ctl_workspace_retention(ctl_t *ctl)
{
    static const ctl_column_t shown[] = {
        {"object", 's'}, {"rows", 'n'}, {NULL, 0}
    };
    const char *values[4];
    PGresult *result;

    CRM_ERR(read_retention(values + 1, ctl));
    CRM_ERR(ctl_workspace_id(&values[0], ctl, ctl->args[0]));
    CRM_ERR(ctl_query(&result, ctl, "SELECT r.of, r.n FROM crmapi.workspace w"
                      " CROSS JOIN LATERAL crmapi.retention_count(w.id,"
                      " nullif(coalesce($2::integer,"
                      "  w.retention_conversations), 0),"
                      " nullif(coalesce($3::integer,"
                      "  w.retention_submissions), 0),"
                      " nullif(coalesce($4::integer, w.retention_events), 0)) r"
                      " WHERE w.id = $1::uuid", 4, values));
    ctl_print(ctl, result, shown, 0);
    return NULL;
}

/* Change the workspace VALUES[0] to the others of VALUES, and its events to
 * EVENTS. */
static crm_error_t *update(ctl_t *ctl, const char *const values[11],
                           const char *events)
{
    PGresult *result;

    CRM_ERR(change(&result, ctl, "UPDATE crmapi.workspace SET"
                   " name = coalesce($2::text, name),"
                   " plan = coalesce($3::text, plan),"
                   " read_limit = nullif(coalesce($4::integer, read_limit), 0),"
                   " write_limit ="
                   " nullif(coalesce($5::integer, write_limit), 0),"
                   " currency = nullif(coalesce($6::text, currency), ''),"
                   " time_zone = coalesce($7::text, time_zone),"
                   " sender_domains ="
                   " nullif(coalesce($8::text[], sender_domains), '{}'),"
                   " retention_conversations = nullif(coalesce($9::integer,"
                   " retention_conversations), 0), retention_submissions ="
                   " nullif(coalesce($10::integer, retention_submissions), 0),"
                   " retention_events = nullif(coalesce($11::integer,"
                   " retention_events), 0)"
                   " WHERE id = $1::uuid RETURNING id", 11, values,
                   values[2]));
    return PQntuples(result) ? ctl_events_set(ctl, values[0], events)
           : ctl_no_workspace(ctl, ctl->args[0]);
}

crm_error_t *ctl_workspace_set(ctl_t *ctl)
{
    const char *name = ctl->options[CTL_NAME];
    const char *plan = ctl->options[CTL_PLAN];
    const char *zone = ctl->options[CTL_TIME_ZONE];
    const char *values[11] = {NULL, name, plan, NULL, NULL, NULL, zone};
    const char *events;
    crm_error_t *error;
    PGresult *result;

    CRM_ERR(ctl_switch(&events, ctl, CTL_EVENTS));
    CRM_ERR(ctl_limit(&values[3], ctl, CTL_READ_LIMIT));
    CRM_ERR(ctl_limit(&values[4], ctl, CTL_WRITE_LIMIT));
    CRM_ERR(read_currency(&values[5], ctl));
    CRM_ERR(check_time_zone(ctl));
    CRM_ERR(read_domains(&values[7], ctl));
    CRM_ERR(read_retention(values + 8, ctl));
    if (!name && !plan && !events && !values[3] && !values[4] && !values[5]
        && !zone && !values[7] && !values[8] && !values[9] && !values[10]) {
        return ctl_misuse(ctl, "workspace set needs --name N, --plan P,"
                          " --read-limit N, --write-limit N, --currency CODE,"
                          " --time-zone ZONE, --sender-domains LIST,"
                          " --retention-... DAYS or --events on|off");
    }
    if (name) {
        CRM_ERR(ctl_check_name(ctl, CTL_NAME));
    }
    CRM_ERR(ctl_workspace_id(&values[0], ctl, ctl->args[0]));
    CRM_ERR(ctl_begin(ctl));
    error = update(ctl, values, events);
    CRM_ERR(ctl_end(ctl, error ? error : ctl_audit(ctl)));
    if (events) {
        CRM_ERR(ctl_events_wait(ctl, values[0]));
    }
    CRM_ERR(find(&result, ctl, values[0], ctl->args[0]));
    ctl_print_one(ctl, NULL, result, all_columns);
    return NULL;
}

crm_error_t *ctl_workspace_delete(ctl_t *ctl)
{
    PGresult *result, *nothing;
    const char *id;

    CRM_ERR(ctl_workspace_id(&id, ctl, ctl->args[0]));
    /* Of two that delete it, the second finds none. */
    CRM_ERR(ctl_query(&nothing, ctl, "SELECT FROM crmapi.workspace w"
                      " WHERE w.id = $1::uuid FOR UPDATE", 1, &id));
    CRM_ERR(find(&result, ctl, id, ctl->args[0]));
    CRM_ERR(ctl_query(&nothing, ctl, "SELECT crmapi.workspace_delete("
                      "$1::uuid)", 1, &id));
    ctl_audit_object(ctl, NULL, id);
    ctl_print_one(ctl, NULL, result, columns);
    return NULL;
}
