/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_made.c: rows with secrets, which documents never have: they are made, or
 * taken from files (contract 14.1) */
#include "crmapictl_made.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_json.h"
#include "crm_key.h"
#include "crm_secret.h"
#include "crmapictl_url.h"

#define SECRET_PREFIX "whsec_"
#define SECRET_RULE "must name a file with whsec_ and 24 to 64 bytes in base64"

/* Set *SECRET_P to the secret in the file that WORK's object names; NULL: it names
 * none. */
static crm_error_t *read_secret(const char **secret_p, ctl_apply_t *apply,
                                const ctl_kind_t *kind,
                                const ctl_work_t *work)
{
    json_object *value = json_object_object_get(work->item->object,
                                                kind->secret);
    const char *path = crm_json_text(value), *rule;

    *secret_p = NULL;
    if (!value) {
        return NULL;
    }
    rule = path ? crm_secret_read(secret_p, path, apply->ctl->pool)
           : "must be the name of a file";
    return rule ? ctl_item_refuse(apply->ctl, work->item, kind->secret, rule)
           : NULL;
}

/* ---- webhook endpoints ---------------------------------------------------- */

/* Set *BASE64_P to what follows the prefix of SECRET, NULL for NULL. */
static crm_error_t *base64_of(const char **base64_p, ctl_apply_t *apply,
                              const ctl_kind_t *kind, const ctl_work_t *work,
                              const char *secret)
{
    size_t prefix = strlen(SECRET_PREFIX);

    *base64_p = secret ? secret + prefix : NULL;
    return !secret || !strncmp(secret, SECRET_PREFIX, prefix) ? NULL
           : ctl_item_refuse(apply->ctl, work->item, kind->secret, SECRET_RULE);
}

/* Return ERROR; that the secret's rule is broken if the database refused it. */
static crm_error_t *explain(ctl_apply_t *apply, const ctl_kind_t *kind,
                            const ctl_work_t *work, const char *secret,
                            crm_error_t *error)
{
    return !secret || !crm_error_refuses(error) ? error
           : ctl_item_refuse(apply->ctl, work->item, kind->secret, SECRET_RULE);
}

/* Check that something can be reached at the URL of WORK, if it is new; warn if only
 * a private network can. */
static crm_error_t *check_url(ctl_apply_t *apply, const ctl_kind_t *kind,
                              const ctl_work_t *work)
{
    int field = ctl_kind_index(kind, "url");
    const char *url = work->binds[field], *private;
    crm_error_t *error;

    if (!work->is_new && !strcmp(url, work->row->values[field])) {
        return NULL;
    }
    error = ctl_url_check(&private, apply->ctl, url);
    if (error) {
        return ctl_item_refuse(apply->ctl, work->item, "url", error->message);
    }
    ctl_url_tell(private);
    return NULL;
}

static crm_error_t *insert_endpoint(ctl_apply_t *apply, const ctl_kind_t *kind,
                                    const ctl_work_t *work,
                                    ctl_change_t *change, const char *secret)
{
    const char *values[5] = {work->row->id, apply->workspace_id,
                             work->binds[ctl_kind_index(kind, "url")],
                             work->binds[ctl_kind_index(kind, "events")]};
    crm_error_t *error;
    PGresult *result;

    CRM_ERR(check_url(apply, kind, work));
    CRM_ERR(base64_of(&values[4], apply, kind, work, secret));
    error = ctl_query(&result, apply->ctl, "INSERT INTO crmapi.webhook_endpoint"
                      " AS e (id, workspace_id, url, events, key) VALUES"
                      " ($1::uuid, $2::uuid, $3::text, $4::text[],"
                      " coalesce(decode($5::text, 'base64'),"
                      " crmapi.webhook_key())) RETURNING '" SECRET_PREFIX
                      "' || encode(e.key, 'base64')", 5, values);
    CRM_ERR(explain(apply, kind, work, secret, error));
    change->secret = secret ? NULL : crm_db_value(result, 0, 0);
    return NULL;
}

/* Note that the secret of WORK's row changes: with its fields, if these do. */
static void note_secret(ctl_apply_t *apply, const ctl_kind_t *kind,
                        const ctl_work_t *work)
{
    int count = apply->changes->nelts;
    ctl_change_t *last = count ? &APR_ARRAY_IDX(apply->changes, count - 1,
                                                ctl_change_t) : NULL;

    if (last && last->row == work->row) {
        last->fields = apr_pstrcat(apply->ctl->pool, last->fields, ", ",
                                   kind->secret, NULL);
        return;
    }
    apply->same--;
    ctl_apply_note(apply, '~', kind, work->row)->fields = kind->secret;
}

/* Give the endpoint of WORK the secret SECRET, unless it has it. */
static crm_error_t *update_endpoint(ctl_apply_t *apply, const ctl_kind_t *kind,
                                    const ctl_work_t *work, const char *secret)
{
    const char *values[3] = {apply->workspace_id, work->row->id};
    crm_error_t *error;
    PGresult *result;

    CRM_ERR(base64_of(&values[2], apply, kind, work, secret));
    error = ctl_query(&result, apply->ctl, "UPDATE crmapi.webhook_endpoint e"
                      " SET key = decode($3::text, 'base64'), old_key = e.key,"
                      " old_key_until = crmapi.now_ms() + interval '24 hours'"
                      " WHERE e.workspace_id = $1::uuid AND e.id = $2::uuid"
                      " AND e.key <> decode($3::text, 'base64') RETURNING 1",
                      3, values);
    CRM_ERR(explain(apply, kind, work, secret, error));
    if (PQntuples(result)) {
        note_secret(apply, kind, work);
    }
    return NULL;
}

/* ---- intake tokens -------------------------------------------------------- */

/* Refuse the file with TOKEN that WORK's object names, unless it is one. */
static crm_error_t *check_token(ctl_apply_t *apply, const ctl_kind_t *kind,
                                const ctl_work_t *work, const char *token)
{
    return crm_key_valid(token, strlen(token), CRM_KEY_INTAKE_PREFIX) ? NULL
           : ctl_item_refuse(apply->ctl, work->item, kind->secret,
                             "must name a file with " CRM_KEY_INTAKE_PREFIX
                             " and 29 or 30 letters and digits");
}

static crm_error_t *insert_token(ctl_apply_t *apply, const ctl_kind_t *kind,
                                 const ctl_work_t *work, ctl_change_t *change,
                                 const char *secret)
{
    char *made = apr_pcalloc(apply->ctl->pool, CRM_KEY_SIZE);
    const char *token = secret ? secret : made;
    char bytea[CRM_KEY_BIND_SIZE], display[CRM_KEY_SIZE];
    const char *values[5] = {work->row->id, apply->workspace_id,
                             work->binds[ctl_kind_index(kind, "name")], bytea,
                             display};
    PGresult *result;

    if (secret) {
        CRM_ERR(check_token(apply, kind, work, secret));
    }
    else {
        CRM_ERR(crm_key_generate(made, CRM_KEY_INTAKE_PREFIX,
                                 apply->ctl->pool));
        change->secret = made;
    }
    crm_key_bind(bytea, token, strlen(token));
    crm_key_display(display, token, CRM_KEY_INTAKE_PREFIX);
    return ctl_keep_key(&result, apply->ctl, "INSERT INTO crmapi.intake_key"
                        " (id, workspace_id, name, key_hash, display) VALUES"
                        " ($1::uuid, $2::uuid, $3::text, $4::bytea, $5::text)",
                        5, values);
}

/* Refuse SECRET unless it is the token of WORK's row. */
static crm_error_t *compare_token(ctl_apply_t *apply, const ctl_kind_t *kind,
                                  const ctl_work_t *work, const char *secret)
{
    char bytea[CRM_KEY_BIND_SIZE];
    const char *values[3] = {apply->workspace_id, work->row->id, bytea};
    PGresult *result;

    CRM_ERR(check_token(apply, kind, work, secret));
    crm_key_bind(bytea, secret, strlen(secret));
    CRM_ERR(ctl_query(&result, apply->ctl, "SELECT FROM crmapi.intake_key t"
                      " WHERE t.workspace_id = $1::uuid AND t.id = $2::uuid"
                      " AND t.key_hash = $3::bytea", 3, values));
    return PQntuples(result) ? NULL
           : ctl_item_refuse(apply->ctl, work->item, kind->secret, "is another"
                             " token than the one of that name: revoke that"
                             " first");
}

/* ---- both ----------------------------------------------------------------- */

/* Return whether KIND has endpoints. */
static int is_endpoint(const ctl_kind_t *kind)
{
    return !strcmp(kind->table, "webhook_endpoint");
}

crm_error_t *ctl_made_insert(ctl_apply_t *apply, const ctl_kind_t *kind,
                             const ctl_work_t *work, ctl_change_t *change)
{
    const char *secret;

    CRM_ERR(read_secret(&secret, apply, kind, work));
    return (is_endpoint(kind) ? insert_endpoint : insert_token)
           (apply, kind, work, change, secret);
}

crm_error_t *ctl_made_compare(ctl_apply_t *apply, const ctl_kind_t *kind,
                              const ctl_work_t *work)
{
    const char *secret;

    if (is_endpoint(kind)) {
        CRM_ERR(check_url(apply, kind, work));
    }
    CRM_ERR(read_secret(&secret, apply, kind, work));
    return !secret ? NULL : (is_endpoint(kind) ? update_endpoint
                             : compare_token)(apply, kind, work, secret);
}
