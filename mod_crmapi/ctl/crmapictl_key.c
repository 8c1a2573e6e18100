/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_key.c: API keys; only their hashes are stored (contract 1.2) */
#include "crmapictl_key.h"

#include <stdio.h>
#include <string.h>

#include <openssl/crypto.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_db.h"
#include "crm_key.h"
#include "crm_network.h"
#include "crm_pacing.h"
#include "crm_uuid.h"
#include "crmapictl_audit.h"
#include "crmapictl_options.h"
#include "crmapictl_output.h"
#include "crmapictl_workspace.h"

/* The columns of a key, and their SQL. */
#define FIELDS "id, name, to_json(array_remove(ARRAY[" \
    "CASE WHEN can_read THEN 'read' END," \
    " CASE WHEN can_write THEN 'write' END], NULL))," \
    " display, created_at, last_used_at, revoked_at, expires_at, read_limit," \
    " write_limit, to_json(networks)"
#define COLUMNS {"id", 's'}, {"name", 's'}, {"scopes", 'a'}, \
    {"display", 's'}, {"created_at", 't'}, {"last_used_at", 't'}, \
    {"revoked_at", 't'}, {"expires_at", 't'}, {"read_limit", 'n'}, \
    {"write_limit", 'n'}, {"addresses", 'a'}
static const ctl_column_t columns[] = {COLUMNS, {NULL, 0}};

/* The same with the key, for the command that creates it. Two columns follow:
 * whether the plan includes the API, and the workspace. */
static const ctl_column_t new_columns[] = {COLUMNS, {"key", 's'}, {NULL, 0}};
enum { EXPIRES_COLUMN = 7, KEY_COLUMN = 11, API_COLUMN, WORKSPACE_COLUMN };

/* Set *PREFIX_P to the prefix of keys (the rule of CrmApiKeyPrefix). */
static crm_error_t *get_prefix(const char **prefix_p, ctl_t *ctl)
{
    const char *prefix = ctl->options[CTL_KEY_PREFIX];

    *prefix_p = prefix ? prefix : CRM_KEY_PREFIX;
    if (!**prefix_p || strlen(*prefix_p) > CRM_KEY_PREFIX_MAX
        || (*prefix_p)[strspn(*prefix_p, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "abcdefghijklmnopqrstuvwxyz0123456789_")]) {
        return ctl_misuse(ctl, "--key-prefix must have 1 to %d of A-Z, a-z,"
                          " 0-9 and _", CRM_KEY_PREFIX_MAX);
    }
    return NULL;
}

/* Set *WRITE_P to whether --scopes has "write", which implies "read" (contract
 * 3.3). */
static crm_error_t *get_scopes(int *write_p, ctl_t *ctl)
{
    static const struct {
        const char *text;
        int write;
    } scopes[] = {{"read", 0}, {"read,write", 1}, {"write", 1},
                  {"write,read", 1}};

    for (size_t i = 0; i < CRM_NELTS(scopes); i++) {
        if (!strcmp(ctl->options[CTL_SCOPES], scopes[i].text)) {
            *write_p = scopes[i].write;
            return NULL;
        }
    }
    return ctl_misuse(ctl, "--scopes must be read, or read,write");
}

/* The terms of a key: its limits, expiry and networks, from the options, as
 * values of SQL. NULL: the option was not given. */
enum { READ_LIMIT, WRITE_LIMIT, EXPIRES, NETWORKS, TERMS };

/* SQL for the columns of the terms. N: the number of the parameter. OLD: the
 * value if the parameter is NULL. */
#define SET_LIMIT(n, old) "nullif(coalesce($" n "::integer, " old "), 0)"
#define SET_EXPIRES(n, old) \
    "nullif(coalesce($" n "::timestamptz, " old "), 'infinity')"
#define SET_NETWORKS(n, old) \
    "nullif(CASE WHEN $" n "::text IS NULL THEN " old " ELSE" \
    " ARRAY(SELECT network(a::inet)" \
    " FROM unnest(string_to_array($" n "::text, ',')) a) END, '{}')"

/* Set *VALUE_P to --expires as a value of SQL, with milliseconds. A key that has
 * expired is no key (contract 14.6). */
static crm_error_t *get_expires(const char **value_p, ctl_t *ctl)
{
    const char *given = ctl->options[CTL_EXPIRES];
    apr_time_t time;

    if (!given || !strcmp(given, "never")) {
        *value_p = given ? "infinity" : NULL;
        return NULL;
    }
    CRM_ERR(ctl_time(value_p, &time, ctl, CTL_EXPIRES, ", or never"));
    return time > apr_time_now() ? NULL
           : ctl_misuse(ctl, "--expires must be in the future; \"key revoke\""
                        " ends a key now");
}

/* Set *VALUE_P to --address as a value of SQL. */
static crm_error_t *get_networks(const char **value_p, ctl_t *ctl)
{
    const char *given = ctl->options[CTL_ADDRESS];
    crm_network_t networks[CRM_NETWORKS_MAX];
    char *text;

    *value_p = given && !strcmp(given, "any") ? "" : given;
    if (!*value_p || !**value_p) {
        return !given || *given ? NULL
               : ctl_misuse(ctl, "--address must not be empty");
    }
    text = apr_pstrdup(ctl->pool, given);
    for (char *p = text; *p; p++) {
        *p = *p == ',' ? ' ' : *p;
    }
    if (strchr(given, ' ') || strstr(given, ",,") || *given == ','
        || given[strlen(given) - 1] == ','
        || crm_networks_parse(networks, text) < 1) {
        return ctl_misuse(ctl, "--address must be any, or up to %d addresses or"
                          " networks like 203.0.113.0/24,2001:db8::/32",
                          CRM_NETWORKS_MAX);
    }
    return NULL;
}

/* Set VALUES to those of the options. */
static crm_error_t *get_terms(const char *values[TERMS], ctl_t *ctl)
{
    CRM_ERR(ctl_limit(&values[READ_LIMIT], ctl, CTL_READ_LIMIT));
    CRM_ERR(ctl_limit(&values[WRITE_LIMIT], ctl, CTL_WRITE_LIMIT));
    CRM_ERR(get_expires(&values[EXPIRES], ctl));
    return get_networks(&values[NETWORKS], ctl);
}

/* Insert a key with VALUES: id, workspace, name, hash, display form, write,
 * terms. *RESULT_P has the columns of new_columns, API_COLUMN and
 * WORKSPACE_COLUMN. KEY_COLUMN is for ctl_key_create(). */
static crm_error_t *insert(PGresult **result_p, ctl_t *ctl,
                           const char *const values[6 + TERMS])
{
    static const char sql[] = "INSERT INTO crmapi.api_key (id, workspace_id,"
        " name, key_hash, display, can_read, can_write, read_limit,"
        " write_limit, expires_at, networks) SELECT $1::uuid, $2::uuid,"
        " $3::text, $4::bytea, $5::text, true, $6::boolean, "
        SET_LIMIT("7", "NULL") ", " SET_LIMIT("8", "NULL") ", "
        SET_EXPIRES("9", "NULL") ", " SET_NETWORKS("10", "NULL")
        " RETURNING " FIELDS ", NULL::text, plan_api, workspace_id";
    crm_error_t *error = ctl_keep_key(result_p, ctl, sql, 6 + TERMS, values);

    ctl_audit_object(ctl, values[1], apr_pstrdup(ctl->pool, values[0]));
    if (crm_error_is(error, "23505")) {
        return ctl_fault(ctl, "this key exists already");
    }
    return error;
}

/* Store KEY, a valid key with PREFIX, as the options say, and set *RESULT_P to
 * its row. The key itself is not sent to the database, whose log may show
 * values (contract 3.4). */
static crm_error_t *store(PGresult **result_p, ctl_t *ctl, const char *key,
                          const char *prefix)
{
    char bytea[CRM_KEY_BIND_SIZE];
    char id[CRM_UUID_LEN + 1];
    char display[CRM_KEY_SIZE];
    const char *values[6 + TERMS] = {id, NULL, ctl->options[CTL_NAME], bytea,
                                     display, "false"};
    int write = 0;

    CRM_ERR(ctl_check_name(ctl, CTL_NAME));
    CRM_ERR(get_scopes(&write, ctl));
    CRM_ERR(get_terms(values + 6, ctl));
    CRM_ERR(ctl_workspace_id(&values[1], ctl, ctl->options[CTL_WORKSPACE]));
    if (write) {
        values[5] = "true";
    }
    crm_uuid_v7(id);
    crm_key_bind(bytea, key, strlen(key));
    crm_key_display(display, key, prefix);
    return insert(result_p, ctl, values);
}

crm_error_t *ctl_key_warn(ctl_t *ctl, const PGresult *result)
{
    const char *workspace = PQgetvalue(result, 0, WORKSPACE_COLUMN);
    PGresult *plan;

    if (*PQgetvalue(result, 0, API_COLUMN) == 't') {
        return NULL;
    }
    CRM_ERR(ctl_query(&plan, ctl, "SELECT plan FROM crmapi.workspace"
                      " WHERE id = $1::uuid", 1, &workspace));
    if (PQntuples(plan)) {
        fprintf(stderr, "crmapictl: the key is refused until the workspace's"
                " plan allows it: the plan \"%s\" does not include the API\n",
                ctl_clean(PQgetvalue(plan, 0, 0), ctl->pool));
    }
    return NULL;
}

crm_error_t *ctl_key_make(PGresult **result_p, char key[CRM_KEY_SIZE],
                          ctl_t *ctl)
{
    const char *prefix;

    CRM_ERR(get_prefix(&prefix, ctl));
    CRM_ERR(crm_key_generate(key, prefix, ctl->pool));
    return store(result_p, ctl, key, prefix);
}

crm_error_t *ctl_key_create(ctl_t *ctl)
{
    char key[CRM_KEY_SIZE];
    PGresult *result;

    CRM_ERR(ctl_key_make(&result, key, ctl));
    PQsetvalue(result, 0, KEY_COLUMN, key, (int)strlen(key));
    ctl_print_one(ctl, key, result, new_columns);
    OPENSSL_cleanse(key, sizeof(key));
    return ctl_key_warn(ctl, result);
}

/* Read the only line of stdin into KEY, SIZE bytes. Errors do not quote it. */
static crm_error_t *read_key(char *key, size_t size, ctl_t *ctl,
                             const char *prefix)
{
    size_t len = fread(key, 1, size - 1, stdin);

    while (len && strchr(" \t\r\n", key[len - 1])) {
        len--;
    }
    key[len] = '\0';
    if (!len) {
        return ctl_fault(ctl, "there is no key on stdin");
    }
    if (!crm_key_valid(key, len, prefix)) {
        return ctl_fault(ctl, "invalid key on stdin: it must be %s and 29 or"
                         " 30 of A-Z, a-z, 0-9", prefix);
    }
    return NULL;
}

crm_error_t *ctl_key_import(ctl_t *ctl)
{
    char key[256];              /* longer than any key with its newline */
    const char *prefix;
    crm_error_t *error;
    PGresult *result;

    CRM_ERR(get_prefix(&prefix, ctl));
    error = read_key(key, sizeof(key), ctl, prefix);
    if (!error) {
        error = store(&result, ctl, key, prefix);
    }
    OPENSSL_cleanse(key, sizeof(key));
    if (!error) {
        ctl_print_one(ctl, PQgetvalue(result, 0, 0), result, columns);
        error = ctl_key_warn(ctl, result);
    }
    return error;
}

crm_error_t *ctl_key_list(ctl_t *ctl)
{
    return ctl_workspace_rows(ctl, "SELECT " FIELDS " FROM crmapi.api_key"
                              " WHERE workspace_id = $1::uuid"
                              " ORDER BY created_at, id", columns);
}

/* Set VALUES, in the command's pool, to the workspace and the id of the key that
 * the command names. */
static crm_error_t *get_key(const char *values[2], ctl_t *ctl)
{
    const char *given = ctl->args[0];
    char *id = apr_palloc(ctl->pool, CRM_UUID_LEN + 1);

    if (!crm_uuid_parse(id, given, strlen(given))) {
        /* Do not quote it: it may be the key, given by mistake. */
        return ctl_misuse(ctl, "KEY_ID must be an id, as key list shows it");
    }
    values[1] = id;
    return ctl_owner(&values[0], ctl, CTL_OWNERS("api_key"), id);
}

/* Return the error that there is no key ID. */
static crm_error_t *no_key(ctl_t *ctl, const char *id)
{
    return ctl_fault(ctl, "there is no key %s", id);
}

/* Print the key with VALUES: workspace, id. */
static crm_error_t *print_key(ctl_t *ctl, const char *const values[2])
{
    PGresult *result;

    CRM_ERR(ctl_query(&result, ctl, "SELECT " FIELDS " FROM crmapi.api_key"
                      " WHERE workspace_id = $1::uuid AND id = $2::uuid", 2,
                      values));
    if (!PQntuples(result)) {
        return no_key(ctl, values[1]);
    }
    ctl_print_one(ctl, NULL, result, columns);
    return NULL;
}

/* Return the error that the key with VALUES, workspace and id, is no valid key. A
 * key that has ended stays so, whether it was revoked, rotated or has expired:
 * nobody expects it to be alive. */
static crm_error_t *ended(ctl_t *ctl, const char *const values[2])
{
    PGresult *result;

    CRM_ERR(ctl_query(&result, ctl, "SELECT CASE WHEN revoked_at IS NULL THEN"
                      " 'has expired' ELSE 'is revoked' END FROM crmapi.api_key"
                      " WHERE workspace_id = $1::uuid AND id = $2::uuid", 2,
                      values));
    return PQntuples(result)
           ? ctl_fault(ctl, "the key %s %s, for good: key create makes another"
                       " one", values[1], PQgetvalue(result, 0, 0))
           : no_key(ctl, values[1]);
}

crm_error_t *ctl_key_set(ctl_t *ctl)
{
    const char *values[2 + TERMS];
    PGresult *result;

    CRM_ERR(get_terms(values + 2, ctl));
    if (!values[2 + READ_LIMIT] && !values[2 + WRITE_LIMIT]
        && !values[2 + EXPIRES] && !values[2 + NETWORKS]) {
        return ctl_misuse(ctl, "key set needs --read-limit N, --write-limit N,"
                          " --expires TIME or --address LIST");
    }
    CRM_ERR(get_key(values, ctl));
    CRM_ERR(ctl_query(&result, ctl, "UPDATE crmapi.api_key SET read_limit = "
                      SET_LIMIT("3", "read_limit") ", write_limit = "
                      SET_LIMIT("4", "write_limit") ", expires_at = "
                      SET_EXPIRES("5", "expires_at") ", networks = "
                      SET_NETWORKS("6", "networks")
                      " WHERE workspace_id = $1::uuid AND id = $2::uuid"
                      " AND revoked_at IS NULL AND (expires_at IS NULL"
                      " OR expires_at > now()) RETURNING id",
                      2 + TERMS, values));
    return PQntuples(result) ? print_key(ctl, values) : ended(ctl, values);
}

crm_error_t *ctl_key_revoke(ctl_t *ctl)
{
    const char *values[2];
    PGresult *result;

    CRM_ERR(get_key(values, ctl));
    /* Idempotent: a key that is revoked stays revoked (contract 3.2). */
    CRM_ERR(ctl_query(&result, ctl, "UPDATE crmapi.api_key SET revoked_at ="
                      " crmapi.now_ms() WHERE workspace_id = $1::uuid"
                      " AND id = $2::uuid AND revoked_at IS NULL", 2, values));
    return print_key(ctl, values);
}

/* Set *SECONDS_P to --overlap. */
static crm_error_t *get_overlap(const char **seconds_p, ctl_t *ctl)
{
    const char *given = ctl->options[CTL_OVERLAP];
    json_object *text = json_object_new_string(given ? given : "24h");
    apr_int64_t seconds;
    const char *rule = crm_delay_parse(&seconds, text, ctl->pool);

    json_object_put(text);
    *seconds_p = apr_psprintf(ctl->pool, "%" APR_INT64_T_FMT, seconds);
    return rule ? ctl_misuse(ctl, "--overlap must be a time such as 45m, 24h or"
                             " 1d12h, at most 365 days") : NULL;
}

/* Insert the successor of the key VALUES[2], with its rights, and have that one end
 * VALUES[5] seconds from now, unless it ends earlier. VALUES: id, workspace, old id,
 * hash, display form, seconds. */
static crm_error_t *succeed(PGresult **result_p, ctl_t *ctl,
                            const char *const values[6])
{
    const char *old[3] = {values[1], values[2], values[5]};
    PGresult *ended;

    CRM_ERR(ctl_keep_key(result_p, ctl, "INSERT INTO crmapi.api_key (id,"
                         " workspace_id, name, key_hash, display, can_read,"
                         " can_write, read_limit, write_limit, expires_at,"
                         " networks) SELECT $1::uuid, k.workspace_id, k.name,"
                         " $4::bytea, $5::text, k.can_read, k.can_write,"
                         " k.read_limit, k.write_limit, k.expires_at,"
                         " k.networks FROM crmapi.api_key k WHERE"
                         " k.workspace_id = $2::uuid AND k.id = $3::uuid AND"
                         " k.revoked_at IS NULL AND (k.expires_at IS NULL OR"
                         " k.expires_at > now()) RETURNING " FIELDS
                         ", NULL::text, plan_api, workspace_id", 5, values));
    if (!PQntuples(*result_p)) {
        return ctl_fault(ctl, "there is no valid key %s", values[2]);
    }
    return ctl_query(&ended, ctl, "UPDATE crmapi.api_key SET expires_at ="
                     " least(expires_at, crmapi.now_ms() + $3::bigint *"
                     " interval '1 second') WHERE workspace_id = $1::uuid AND"
                     " id = $2::uuid", 3, old);
}

/* Say that the new key of RESULT expires: it has the terms of the old one, which
 * may be one that was rotated before. */
static void warn_expiry(const PGresult *result)
{
    if (!PQgetisnull(result, 0, EXPIRES_COLUMN)) {
        fprintf(stderr, "crmapictl: the new key expires at %s, as the old one"
                " would have\n", PQgetvalue(result, 0, EXPIRES_COLUMN));
    }
}

crm_error_t *ctl_key_rotate(ctl_t *ctl)
{
    char key[CRM_KEY_SIZE], display[CRM_KEY_SIZE];
    char bytea[CRM_KEY_BIND_SIZE], id[CRM_UUID_LEN + 1];
    const char *values[6] = {id, NULL, NULL, bytea, display}, *prefix;
    crm_error_t *error;
    PGresult *result;

    CRM_ERR(get_overlap(&values[5], ctl));
    CRM_ERR(get_prefix(&prefix, ctl));
    CRM_ERR(get_key(values + 1, ctl));
    CRM_ERR(crm_key_generate(key, prefix, ctl->pool));
    crm_uuid_v7(id);
    crm_key_bind(bytea, key, strlen(key));
    crm_key_display(display, key, prefix);
    error = succeed(&result, ctl, values);
    if (!error) {
        PQsetvalue(result, 0, KEY_COLUMN, key, (int)strlen(key));
        ctl_print_one(ctl, key, result, new_columns);
        warn_expiry(result);
        error = ctl_key_warn(ctl, result);
    }
    OPENSSL_cleanse(key, sizeof(key));
    return error;
}
