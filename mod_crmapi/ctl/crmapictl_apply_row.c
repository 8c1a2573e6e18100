/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_apply_row.c: reading, checking and writing rows that documents name
 * (contract 14.1) */
#include "crmapictl_apply_row.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_json.h"
#include "crm_text.h"
#include "crmapictl_address.h"
#include "crmapictl_field.h"
#include "crmapictl_made.h"
#include "crmapictl_match.h"
#include "crmapictl_workspace.h"

/* ---- reading -------------------------------------------------------------- */

/* Return VALUE, a variable's text in the member FIELD of ITEM, as what a field that
 * is no text takes. */
static json_object *typed(const ctl_item_t *item, const crm_field_t *field,
                          json_object *value, apr_pool_t *pool)
{
    const char *text = crm_json_text(value);
    json_object *other;
    apr_size_t offset;

    if (!text || !apr_hash_get(item->typed, field->name, APR_HASH_KEY_STRING)
        || (field->type != &crm_type_integer && field->type != &crm_type_number
            && field->type != &crm_type_boolean)
        || crm_json_parse(&other, &offset, text, strlen(text), pool)) {
        return value;
    }
    return other;
}

/* Replace VALUE, a reference of ITEM's FIELD by id, slug or name, by the id. */
static json_object *resolved(ctl_apply_t *apply, const ctl_item_t *item,
                             const crm_field_t *field, json_object *value,
                             crm_input_t *input)
{
    const char *text = crm_json_text(value), *id = NULL;

    if (!field->ref || !text) {
        return value;
    }
    if (ctl_kind_find(field->ref)) {
        id = ctl_match_reference(apply, field->ref, text, item);
    }
    if (!id) {
        crm_input_error(input, field->name, apr_psprintf(
            input->pool, "is not the id, the slug or the name of one %s of this"
            " workspace", field->ref));
        return value;
    }
    json_object_set_string(value, id);
    return value;
}

/* Return whether the document cannot say what FIELD of WORK is: an id is only
 * looked for, a workspace's slug is fixed, a time is that of a new row. */
static int is_given(const ctl_kind_t *kind, const crm_field_t *field,
                    const ctl_work_t *work)
{
    return !strcmp(field->name, "id")
           || (!work->is_new && ctl_kind_is_stamp(field))
           || (kind == ctl_kinds && !strcmp(field->name, "slug"));
}

/* Read the field I of KIND into WORK. */
static void read_field(ctl_apply_t *apply, const ctl_kind_t *kind,
                       ctl_work_t *work, int i, crm_input_t *input)
{
    const crm_field_t *field = &kind->resource->fields[i];
    json_object *value = NULL;
    int there = json_object_object_get_ex(work->item->object, field->name,
                                          &value);

    work->binds[i] = work->row->values[i];
    if (is_given(kind, field, work)) {
        if (value && !strcmp(field->name, "slug")
            && !json_object_is_type(value, json_type_string)) {
            crm_input_error(input, field->name, "must be a string");
        }
        return;
    }
    if (there && (value || !work->is_new)) {
        work->sent[i] = 1;
        value = typed(work->item, field, value, input->pool);
        value = resolved(apply, work->item, field, value, input);
        crm_type_parse(&work->binds[i], input, field, field->name, value);
    }
    else if (work->is_new && field->flags & CRM_F_REQUIRED) {
        crm_input_error(input, field->name, "is required");
    }
    else if (work->is_new) {
        ctl_field_initial(&work->binds[i], field, input->pool);
    }
}

crm_error_t *ctl_apply_read(ctl_apply_t *apply, const ctl_kind_t *kind,
                            ctl_work_t *work)
{
    const crm_resource_t *resource = kind->resource;
    size_t count = (size_t)crm_resource_fields(resource);
    crm_input_t input = {apply->ctl->pool, NULL, 0};
    const crm_detail_t *detail;

    work->binds = apr_pcalloc(input.pool, count * sizeof(*work->binds));
    work->sent = apr_pcalloc(input.pool, count);
    ctl_field_members(&input, resource, work->item->object, kind->secret);
    for (int i = 0; i < (int)count; i++) {
        if (ctl_kind_has(&resource->fields[i])) {
            read_field(apply, kind, work, i, &input);
        }
    }
    if (!input.error && resource->check) {
        resource->check(&input, resource, work->binds, work->sent);
    }
    if (!input.error) {
        return NULL;
    }
    detail = &APR_ARRAY_IDX(input.error->details, 0, crm_detail_t);
    return ctl_item_refuse(apply->ctl, work->item, detail->field,
                           detail->message);
}

/* Return whether the document changes the field I of WORK's row. */
static int is_changed(const ctl_kind_t *kind, const ctl_work_t *work, int i,
                      apr_pool_t *pool)
{
    return work->sent[i]
           && !crm_type_equal(&kind->resource->fields[i], work->row->values[i],
                              work->binds[i], pool);
}

/* ---- what only one may have ----------------------------------------------- */

/* The fields that belong to one agent: its slug in its workspace, its addresses in the
 * database. */
static const char *const unique[] = {
    "slug", "agent_email", "email_outbound_email", "agent_phone", NULL
};
static const char *const *const addresses = unique + 1;

/* Return whether the field I of ROW, of KIND, will not have its value any more, if WORK
 * (NULL: nothing) is written and --prune is done. */
static int is_freed(const ctl_apply_t *apply, const ctl_kind_t *kind,
                    const ctl_row_t *row, const ctl_work_t *work, int i)
{
    return row->values[i] && (work ? is_changed(kind, work, i, apply->ctl->pool)
                              : apply->ctl->options[CTL_PRUNE] != NULL);
}

/* Take the unique fields of ROW, as far as they are freed. */
static crm_error_t *free_row(ctl_apply_t *apply, const ctl_kind_t *kind,
                             const ctl_row_t *row, const ctl_work_t *work)
{
    PGresult *result;
    crm_sql_t sql;
    int set = 0;

    crm_sql_init(&sql, apply->ctl->pool);
    crm_sql_adds(&sql, "UPDATE crmapi.", kind->table, " AS t SET ", NULL);
    for (int u = 0; unique[u]; u++) {
        if (is_freed(apply, kind, row, work, ctl_kind_index(kind, unique[u]))) {
            crm_sql_adds(&sql, set++ ? ", " : "", unique[u], " = NULL", NULL);
        }
    }
    crm_sql_template(&sql, " WHERE t.workspace_id = ?", apply->workspace_id,
                     "uuid");
    crm_sql_template(&sql, " AND t.id = ?", row->id, "uuid");
    return set ? ctl_apply_run(&result, apply, &sql) : NULL;
}

crm_error_t *ctl_apply_free(ctl_apply_t *apply, const ctl_kind_t *kind,
                            const apr_array_header_t *works)
{
    const apr_array_header_t *rows = CTL_ROWS(apply, kind);

    if (strcmp(kind->resource->name, "agent")) {
        return NULL;
    }
    for (int i = 0; i < works->nelts; i++) {
        const ctl_work_t *work = &APR_ARRAY_IDX(works, i, ctl_work_t);

        if (!work->is_new) {
            CRM_ERR(free_row(apply, kind, work->row, work));
        }
    }
    for (int i = 0; i < rows->nelts; i++) {
        const ctl_row_t *row = APR_ARRAY_IDX(rows, i, const ctl_row_t *);

        if (!row->item) {
            CRM_ERR(free_row(apply, kind, row, NULL));
        }
    }
    return NULL;
}

/* Add WORK, an agent with the number LINE, to those that are checked, if it has a
 * new address. */
static crm_error_t *stage_agent(ctl_apply_t *apply, const ctl_kind_t *kind,
                                const ctl_work_t *work, int line)
{
    apr_pool_t *pool = apply->ctl->pool;
    PGresult *result;
    crm_sql_t sql;
    int is_changed = 0;

    crm_sql_init(&sql, pool);
    crm_sql_template(&sql, "INSERT INTO stage_agent VALUES (?",
                     apr_psprintf(pool, "%d", line), "bigint");
    crm_sql_template(&sql, ", ?", work->row->id, "uuid");
    for (int i = 0; addresses[i]; i++) {
        int f = ctl_kind_index(kind, addresses[i]);
        const char *old = work->is_new ? NULL : work->row->values[f];

        is_changed |= work->binds[f] && (!old || strcmp(old, work->binds[f]));
        crm_sql_template(&sql, ", ?", work->binds[f], "text");
    }
    crm_sql_add(&sql, ")");
    return is_changed ? ctl_apply_run(&result, apply, &sql) : NULL;
}

/* Return whether one of WORKS, agents, has an address. */
static int have_addresses(const ctl_kind_t *kind,
                          const apr_array_header_t *works)
{
    for (int w = 0; w < works->nelts; w++) {
        for (int i = 0; addresses[i]; i++) {
            int f = ctl_kind_index(kind, addresses[i]);

            if (APR_ARRAY_IDX(works, w, ctl_work_t).binds[f]) {
                return 1;
            }
        }
    }
    return 0;
}

crm_error_t *ctl_apply_addresses(ctl_apply_t *apply, const ctl_kind_t *kind,
                                 const apr_array_header_t *works)
{
    const char *field, *rule;
    apr_int64_t line;

    if (strcmp(kind->resource->name, "agent") || !have_addresses(kind, works)) {
        return NULL;
    }
    CRM_ERR(crm_db_exec(apply->ctl->conn, "CREATE TEMPORARY TABLE stage_agent"
                        " (line bigint, id uuid, agent_email text,"
                        " email_outbound_email text, agent_phone text)"
                        " ON COMMIT DROP", apply->ctl->pool));
    for (int i = 0; i < works->nelts; i++) {
        CRM_ERR(stage_agent(apply, kind, &APR_ARRAY_IDX(works, i, ctl_work_t),
                            i + 1));
    }
    CRM_ERR(ctl_address_check(&line, &field, &rule, apply->ctl->conn,
                              apply->workspace_id, apply->ctl->pool));
    return line ? ctl_item_refuse(apply->ctl,
                                  APR_ARRAY_IDX(works, line - 1,
                                                ctl_work_t).item, field, rule)
           : NULL;
}

/* ---- writing -------------------------------------------------------------- */

/* Return ERROR; if it says that the database refuses WORK's row: where that is. */
static crm_error_t *explain(ctl_apply_t *apply, const ctl_work_t *work,
                            crm_error_t *error)
{
    return !crm_error_refuses(error) ? error
           : ctl_item_refuse(apply->ctl, work->item, NULL, error->log);
}

/* Insert the row of WORK. */
static crm_error_t *insert(ctl_apply_t *apply, const ctl_kind_t *kind,
                           ctl_work_t *work)
{
    const crm_field_t *fields = kind->resource->fields;
    ctl_change_t *change = ctl_apply_note(apply, '+', kind, work->row);
    PGresult *result;
    crm_sql_t sql;

    if (kind->secret) {
        return ctl_made_insert(apply, kind, work, change);
    }
    crm_sql_init(&sql, apply->ctl->pool);
    crm_sql_adds(&sql, "INSERT INTO crmapi.", kind->table, " (workspace_id",
                 NULL);
    for (int i = 0; fields[i].name; i++) {
        if (work->binds[i]) {
            crm_sql_adds(&sql, ", ", fields[i].name, NULL);
        }
    }
    crm_sql_add(&sql, ") VALUES (");
    crm_sql_bind(&sql, apply->workspace_id, "uuid");
    for (int i = 0; fields[i].name; i++) {
        if (work->binds[i]) {
            crm_sql_add(&sql, ", ");
            crm_sql_bind(&sql, work->binds[i], fields[i].type->cast);
        }
    }
    crm_sql_add(&sql, ")");
    return ctl_apply_run(&result, apply, &sql);
}

/* Add the fields of WORK that change to SQL, a SET list, and to *NAMES_P. What has
 * no column is written at once. */
static crm_error_t *add_changes(const char **names_p, crm_sql_t *sql,
                                ctl_apply_t *apply, const ctl_kind_t *kind,
                                const ctl_work_t *work)
{
    apr_pool_t *pool = apply->ctl->pool;
    int set = 0;

    *names_p = "";
    for (int i = 0; kind->resource->fields[i].name; i++) {
        const crm_field_t *field = &kind->resource->fields[i];

        if (!is_changed(kind, work, i, pool)) {
            continue;
        }
        *names_p = crm_text_listed(*names_p, field->name, pool);
        if (field->sql) {
            apply->events = 1;
            CRM_ERR(ctl_events_set(apply->ctl, apply->workspace_id,
                                   work->binds[i]));
            continue;
        }
        crm_sql_adds(sql, set++ ? ", " : " SET ", field->name, " = ", NULL);
        crm_sql_bind(sql, work->binds[i], field->type->cast);
    }
    if (set && crm_resource_field(kind->resource, "updated_at")) {
        crm_sql_add(sql, ", updated_at = " CTL_SQL_LATER);
    }
    return NULL;
}

/* Update the row of WORK, if that is needed. */
static crm_error_t *update(ctl_apply_t *apply, const ctl_kind_t *kind,
                           ctl_work_t *work)
{
    const char *names;
    PGresult *result;
    crm_sql_t sql;
    apr_size_t len;

    crm_sql_init(&sql, apply->ctl->pool);
    crm_sql_adds(&sql, "UPDATE crmapi.", kind->table, " AS t", NULL);
    len = sql.text.len;
    CRM_ERR(add_changes(&names, &sql, apply, kind, work));
    if (kind == ctl_kinds && apply->created) {
        /* it is noted already */
    }
    else if (!*names) {
        apply->same++;
    }
    else {
        ctl_apply_note(apply, '~', kind, work->row)->fields = names;
    }
    if (sql.text.len == len) {
        return NULL;
    }
    if (kind == ctl_kinds) {
        crm_sql_add(&sql, " WHERE t.id = ");
        crm_sql_bind(&sql, apply->workspace_id, "uuid");
    }
    else {
        crm_sql_add(&sql, " WHERE t.workspace_id = ");
        crm_sql_bind(&sql, apply->workspace_id, "uuid");
        crm_sql_add(&sql, " AND t.id = ");
        crm_sql_bind(&sql, work->row->id, "uuid");
    }
    return ctl_apply_run(&result, apply, &sql);
}

crm_error_t *ctl_apply_write(ctl_apply_t *apply, const ctl_kind_t *kind,
                             ctl_work_t *work)
{
    crm_error_t *error;

    error = work->is_new ? insert(apply, kind, work)
                         : update(apply, kind, work);
    if (!error && !work->is_new && kind->secret) {
        error = ctl_made_compare(apply, kind, work);
    }
    if (kind == ctl_kinds && crm_error_is(error, "23503")) {
        return ctl_item_refuse(apply->ctl, work->item, "plan",
                               "is not a plan of plan list");
    }
    if (!error) {
        work->row->values = work->binds;
    }
    return explain(apply, work, error);
}
