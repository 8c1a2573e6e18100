/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_apply.c: making a workspace as documents say (contract 14.1) */
#include "crmapictl_apply.h"

#include <stdio.h>
#include <string.h>

#include "crm_buf.h"
#include "crm_sql_print.h"
#include "crm_uuid.h"
#include "crmapictl_apply_row.h"
#include "crmapictl_apply_schema.h"
#include "crmapictl_audit.h"
#include "crmapictl_match.h"
#include "crmapictl_output.h"
#include "crmapictl_prune.h"
#include "crmapictl_workspace.h"

/* The exit code of a dry run if something would change. */
#define CODE_CHANGES 3

const char *ctl_row_value(const ctl_row_t *row, const ctl_kind_t *kind,
                          const char *name)
{
    return row->values[ctl_kind_index(kind, name)];
}

crm_error_t *ctl_apply_run(PGresult **result_p, ctl_apply_t *apply,
                           crm_sql_t *sql)
{
    crm_stmt_t stmt;

    sql->distributed = apply->ctl->distributed;
    crm_sql_stmt(&stmt, sql);
    return crm_db_query(result_p, apply->ctl->conn, &stmt, apply->ctl->pool);
}

ctl_change_t *ctl_apply_note(ctl_apply_t *apply, char sign,
                             const ctl_kind_t *kind, const ctl_row_t *row)
{
    ctl_change_t *change = apr_array_push(apply->changes);

    memset(change, 0, sizeof(*change));
    change->sign = sign;
    change->kind = kind;
    change->row = row;
    return change;
}

/* ---- the workspace -------------------------------------------------------- */

/* Set *ITEM_P to the object of the workspace itself; NULL: there is none. */
static crm_error_t *find_settings(ctl_item_t **item_p, ctl_apply_t *apply)
{
    *item_p = NULL;
    for (int i = 0; i < apply->items->nelts; i++) {
        ctl_item_t *item = APR_ARRAY_IDX(apply->items, i, ctl_item_t *);
        const char *id;

        if (item->kind != ctl_kinds) {
            continue;
        }
        if (*item_p) {
            return ctl_item_refuse(apply->ctl, item, NULL,
                                   "is a second workspace: apply makes one");
        }
        CRM_ERR(ctl_match_id(&id, apply, item));
        *item_p = item;
    }
    return NULL;
}

/* Set *ID_P to the id of the workspace whose COLUMN is TEXT; NULL: there is
 * none. */
static crm_error_t *look_for(const char **id_p, ctl_apply_t *apply,
                             const char *column, const char *text)
{
    PGresult *result;
    crm_sql_t sql;
    char id[CRM_UUID_LEN + 1];

    *id_p = NULL;
    if (!text || (!strcmp(column, "id")
                  && !crm_uuid_parse(id, text, strlen(text)))) {
        return NULL;
    }
    crm_sql_init(&sql, apply->ctl->pool);
    crm_sql_adds(&sql, "SELECT id FROM crmapi.workspace WHERE ", column, NULL);
    crm_sql_template(&sql, " = ? LIMIT 2", text,
                     !strcmp(column, "id") ? "uuid" : "text");
    CRM_ERR(ctl_apply_run(&result, apply, &sql));
    if (PQntuples(result) > 1) {
        return ctl_fault(apply->ctl, "several workspaces have the %s \"%s\": say"
                         " which one by --workspace W", column, text);
    }
    *id_p = PQntuples(result) ? crm_db_value(result, 0, 0) : NULL;
    return NULL;
}

/* Set the workspace of APPLY to the one that --workspace or else SETTINGS names, if
 * there is one. */
static crm_error_t *find_workspace(ctl_apply_t *apply,
                                   const ctl_item_t *settings)
{
    static const char *const columns[] = {"id", "slug", "name", NULL};
    const char *given = apply->ctl->options[CTL_WORKSPACE];

    for (int i = 0; columns[i] && !apply->workspace_id; i++) {
        const char *text = given ? given : ctl_match_text(settings, columns[i]);

        if (!given || strcmp(columns[i], "name")) {
            CRM_ERR(look_for(&apply->workspace_id, apply, columns[i], text));
        }
        if (!given && text && !strcmp(columns[i], "slug")) {
            break;              /* the one of that name is another one */
        }
    }
    return NULL;
}

/* Take turns with those who apply to TEXT, a workspace, or import into it. */
static crm_error_t *take_turn(ctl_apply_t *apply, const char *prefix,
                              const char *text)
{
    const char *values[2] = {prefix, text};
    PGresult *result;

    return ctl_query(&result, apply->ctl, "SELECT pg_advisory_xact_lock("
                     "hashtextextended($1::text || $2::text, 0))", 2, values);
}

/* Check SETTINGS before the workspace is made of them. SLUGGED: its slug is in
 * them. */
static crm_error_t *check_settings(ctl_apply_t *apply, ctl_item_t *settings,
                                   int slugged)
{
    size_t count = (size_t)crm_resource_fields(ctl_kinds->resource);
    ctl_row_t row = {.values = apr_pcalloc(apply->ctl->pool, count
                                           * sizeof(*row.values))};
    ctl_work_t work = {.item = settings, .row = &row};
    const char *slug = ctl_match_text(settings, "slug");
    const char *rule = slug && slugged ? ctl_slug_rule(slug) : NULL;

    return rule ? ctl_item_refuse(apply->ctl, settings, "slug", rule)
           : ctl_apply_read(apply, ctl_kinds, &work);
}

/* Make the workspace that --workspace or SETTINGS (may be NULL) names. Its plan is
 * set as its other settings are. */
static crm_error_t *make_workspace(ctl_apply_t *apply,
                                   ctl_item_t *settings)
{
    ctl_t *ctl = apply->ctl;
    const char *given = ctl->options[CTL_WORKSPACE], *rule;
    char id[CRM_UUID_LEN + 1];
    int by_id = given && crm_uuid_parse(id, given, strlen(given));
    const char *slug = settings ? ctl_match_text(settings, "slug") : NULL;
    const char *name = settings ? ctl_match_text(settings, "name") : NULL;
    PGresult *result;

    if (settings) {
        CRM_ERR(check_settings(apply, settings, !given));
    }
    rule = given && !by_id ? ctl_slug_rule(given) : NULL;
    if (rule) {
        return ctl_misuse(ctl, "--workspace %s", rule);
    }
    ctl->options[CTL_NAME] = name ? name : given ? given : slug;
    ctl->options[CTL_SLUG] = given ? by_id ? NULL : given : slug;
    ctl->options[CTL_ID] = by_id ? given : given ? NULL
                           : ctl_match_text(settings, "id");
    if (!ctl->options[CTL_NAME]) {
        return ctl_item_refuse(ctl, settings, "name", "is required");
    }
    CRM_ERR(ctl_workspace_make(&result, ctl));
    apply->workspace_id = PQgetvalue(result, 0, 0);
    apply->created = 1;
    return NULL;
}

/* Find or make the workspace, and take turns with others who apply to it. */
static crm_error_t *get_workspace(ctl_apply_t *apply)
{
    const char *given = apply->ctl->options[CTL_WORKSPACE];
    const char *shown = given;
    ctl_item_t *settings;

    CRM_ERR(find_settings(&settings, apply));
    if (!settings && !given) {
        return ctl_misuse(apply->ctl, "apply needs --workspace W, or a document"
                          " with a workspace");
    }
    for (int i = 0; !shown; i++) {
        static const char *const names[] = {"slug", "id", "name"};

        if (i == 3) {
            return ctl_item_refuse(apply->ctl, settings, NULL,
                                   "needs an id, a slug or a name");
        }
        shown = ctl_match_text(settings, names[i]);
    }
    CRM_ERR(find_workspace(apply, settings));
    if (!apply->workspace_id && apply->ctl->options[CTL_CREATE]) {
        CRM_ERR(take_turn(apply, "apply:", shown));
        CRM_ERR(find_workspace(apply, settings));
        if (!apply->workspace_id) {
            CRM_ERR(make_workspace(apply, settings));
        }
    }
    if (!apply->workspace_id) {
        return ctl_fault(apply->ctl, "there is no workspace \"%s\"; --create"
                         " makes it", shown);
    }
    return take_turn(apply, "import:", apply->workspace_id);
}

/* Let the object of the workspace mean the workspace. */
static crm_error_t *match_workspace(ctl_apply_t *apply,
                                    apr_array_header_t *works)
{
    ctl_row_t *row = APR_ARRAY_IDX(CTL_ROWS(apply, ctl_kinds), 0, ctl_row_t *);
    const char *slug, *own = ctl_row_value(row, ctl_kinds, "slug");

    if (apply->created) {
        ctl_apply_note(apply, '+', ctl_kinds, row);
    }
    if (!works->nelts) {
        return NULL;
    }
    APR_ARRAY_IDX(works, 0, ctl_work_t).row = row;
    row->item = APR_ARRAY_IDX(works, 0, ctl_work_t).item;
    slug = ctl_match_text(row->item, "slug");
    return !slug || !strcmp(slug, own) || apply->ctl->options[CTL_WORKSPACE]
           ? NULL : ctl_item_refuse(apply->ctl, row->item, "slug",
                                    "cannot be changed");
}

/* ---- applying ------------------------------------------------------------- */

/* Apply the objects of KIND. */
static crm_error_t *apply_kind(ctl_apply_t *apply, const ctl_kind_t *kind)
{
    apr_array_header_t *works = apr_array_make(apply->ctl->pool, 16,
                                               sizeof(ctl_work_t));

    CRM_ERR(ctl_match_load(apply, kind));
    for (int i = 0; i < apply->items->nelts; i++) {
        ctl_item_t *item = APR_ARRAY_IDX(apply->items, i, ctl_item_t *);
        ctl_work_t work = {.item = item};

        if (item->kind == kind) {
            APR_ARRAY_PUSH(works, ctl_work_t) = work;
        }
    }
    CRM_ERR(kind == ctl_kinds ? match_workspace(apply, works)
            : ctl_match_rows(apply, kind, works));
    for (int i = 0; i < works->nelts; i++) {
        CRM_ERR(ctl_apply_read(apply, kind, &APR_ARRAY_IDX(works, i,
                                                           ctl_work_t)));
    }
    CRM_ERR(ctl_apply_free(apply, kind, works));
    CRM_ERR(ctl_apply_addresses(apply, kind, works));
    for (int i = 0; i < works->nelts; i++) {
        CRM_ERR(ctl_apply_write(apply, kind, &APR_ARRAY_IDX(works, i,
                                                            ctl_work_t)));
    }
    return NULL;
}

static crm_error_t *apply_all(ctl_apply_t *apply)
{
    CRM_ERR(get_workspace(apply));
    for (const ctl_kind_t *kind = ctl_kinds; kind->resource; kind++) {
        CRM_ERR(apply_kind(apply, kind));
    }
    if (apply->ctl->options[CTL_PRUNE]) {
        CRM_ERR(ctl_prune(apply));
    }
    apply->ctl->reads = !apply->changes->nelts;
    ctl_audit_object(apply->ctl, apply->workspace_id, NULL);
    return apply->ctl->reads ? NULL : ctl_audit(apply->ctl);
}

/* ---- the plan ------------------------------------------------------------- */

/* Return what CHANGE's row is called. */
static const char *name_of(const ctl_change_t *change)
{
    const ctl_kind_t *kind = change->kind;
    const char *name = ctl_row_value(change->row, kind, kind->name);

    return name || !kind->handle ? name
           : ctl_row_value(change->row, kind, kind->handle);
}

/* Return how many changes have SIGN. */
static int count_of(const ctl_apply_t *apply, char sign)
{
    int count = 0;

    for (int i = 0; i < apply->changes->nelts; i++) {
        count += APR_ARRAY_IDX(apply->changes, i, ctl_change_t).sign == sign;
    }
    return count;
}

/* Return what CHANGE's secret is called. */
static const char *secret_name(const ctl_change_t *change)
{
    return !strcmp(change->kind->table, "intake_key") ? "token" : "secret";
}

/* Add CHANGE to BUF as a line. With SECRETS: its secret, too. */
static void add_line(crm_buf_t *buf, const ctl_change_t *change, int secrets)
{
    const char *name = name_of(change);

    crm_buf_printf(buf, "%c %s %s%s%s (%s)%s%s\n", change->sign,
                   change->kind->resource->name, name ? "\"" : "",
                   name ? ctl_clean(name, buf->pool) : "-", name ? "\"" : "",
                   change->row->id, change->fields ? ": " : "",
                   change->fields ? change->fields : "");
    if (secrets && change->secret) {
        crm_buf_printf(buf, "  %s: %s\n", secret_name(change), change->secret);
    }
}

/* Add the member NAME with the string TEXT to BUF, unless TEXT is NULL. */
static void add_member(crm_buf_t *buf, const char *name, const char *text)
{
    if (text) {
        crm_buf_printf(buf, ",\"%s\":", name);
        crm_buf_json_text(buf, text);
    }
}

/* The same as add_line(), as JSON. */
static void add_json(crm_buf_t *buf, const ctl_change_t *change, int secrets)
{
    crm_buf_printf(buf, "{\"action\":\"%c\"", change->sign);
    add_member(buf, "object", change->kind->resource->name);
    add_member(buf, "id", change->row->id);
    add_member(buf, "name", name_of(change));
    add_member(buf, "fields", change->fields);
    add_member(buf, secret_name(change), secrets ? change->secret : NULL);
    crm_buf_putc(buf, '}');
}

/* Print the plan of APPLY, which is carried out unless it is a dry run. */
static void print_plan(const ctl_apply_t *apply, int dry)
{
    const ctl_change_t *changes = (const ctl_change_t *)apply->changes->elts;
    int made = count_of(apply, '+'), changed = count_of(apply, '~');
    int deleted = count_of(apply, '-');
    crm_buf_t buf;

    crm_buf_init(&buf, 4096, apply->ctl->pool);
    if (!apply->ctl->options[CTL_JSON]) {
        for (int i = 0; i < apply->changes->nelts; i++) {
            add_line(&buf, &changes[i], !dry);
        }
        crm_buf_printf(&buf, dry ? "%d to create, %d to change, %d to delete,"
                       " %d unchanged\n" : "%d created, %d changed, %d deleted,"
                       " %d unchanged\n", made, changed, deleted, apply->same);
    }
    else {
        crm_buf_printf(&buf, "{\"workspace_id\":\"%s\",\"dry_run\":%s,"
                       "\"created\":%d,\"changed\":%d,\"deleted\":%d,"
                       "\"unchanged\":%d,\"changes\":[", apply->workspace_id,
                       dry ? "true" : "false", made, changed, deleted,
                       apply->same);
        for (int i = 0; i < apply->changes->nelts; i++) {
            crm_buf_puts(&buf, i ? ",\n" : "");
            add_json(&buf, &changes[i], !dry);
        }
        crm_buf_puts(&buf, "]}\n");
    }
    ctl_write(stdout, buf.data, buf.len);
}

/* ---- the command ---------------------------------------------------------- */

/* Check that the options go together. */
static crm_error_t *check_options(ctl_t *ctl)
{
    if (!ctl->args[0]) {
        return ctl_misuse(ctl, "apply needs FILE...");
    }
    return ctl->options[CTL_MOVE_TO] && !ctl->options[CTL_PRUNE]
           ? ctl_misuse(ctl, "--move-to needs --prune") : NULL;
}

/* End the transaction: commit, or roll back because of ERROR or a DRY run. */
static crm_error_t *end(ctl_apply_t *apply, crm_error_t *error, int dry)
{
    if (error || !dry) {
        return ctl_end(apply->ctl, error);
    }
    return crm_db_exec(apply->ctl->conn, "ROLLBACK", apply->ctl->pool);
}

crm_error_t *ctl_apply(ctl_t *ctl)
{
    ctl_apply_t apply = {.ctl = ctl};
    int dry = ctl->options[CTL_DRY_RUN] != NULL;
    crm_error_t *error;

    if (ctl->options[CTL_PRINT_SCHEMA]) {
        ctl_apply_schema(ctl->pool);
        return NULL;
    }
    CRM_ERR(check_options(ctl));
    CRM_ERR(ctl_document_read(&apply.items, ctl));
    apply.changes = apr_array_make(ctl->pool, 16, sizeof(ctl_change_t));
    CRM_ERR(ctl_begin(ctl));
    error = apply_all(&apply);
    if (!error) {
        print_plan(&apply, dry);
    }
    CRM_ERR(end(&apply, error, dry));
    if (dry && apply.changes->nelts) {
        ctl->code = CODE_CHANGES;
    }
    return apply.events && !dry ? ctl_events_wait(ctl, apply.workspace_id)
           : NULL;
}
