/* SPDX-License-Identifier: Apache-2.0 */
/* contact_batch_sql.c: the statements of a batch of contacts */
#include "contact_batch_sql.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_resources.h"
#include "crm_rest.h"

void crm_contact_sql_locks(crm_sql_t *sql, crm_call_t *call,
                           const char *emails, const char *phones,
                           const char *lock)
{
    crm_sql_init(sql, call->pool);
    crm_sql_template(sql, "SELECT pg_advisory_xact_lock(l.h) FROM (SELECT"
                     " DISTINCT hashtextextended(? || k.name, 0) AS h FROM"
                     " (", call->key.workspace_id, "text");
    crm_sql_template(sql, "SELECT ':e:' || crmapi.fold(e) FROM unnest(?) e",
                     emails, "text[]");
    crm_sql_template(sql, " UNION SELECT ':p:' || p FROM unnest(?) p",
                     phones, "text[]");
    crm_sql_template(sql, " UNION SELECT ':x:' || ?) k(name) WHERE k.name"
                     " IS NOT NULL ORDER BY h) l", lock, "text");
    if (crm_rest(call)->idempotency) {
        crm_sql_add(sql, " WHERE " CRM_IDEMPOTENCY_OPEN);
    }
}

void crm_contact_sql_look_up(crm_sql_t *sql, crm_call_t *call,
                             const char *emails, const char *phones,
                             int depth)
{
    const char *limit = apr_itoa(call->pool, depth);

    crm_rest_sql(sql, call);
    crm_sql_add(sql, "WITH w AS MATERIALIZED (SELECT u.i, crmapi.fold(u.e)"
                " AS e, u.p FROM unnest(");
    crm_sql_bind(sql, emails, "text[]");
    crm_sql_add(sql, ", ");
    crm_sql_bind(sql, phones, "text[]");
    crm_sql_add(sql, ") WITH ORDINALITY u(e, p, i)),"
                " m AS MATERIALIZED (SELECT w.i, w.e, ARRAY(SELECT c.id"
                " FROM crmapi.contact c WHERE c.workspace_id = $1::uuid"
                " AND c.email_key = w.e ORDER BY c.created_at, c.id");
    crm_sql_template(sql, " LIMIT ?) || ARRAY(SELECT c.id FROM crmapi.contact"
                     " c WHERE c.workspace_id = $1::uuid AND c.phone_key ="
                     " w.p ORDER BY c.created_at, c.id", limit, "integer");
    crm_sql_template(sql, " LIMIT ?) AS ids FROM w),", limit, "integer");
    crm_sql_add(sql, " t AS MATERIALIZED (SELECT c.* FROM crmapi.contact c"
                " WHERE c.workspace_id = $1::uuid AND c.id = ANY (ARRAY("
                "SELECT unnest(m.ids) FROM m)) ORDER BY c.id"
                " FOR NO KEY UPDATE)"
                " SELECT m.i, " CRM_SQL_NOW ", m.e, t.email_key, t.phone_key, ");
    crm_sql_adds(sql, crm_shape_of(&crm_resource_contact)->columns,
                 " FROM m LEFT JOIN t ON t.id = ANY (m.ids) WHERE ", NULL);
    crm_rest_permit(sql, call);
    crm_sql_add(sql, " ORDER BY m.i, t.created_at, t.id");
}

void crm_contact_sql_refs(crm_sql_t *sql, crm_call_t *call,
                          const apr_array_header_t *refs)
{
    static const char *const names[] = {"agent", "company", "pipeline_stage"};

    crm_sql_init(sql, call->pool);
    for (size_t n = 0; n < CRM_NELTS(names); n++) {
        apr_array_header_t *ids = apr_array_make(call->pool, 4,
                                                 sizeof(const char *));

        for (int i = 0; i < refs->nelts; i++) {
            const crm_ref_t *ref = &APR_ARRAY_IDX(refs, i, crm_ref_t);

            if (!strcmp(ref->ref, names[n])) {
                APR_ARRAY_PUSH(ids, const char *) = ref->id;
            }
        }
        crm_sql_adds(sql, n ? " UNION ALL " : "", "SELECT '", names[n],
                     ":' || r.id FROM crmapi.", names[n], " r WHERE", NULL);
        crm_sql_template(sql, " r.workspace_id = ?", call->key.workspace_id,
                         "uuid");
        crm_sql_template(sql, " AND r.id = ANY (?)",
                         crm_sql_array(ids, call->pool), "uuid[]");
    }
}

/* Return whether an insert (NEW) or an update writes FIELD. Hidden fields were
 * not loaded, so they keep their values or get their defaults. */
static int is_written(const crm_field_t *field, int new)
{
    return !(field->flags & CRM_F_HIDDEN)
           && ((field->flags & (new ? CRM_F_CREATE : CRM_F_UPDATE))
               || !strcmp(field->name, "updated_at")
               || (new && !strcmp(field->name, "created_at")));
}

/* Add the written fields to SQL. FORM "=" adds assignments, ":" names and SQL
 * types, anything else is a prefix of the names. */
static void add_fields(crm_sql_t *sql, int new, const char *form)
{
    for (const crm_field_t *field = crm_resource_contact.fields; field->name;
         field++) {
        if (!is_written(field, new)) {
            continue;
        }
        if (*form == '=') {
            crm_sql_adds(sql, ", ", field->name, " = r.", field->name, NULL);
        }
        else if (*form == ':') {
            crm_sql_adds(sql, ", ", field->name, " ", field->type->cast,
                         NULL);
        }
        else {
            crm_sql_adds(sql, ", ", form, field->name, NULL);
        }
    }
}

/* Add " FROM" and the rows of JSON as r. */
static void add_records(crm_sql_t *sql, int new, const char *json)
{
    crm_sql_template(sql, " FROM jsonb_to_recordset(?) AS r(id uuid", json,
                     "jsonb");
    add_fields(sql, new, ":");
    crm_sql_add(sql, ")");
}

void crm_contact_sql_insert(crm_sql_t *sql, crm_call_t *call,
                            const char *json)
{
    crm_sql_init(sql, call->pool);
    crm_sql_add(sql, "INSERT INTO crmapi.contact (workspace_id, id");
    add_fields(sql, 1, "");
    crm_sql_template(sql, ") SELECT ?, r.id", call->key.workspace_id,
                     "uuid");
    add_fields(sql, 1, "r.");
    add_records(sql, 1, json);
}

void crm_contact_sql_update(crm_sql_t *sql, crm_call_t *call,
                            const char *json)
{
    crm_sql_init(sql, call->pool);
    crm_sql_add(sql, "UPDATE crmapi.contact t SET id = t.id");
    add_fields(sql, 0, "=");
    add_records(sql, 0, json);
    crm_sql_template(sql, " WHERE t.workspace_id = ? AND t.id = r.id",
                     call->key.workspace_id, "uuid");
}
