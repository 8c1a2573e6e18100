/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_match.c: the rows that objects of documents mean, and references
 * between them (contract 14.1) */
#include "crmapictl_match.h"

#include <string.h>

#include "crm_email.h"
#include "crm_json.h"
#include "crm_uuid.h"

const char *ctl_match_text(const ctl_item_t *item, const char *name)
{
    return crm_json_text(json_object_object_get(item->object, name));
}

crm_error_t *ctl_match_load(ctl_apply_t *apply, const ctl_kind_t *kind)
{
    int count = crm_resource_fields(kind->resource);
    apr_pool_t *pool = apply->ctl->pool;
    PGresult *result;
    crm_sql_t sql;

    crm_sql_init(&sql, pool);
    ctl_kind_select(&sql, kind, apply->workspace_id);
    CRM_ERR(ctl_apply_run(&result, apply, &sql));
    CTL_ROWS(apply, kind) = apr_array_make(pool, PQntuples(result) + 4,
                                           sizeof(ctl_row_t *));
    for (int i = 0; i < PQntuples(result); i++) {
        ctl_row_t *row = apr_pcalloc(pool, sizeof(*row));
        int column = 0;

        row->values = apr_pcalloc(pool, (size_t)count * sizeof(*row->values));
        for (int f = 0; f < count; f++) {
            if (ctl_kind_has(&kind->resource->fields[f])) {
                row->values[f] = crm_db_value(result, i, column++);
            }
        }
        row->id = ctl_row_value(row, kind, "id");
        APR_ARRAY_PUSH(CTL_ROWS(apply, kind), ctl_row_t *) = row;
    }
    return NULL;
}

/* Return whether A and B name the same object of KIND by their field NAME. */
static int is_same(const ctl_kind_t *kind, const char *name, const char *a,
                   const char *b, apr_pool_t *pool)
{
    return a && b && (!strcmp(a, b)
                      || (!strcmp(kind->resource->name, "admin")
                          && !strcmp(name, "email")
                          && crm_email_equal(a, b, pool)));
}

ctl_row_t *ctl_match_row(const ctl_apply_t *apply, const ctl_kind_t *kind,
                         const char *id)
{
    const apr_array_header_t *rows = CTL_ROWS(apply, kind);

    for (int i = 0; i < rows->nelts; i++) {
        ctl_row_t *row = APR_ARRAY_IDX(rows, i, ctl_row_t *);

        if (!strcmp(row->id, id) || (row->alias && !strcmp(row->alias, id))) {
            return row;
        }
    }
    return NULL;
}

/* What rows of a kind are looked for by. */
typedef struct wanted_t {
    const char *name;           /* of a field */
    const char *text;           /* its value */
    const char *scope;          /* id of what they are below; NULL: any */
    const ctl_item_t *own;      /* the object that looks for its row; NULL: one that
                                   refers to it */
} wanted_t;

/* Return whether OWN, an object of KIND that looks for its row by the field NAME,
 * cannot mean ROW: another object with an id of its own has it, or it has another
 * slug. */
static int is_other(const ctl_kind_t *kind, const char *name,
                    const ctl_row_t *row, const ctl_item_t *own)
{
    return (row->item && ctl_match_text(row->item, "id")
            && ctl_match_text(own, "id"))
           || (kind->handle && strcmp(name, kind->handle)
               && ctl_match_text(own, kind->handle)
               && ctl_row_value(row, kind, kind->handle));
}

/* Find the rows of KIND that are WANTED. *ROW_P is the last one. Return their
 * number. */
static int find_text(ctl_row_t **row_p, const ctl_apply_t *apply,
                     const ctl_kind_t *kind, const wanted_t *wanted)
{
    const apr_array_header_t *rows = CTL_ROWS(apply, kind);
    int found = 0;

    for (int i = 0; i < rows->nelts; i++) {
        ctl_row_t *row = APR_ARRAY_IDX(rows, i, ctl_row_t *);

        if (!(wanted->own && is_other(kind, wanted->name, row, wanted->own))
            && is_same(kind, wanted->name,
                       ctl_row_value(row, kind, wanted->name), wanted->text,
                       apply->ctl->pool)
            && (!wanted->scope
                || !strcmp(ctl_row_value(row, kind, kind->scope),
                           wanted->scope))) {
            *row_p = row;
            found++;
        }
    }
    return found;
}

/* Return the id of the agent that ITEM has as bot_id, or NULL. */
static const char *agent_of(ctl_apply_t *apply, const ctl_item_t *item)
{
    const char *text = ctl_match_text(item, "bot_id");

    return text ? ctl_match_reference(apply, "agent", text, item) : NULL;
}

const char *ctl_match_reference(ctl_apply_t *apply, const char *name,
                                const char *text, const ctl_item_t *item)
{
    const ctl_kind_t *kind = ctl_kind_find(name);
    wanted_t by_handle = {.name = kind->handle, .text = text};
    wanted_t by_name = {.name = kind->name, .text = text};
    char id[CRM_UUID_LEN + 1];
    ctl_row_t *row = NULL;

    if (crm_uuid_parse(id, text, strlen(text))) {
        row = ctl_match_row(apply, kind, id);
    }
    if (!row && (!kind->handle || !find_text(&row, apply, kind, &by_handle))
        && find_text(&row, apply, kind, &by_name) > 1) {
        by_name.scope = kind->scope && !strcmp(kind->scope, "bot_id")
                        ? agent_of(apply, item) : NULL;
        if (!by_name.scope || find_text(&row, apply, kind, &by_name) != 1) {
            return NULL;
        }
    }
    return row ? row->id : NULL;
}

/* Set *ROW_P to the row that ITEM means by its slug or name; NULL: none. */
static crm_error_t *find_named(ctl_row_t **row_p, ctl_apply_t *apply,
                               const ctl_kind_t *kind, ctl_item_t *item)
{
    const char *handle = kind->handle ? ctl_match_text(item, kind->handle)
                                      : NULL;
    const char *name = ctl_match_text(item, kind->name);
    const char *scope = kind->scope ? ctl_match_text(item, kind->scope) : NULL;

    *row_p = NULL;
    if (!name && !handle && kind->handle
        && !ctl_match_text(item, "id")) {
        return ctl_item_refuse(apply->ctl, item, NULL,
                               "needs an id, a slug or a name");
    }
    if (scope) {
        const char *ref = kind->resource->fields[
            ctl_kind_index(kind, kind->scope)].ref;

        scope = ctl_match_reference(apply, ref, scope, item);
        if (!scope) {
            return NULL;        /* the reference is refused later */
        }
    }
    if (handle && find_text(row_p, apply, kind,
                            &(wanted_t){kind->handle, handle, NULL, item})) {
        return NULL;
    }
    if (name && find_text(row_p, apply, kind,
                          &(wanted_t){kind->name, name, scope, item}) > 1) {
        return ctl_item_refuse(apply->ctl, item, kind->name,
                               "several have this name: give the id");
    }
    return NULL;
}

/* Give WORK, whose object has no row, a new one. */
static void add_row(ctl_apply_t *apply, const ctl_kind_t *kind,
                    ctl_work_t *work, const char *id)
{
    size_t count = (size_t)crm_resource_fields(kind->resource);
    apr_pool_t *pool = apply->ctl->pool;
    ctl_row_t *row = apr_pcalloc(pool, sizeof(*row));

    row->values = apr_pcalloc(pool, count * sizeof(*row->values));
    row->values[ctl_kind_index(kind, kind->name)] =
        ctl_match_text(work->item, kind->name);
    if (kind->handle) {
        row->values[ctl_kind_index(kind, kind->handle)] =
            ctl_match_text(work->item, kind->handle);
    }
    if (kind->scope) {
        const crm_field_t *field = &kind->resource->fields[
            ctl_kind_index(kind, kind->scope)];
        const char *scope = ctl_match_text(work->item, kind->scope);

        scope = scope ? ctl_match_reference(apply, field->ref, scope,
                                            work->item) : NULL;
        row->values[ctl_kind_index(kind, kind->scope)] = scope ? scope : "";
    }
    if (!id) {
        char *made = apr_palloc(pool, CRM_UUID_LEN + 1);

        crm_uuid_v7(made);
        id = made;
    }
    row->id = row->values[ctl_kind_index(kind, "id")] = id;
    APR_ARRAY_PUSH(CTL_ROWS(apply, kind), ctl_row_t *) = row;
    work->row = row;
    work->is_new = 1;
}

crm_error_t *ctl_match_id(const char **id_p, ctl_apply_t *apply,
                          const ctl_item_t *item)
{
    json_object *value = json_object_object_get(item->object, "id");
    const char *text = ctl_match_text(item, "id");
    char *id = apr_palloc(apply->ctl->pool, CRM_UUID_LEN + 1);

    *id_p = NULL;
    if (!value) {
        return NULL;
    }
    if (!text || !crm_uuid_parse(id, text, strlen(text))) {
        return ctl_item_refuse(apply->ctl, item, "id", "must be a UUID");
    }
    *id_p = id;
    return NULL;
}

/* Let WORK's object have ROW. ID is the object's own, or NULL. */
static crm_error_t *take(ctl_apply_t *apply, ctl_work_t *work, ctl_row_t *row,
                         const char *id)
{
    if (row->item && row->item != work->item) {
        return ctl_item_refuse(apply->ctl, work->item, NULL,
                               "is an object that another one is already");
    }
    row->item = work->item;
    row->alias = id && strcmp(id, row->id) ? id : NULL;
    work->row = row;
    return NULL;
}

/* Find the row of WORK: with BY_ID only by its id. */
static crm_error_t *find_row(ctl_apply_t *apply, const ctl_kind_t *kind,
                             ctl_work_t *work, int by_id)
{
    ctl_row_t *row;
    const char *id;

    CRM_ERR(ctl_match_id(&id, apply, work->item));
    row = id ? ctl_match_row(apply, kind, id) : NULL;
    if (!row && !by_id) {
        CRM_ERR(find_named(&row, apply, kind, work->item));
        if (!row) {
            add_row(apply, kind, work, id);
            row = work->row;
        }
    }
    return row ? take(apply, work, row, id) : NULL;
}

crm_error_t *ctl_match_rows(ctl_apply_t *apply, const ctl_kind_t *kind,
                            apr_array_header_t *works)
{
    for (int by_id = 1; by_id >= 0; by_id--) {
        for (int i = 0; i < works->nelts; i++) {
            ctl_work_t *work = &APR_ARRAY_IDX(works, i, ctl_work_t);

            if (!work->row) {
                CRM_ERR(find_row(apply, kind, work, by_id));
            }
        }
    }
    return NULL;
}
