/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_prune.c: deleting what no document names (contract 14.1) */
#include "crmapictl_prune.h"

#include <string.h>

#include "apr_hash.h"

#include "crm_uuid.h"
#include "crmapictl_match.h"
#include "crmapictl_options.h"

/* What rows of a kind own: the rows of TABLE whose COLUMN has their id. An enrollment
 * has its sequence's template, too, and is locked before it
 * (0009-enrollments.sql). */
static const struct {
    const char *kind;
    const char *table;
    const char *column;
    const char *what;           /* for people */
    int times;                  /* it has updated_at */
} owned[] = {
    {"agent", "contact", "bot_id", "contacts", 1},
    {"agent", "company", "bot_id", "companies", 1},
    {"agent", "conversation", "bot_id", "conversations", 1},
    {"agent", "sequence", "bot_id", "sequences", 0},
    {"agent", "pipeline", "bot_id", "pipelines", 1},
    {"agent", "pipeline_stage", "bot_id", "stages", 1},
    {"agent", "form", "bot_id", "forms", 1},
    {"agent", "sequence_template", "bot_id", "templates", 1},
    {"pipeline", "pipeline_stage", "pipeline_id", "stages", 1},
    {"pipeline_stage", "pipeline_card", "pipeline_stage_id", "cards", 1},
    {"pipeline_stage", "contact", "pipeline_stage_id", "contacts", 1},
    {"pipeline_stage", "company", "pipeline_stage_id", "companies", 1},
    {"form", "submission", "form_id", "submissions", 0},
    {"sequence_template", "enrollment", "template_id", "sequences", 0},
    {"sequence_template", "sequence", "template_id", "sequences", 0},
    {NULL, NULL, NULL, NULL, 0}
};

/* Return whether ROW (may be NULL) stays, because a document names it. */
static int stays(const ctl_row_t *row)
{
    return row && row->item;
}

/* Return the row of KIND that --move-to names, or NULL. */
static const char *target_of(const ctl_apply_t *apply, const ctl_kind_t *kind)
{
    const apr_array_header_t *given = apply->ctl->given;
    char id[CRM_UUID_LEN + 1];

    for (int i = 0; i < given->nelts; i++) {
        const ctl_given_t *one = &APR_ARRAY_IDX(given, i, ctl_given_t);
        const ctl_row_t *row = one->option == CTL_MOVE_TO
            && crm_uuid_parse(id, one->value, strlen(one->value))
            ? ctl_match_row(apply, kind, id) : NULL;

        if (stays(row)) {
            return row->id;
        }
    }
    return NULL;
}

/* Return the kind of the row with ID that stays, one that owns something; NULL: there
 * is none. */
static const char *kind_of(const ctl_apply_t *apply, const char *id)
{
    for (int o = 0; owned[o].kind; o++) {
        if (stays(ctl_match_row(apply, ctl_kind_find(owned[o].kind), id))) {
            return owned[o].kind;
        }
    }
    return NULL;
}

/* Check that each --move-to names a row that stays, of a kind that owns something,
 * one of each kind. */
static crm_error_t *check_targets(const ctl_apply_t *apply)
{
    const apr_array_header_t *given = apply->ctl->given;
    apr_hash_t *kinds = apr_hash_make(apply->ctl->pool);

    for (int i = 0; i < given->nelts; i++) {
        const ctl_given_t *one = &APR_ARRAY_IDX(given, i, ctl_given_t);
        char id[CRM_UUID_LEN + 1];
        const char *kind;

        if (one->option != CTL_MOVE_TO) {
            continue;
        }
        CRM_ERR(ctl_uuid(id, apply->ctl, "--move-to", one->value));
        kind = kind_of(apply, id);
        if (!kind) {
            return ctl_fault(apply->ctl, "--move-to: %s is no agent, stage, form"
                             " or template that the documents name", id);
        }
        if (apr_hash_get(kinds, kind, APR_HASH_KEY_STRING)) {
            return ctl_fault(apply->ctl, "--move-to: %s is the second %s", id,
                             kind);
        }
        apr_hash_set(kinds, kind, APR_HASH_KEY_STRING, kind);
    }
    return NULL;
}

/* Add "WHERE" the row of TABLE is of the workspace and its COLUMN is ID. */
static void add_where(crm_sql_t *sql, const ctl_apply_t *apply,
                      const char *column, const char *id)
{
    crm_sql_add(sql, " WHERE t.workspace_id = ");
    crm_sql_bind(sql, apply->workspace_id, "uuid");
    crm_sql_adds(sql, " AND t.", column, " = ", NULL);
    crm_sql_bind(sql, id, "uuid");
}

/* Add to SQL, a SET list, that cards go to the end of the stage TARGET, in the order
 * that they have (contract 9.8). */
static crm_error_t *add_position(crm_sql_t *sql, ctl_apply_t *apply,
                                 const char *target)
{
    const char *values[2] = {apply->workspace_id, target};
    PGresult *result;

    CRM_ERR(ctl_query(&result, apply->ctl, "SELECT pg_advisory_xact_lock("
                      "hashtextextended('stage:' || $1::text || ':' ||"
                      " $2::text, 0))", 2, values));
    CRM_ERR(ctl_query(&result, apply->ctl, "SELECT coalesce(max(c.order_index)"
                      "::bigint + 1, 0) FROM crmapi.pipeline_card c"
                      " WHERE c.workspace_id = $1::uuid"
                      " AND c.pipeline_stage_id = $2::uuid", 2, values));
    crm_sql_template(sql, ", order_index = least(t.order_index + ?, 2147483647)",
                     crm_db_value(result, 0, 0), "bigint");
    return NULL;
}

/* Let the row TARGET own what the row ID owns as owned[O] says; NULL: refuse if
 * there is something. */
static crm_error_t *move_owned(ctl_apply_t *apply, int o,
                               const ctl_row_t *row, const char *target)
{
    PGresult *result;
    crm_sql_t sql;

    crm_sql_init(&sql, apply->ctl->pool);
    if (!target) {
        crm_sql_adds(&sql, "SELECT FROM crmapi.", owned[o].table, " t", NULL);
        add_where(&sql, apply, owned[o].column, row->id);
        crm_sql_add(&sql, " LIMIT 1");
        CRM_ERR(ctl_apply_run(&result, apply, &sql));
        return !PQntuples(result) ? NULL
               : ctl_fault(apply->ctl, "--prune: the %s %s still owns %s:"
                           " --move-to ID gives them to another one",
                           owned[o].kind, row->id, owned[o].what);
    }
    crm_sql_adds(&sql, "UPDATE crmapi.", owned[o].table, " AS t SET ",
                 owned[o].column, " = ", NULL);
    crm_sql_bind(&sql, target, "uuid");
    if (!strcmp(owned[o].table, "pipeline_card")) {
        CRM_ERR(add_position(&sql, apply, target));
    }
    crm_sql_add(&sql, owned[o].times ? ", updated_at = " CTL_SQL_LATER : "");
    add_where(&sql, apply, owned[o].column, row->id);
    return ctl_apply_run(&result, apply, &sql);
}

/* Let the row TARGET own all that ROW of KIND owns; NULL: refuse if there is
 * something. */
static crm_error_t *move_all(ctl_apply_t *apply, const ctl_kind_t *kind,
                             const ctl_row_t *row, const char *target)
{
    for (int o = 0; owned[o].kind; o++) {
        if (!strcmp(owned[o].kind, kind->resource->name)) {
            CRM_ERR(move_owned(apply, o, row, target));
        }
    }
    return NULL;
}

/* Lock ROW of KIND: wait for those who are giving it something, and let nobody else
 * do so. */
static crm_error_t *lock_row(ctl_apply_t *apply, const ctl_kind_t *kind,
                             const ctl_row_t *row)
{
    PGresult *result;
    crm_sql_t sql;

    crm_sql_init(&sql, apply->ctl->pool);
    crm_sql_adds(&sql, "SELECT FROM crmapi.", kind->table, " t", NULL);
    add_where(&sql, apply, "id", row->id);
    crm_sql_add(&sql, " FOR UPDATE");
    return ctl_apply_run(&result, apply, &sql);
}

/* Delete ROW of KIND. What it owns is locked before it, as writers do that, and looked
 * for again behind the lock: a contact would lose its stage, and the rest refuse. */
static crm_error_t *prune_row(ctl_apply_t *apply, const ctl_kind_t *kind,
                              const ctl_row_t *row, const char *target)
{
    PGresult *result;
    crm_sql_t sql;

    CRM_ERR(move_all(apply, kind, row, target));
    CRM_ERR(lock_row(apply, kind, row));
    CRM_ERR(move_all(apply, kind, row, target));
    crm_sql_init(&sql, apply->ctl->pool);
    crm_sql_adds(&sql, *kind->where ? "UPDATE crmapi." : "DELETE FROM crmapi.",
                 kind->table, " AS t",
                 *kind->where ? " SET revoked_at = crmapi.now_ms()" : "", NULL);
    add_where(&sql, apply, "id", row->id);
    CRM_ERR(ctl_apply_run(&result, apply, &sql));
    ctl_apply_note(apply, '-', kind, row);
    return NULL;
}

/* Delete the rows of KIND that no document names. */
static crm_error_t *prune_kind(ctl_apply_t *apply, const ctl_kind_t *kind)
{
    const apr_array_header_t *rows = CTL_ROWS(apply, kind);
    const char *target = target_of(apply, kind);

    for (int i = 0; i < rows->nelts; i++) {
        const ctl_row_t *row = APR_ARRAY_IDX(rows, i, const ctl_row_t *);

        if (!row->item) {
            CRM_ERR(prune_row(apply, kind, row, target));
        }
    }
    return NULL;
}

crm_error_t *ctl_prune(ctl_apply_t *apply)
{
    const ctl_kind_t *kind = ctl_kinds;

    CRM_ERR(check_targets(apply));
    while (kind->resource) {
        kind++;
    }
    /* from those that refer to others to those that are referred to */
    while (--kind > ctl_kinds) {
        CRM_ERR(prune_kind(apply, kind));
    }
    return NULL;
}
