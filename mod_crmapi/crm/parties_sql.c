/* SPDX-License-Identifier: Apache-2.0 */
/* parties_sql.c: the statements that find and write parties */
#include "parties_sql.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_rest.h"

/* As many identities take their locks whenever they want. More take turns with others
 * of that kind in the database, eight at a time: PostgreSQL has room for some thousand
 * locks in all, and a session that finds none fails, whoever has taken them. */
#define FEW 50
#define TURN "SELECT 0 AS turn, hashtextextended('parties:'" \
    " || pg_backend_pid() % 8, 0) AS h"

void crm_party_sql_locks(crm_sql_t *sql, crm_call_t *call,
                         const crm_party_kind_t *kind,
                         const char *const texts[CRM_IDENTITY_KEYS],
                         int count, const char *lock)
{
    crm_call_sql(sql, call);
    crm_sql_value(sql, call->key.workspace_id, "uuid");
    crm_sql_adds(sql, "SELECT pg_advisory_xact_lock(l.h) FROM (",
                 count > FEW ? TURN " UNION ALL " : "", "SELECT DISTINCT"
                 " 1 AS turn, hashtextextended(" CRM_SQL_WORKSPACE "::text"
                 " || k.name, 0) AS h FROM (", NULL);
    for (int i = 0; i < CRM_IDENTITY_KEYS && kind->keys[i].column; i++) {
        crm_sql_adds(sql, i ? " UNION SELECT '" : "SELECT '",
                     kind->keys[i].lock, "' || ", kind->keys[i].fold,
                     NULL);
        crm_sql_template(sql, "(u) FROM unnest(?) u", texts[i], "text[]");
    }
    crm_sql_template(sql, " UNION SELECT ':x:' || ?) k(name) WHERE k.name"
                     " IS NOT NULL ORDER BY turn, h) l", lock, "text");
    /* with Citus on the workspace's server, which takes those of intake, too */
    crm_sql_add(sql, CRM_SQL_EITHER("", ", crmapi.workspace o WHERE o.id = "
                                    CRM_SQL_WORKSPACE));
    if (crm_rest(call)->idempotency) {
        crm_sql_add(sql, CRM_SQL_EITHER(" WHERE ", " AND ")
                    CRM_IDEMPOTENCY_OPEN);
    }
}

/* Add w: the number i of each identity and its keys k0, k1 ... */
static void add_identities(crm_sql_t *sql, const crm_party_kind_t *kind,
                           const char *const texts[CRM_IDENTITY_KEYS])
{
    static const char *const names[CRM_IDENTITY_KEYS] = {"k0", "k1", "k2"};

    crm_sql_add(sql, "WITH w AS MATERIALIZED (SELECT u.i");
    for (int i = 0; i < CRM_IDENTITY_KEYS; i++) {
        crm_sql_adds(sql, ", ", kind->keys[i].column ? kind->keys[i].fold : "",
                     "(u.", names[i], ") AS ", names[i], NULL);
    }
    for (int i = 0; i < CRM_IDENTITY_KEYS; i++) {
        crm_sql_add(sql, i ? ", " : " FROM unnest(");
        crm_sql_bind(sql, texts[i], "text[]");
    }
    crm_sql_add(sql, ") WITH ORDINALITY u(k0, k1, k2, i))");
}

/* Add the array of the ids of the DEPTH oldest rows of KIND that have the key
 * NUMBER of w. Other keys than external_id find no row that has another one. */
static void add_matches(crm_sql_t *sql, const crm_party_kind_t *kind,
                        int number, const char *depth)
{
    static const char *const names[CRM_IDENTITY_KEYS] = {"w.k0", "w.k1", "w.k2"};

    crm_sql_adds(sql, number ? " || " : "", "ARRAY(SELECT c.id FROM crmapi.",
                 kind->resource->name, " c WHERE " CRM_SQL_OWN("c")
                 " AND c.", kind->keys[number].column, " = ", names[number],
                 number ? " AND (w.k0 IS NULL OR c.external_id IS NULL OR"
                 " c.external_id = w.k0)" : "", NULL);
    crm_sql_template(sql, " ORDER BY c.created_at, c.id LIMIT ?)", depth,
                     "integer");
}

/* Add why the addresses of m are not written to: the field "suppressed" of a row that
 * has them. NULL if rows of KIND have none. A function would run a query for each. */
static void add_suppressed(crm_sql_t *sql, const crm_party_kind_t *kind)
{
    const crm_field_t *field = crm_resource_field(kind->resource, "suppressed");

    if (field) {
        crm_sql_adds(sql, ", (SELECT ", field->sql, " FROM (SELECT m.k1 AS email_key,"
                     " m.k2 AS phone_key) t)", NULL);
    }
    else {
        crm_sql_add(sql, ", NULL");
    }
}

void crm_party_sql_look_up(crm_sql_t *sql, crm_call_t *call,
                           const crm_party_kind_t *kind,
                           const char *const texts[CRM_IDENTITY_KEYS],
                           const char *id, int depth)
{

    const char *limit = apr_itoa(call->pool, depth);

    crm_rest_sql(sql, call);
    add_identities(sql, kind, texts);
    crm_sql_add(sql, ", m AS MATERIALIZED (SELECT w.i, w.k0, w.k1, w.k2, ");
    for (int i = 0; i < CRM_IDENTITY_KEYS && kind->keys[i].column && !id; i++) {
        add_matches(sql, kind, i, limit);
    }
    if (id) {
        crm_sql_template(sql, "ARRAY[?]", id, "uuid");
    }
    crm_sql_adds(sql, " AS ids FROM w), t AS MATERIALIZED (SELECT c.* FROM"
                 " crmapi.", kind->resource->name,
                 " c WHERE " CRM_SQL_OWN("c") " AND c.id = ANY (ARRAY("
                 "SELECT unnest(m.ids) FROM m)) ORDER BY c.id"
                 " FOR NO KEY UPDATE)"
                 " SELECT m.i, " CRM_SQL_CLOCK ", m.k0, m.k1, m.k2", NULL);
    add_suppressed(sql, kind);
    for (int i = 0; i < CRM_IDENTITY_KEYS; i++) {
        crm_sql_adds(sql, kind->keys[i].column ? ", t." : ", NULL",
                     kind->keys[i].column, NULL);
    }
    crm_sql_adds(sql, ", ", crm_shape_of(kind->resource)->columns,
                 " FROM m LEFT JOIN LATERAL unnest(m.ids) x(id) ON true"
                 " LEFT JOIN t ON t.id = x.id WHERE ", NULL);
    crm_rest_permit(sql, call, CRM_PERMIT);
    crm_sql_add(sql, " ORDER BY m.i, t.created_at, t.id");
}

void crm_party_sql_refs(crm_sql_t *sql, crm_call_t *call,
                        const apr_array_header_t *refs)
{
    /* A company may be deleted by a request, which then waits for its contacts:
     * its key is locked before them, and so it is there until the commit. */
    static const struct {
        const char *name;
        const char *lock;
    } tables[] = {
        {"agent", ""}, {"company", " FOR KEY SHARE"}, {"pipeline_stage", ""},
    };

    crm_sql_init(sql, call->pool);
    for (size_t n = 0; n < CRM_NELTS(tables); n++) {
        apr_array_header_t *ids = apr_array_make(call->pool, 4,
                                                 sizeof(const char *));

        for (int i = 0; i < refs->nelts; i++) {
            const crm_ref_t *ref = &APR_ARRAY_IDX(refs, i, crm_ref_t);

            if (!strcmp(ref->ref, tables[n].name)) {
                APR_ARRAY_PUSH(ids, const char *) = ref->id;
            }
        }
        crm_sql_adds(sql, n ? " UNION ALL " : "", "SELECT '", tables[n].name,
                     ":' || x.id FROM (SELECT r.id FROM crmapi.",
                     tables[n].name, " r WHERE", NULL);
        crm_sql_template(sql, " r.workspace_id = ?", call->key.workspace_id,
                         "uuid");
        crm_sql_template(sql, " AND r.id = ANY (?)",
                         crm_sql_array(ids, call->pool), "uuid[]");
        crm_sql_adds(sql, tables[n].lock, ") x", NULL);
    }
}

/* Return the parties of PARTIES to insert (NEW) or to update. */
static apr_array_header_t *parties_to_write(const crm_parties_t *parties,
                                            int new)
{
    apr_array_header_t *rows = apr_array_make(parties->pool, 8,
                                              sizeof(crm_party_t *));

    for (int i = 0; i < parties->rows->nelts; i++) {
        crm_party_t *party = APR_ARRAY_IDX(parties->rows, i,
                                           crm_party_t *);

        if (new ? party->is_new : party->changed && !party->is_new) {
            APR_ARRAY_PUSH(rows, crm_party_t *) = party;
        }
    }
    return rows;
}

/* Return whether an insert writes FIELD: not what the database computes, and no
 * hidden field, which gets its default. */
static int is_inserted(const crm_field_t *field)
{
    return !(field->flags & CRM_F_HIDDEN)
           && ((field->flags & CRM_F_CREATE)
               || !strcmp(field->name, "created_at")
               || !strcmp(field->name, "updated_at"));
}

/* Return whether one of ROWS has a value of the field INDEX. */
static int is_given(const apr_array_header_t *rows, int index)
{
    for (int i = 0; i < rows->nelts; i++) {
        if (APR_ARRAY_IDX(rows, i, crm_party_t *)->binds[index]) {
            return 1;
        }
    }
    return 0;
}

/* Return the fields (const crm_field_t *) that a statement writes to ROWS
 * of PARTIES: an insert (NEW) those that one of them has, an update those that
 * PARTIES changes. The first one is id. */
static apr_array_header_t *written_fields(const crm_parties_t *parties,
                                          const apr_array_header_t *rows,
                                          int new)
{
    const crm_field_t *fields = parties->kind->resource->fields;
    apr_array_header_t *written = apr_array_make(parties->pool, 32,
                                                 sizeof(crm_field_t *));

    APR_ARRAY_PUSH(written, const crm_field_t *) =
        &fields[crm_party_index(parties->kind, "id")];
    for (int i = 0; fields[i].name; i++) {
        if (new ? is_inserted(&fields[i]) && is_given(rows, i)
            : parties->changed[i]) {
            APR_ARRAY_PUSH(written, const crm_field_t *) = &fields[i];
        }
    }
    return written;
}

/* Add the value of FIELD in the rows x, where arrays are texts. */
static void add_value(crm_sql_t *sql, const crm_field_t *field)
{
    crm_sql_adds(sql, "x.", field->name, NULL);
    if (strstr(field->type->cast, "[]")) {
        crm_sql_adds(sql, "::", field->type->cast, " AS ", field->name, NULL);
    }
}

/* Add the names of FIELDS: the first one after FIRST, each other one after NEXT. */
static void add_names(crm_sql_t *sql, const apr_array_header_t *fields,
                      const char *first, const char *next)
{
    for (int f = 0; f < fields->nelts; f++) {
        crm_sql_adds(sql, f ? next : first,
                     APR_ARRAY_IDX(fields, f, const crm_field_t *)->name, NULL);
    }
}

/* Add " FROM" and ROWS as the rows r with the columns FIELDS. A subquery
 * makes arrays of texts: Citus takes no such cast of a column in SET, nor in what
 * PostgreSQL would make a part of SET. */
static void add_records(crm_sql_t *sql, const crm_parties_t *parties,
                        const apr_array_header_t *rows,
                        const apr_array_header_t *fields)
{
    apr_array_header_t *values = apr_array_make(parties->pool, rows->nelts,
                                                sizeof(const char *));

    crm_sql_add(sql, " FROM (SELECT ");
    for (int f = 0; f < fields->nelts; f++) {
        crm_sql_add(sql, f ? ", " : "");
        add_value(sql, APR_ARRAY_IDX(fields, f, const crm_field_t *));
    }
    for (int f = 0; f < fields->nelts; f++) {
        const crm_field_t *field = APR_ARRAY_IDX(fields, f,
                                                 const crm_field_t *);

        apr_array_clear(values);
        for (int i = 0; i < rows->nelts; i++) {
            APR_ARRAY_PUSH(values, const char *) =
                APR_ARRAY_IDX(rows, i, crm_party_t *)
                ->binds[field - parties->kind->resource->fields];
        }
        crm_sql_add(sql, f ? ", " : " FROM unnest(");
        crm_sql_bind_array(sql, values, field->type->cast);
    }
    add_names(sql, fields, ") x (", ", ");
    crm_sql_add(sql, ") OFFSET 0) r");
}

int crm_party_sql_insert(crm_sql_t *sql, const crm_parties_t *parties)
{
    apr_array_header_t *rows = parties_to_write(parties, 1);
    apr_array_header_t *fields = written_fields(parties, rows, 1);

    crm_sql_init(sql, parties->pool);
    crm_sql_adds(sql, "INSERT INTO crmapi.", parties->kind->resource->name,
                 " (workspace_id", NULL);
    add_names(sql, fields, ", ", ", ");
    crm_sql_template(sql, ") SELECT ?", parties->call->key.workspace_id, "uuid");
    add_names(sql, fields, ", r.", ", r.");
    add_records(sql, parties, rows, fields);
    return rows->nelts > 0;
}

int crm_party_sql_update(crm_sql_t *sql, const crm_parties_t *parties)
{
    apr_array_header_t *rows = parties_to_write(parties, 0);
    apr_array_header_t *fields = written_fields(parties, rows, 0);

    crm_sql_init(sql, parties->pool);
    crm_sql_adds(sql, "UPDATE crmapi.", parties->kind->resource->name,
                 " t SET", NULL);
    for (int f = 1; f < fields->nelts; f++) {
        const char *name = APR_ARRAY_IDX(fields, f, const crm_field_t *)->name;

        crm_sql_adds(sql, f > 1 ? ", " : " ", name, " = r.", name, NULL);
    }
    add_records(sql, parties, rows, fields);
    crm_sql_template(sql, " WHERE t.workspace_id = ? AND t.id = r.id",
                     parties->call->key.workspace_id, "uuid");
    return rows->nelts > 0;
}
