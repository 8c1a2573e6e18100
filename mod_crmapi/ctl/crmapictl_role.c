/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_role.c: logins for httpd and crmapid */
#include "crmapictl_role.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_bare.h"
#include "crm_db.h"
#include "crm_secret.h"
#include "crmapictl_audit.h"
#include "crmapictl_output.h"
#include "crmapictl_rights.h"

/* PostgreSQL truncates longer names. */
#define NAME_MAX_LEN 63

/* The roles of the schema by KIND. */
static const struct {
    const char *kind;
    const char *role;
} kinds[] = {{"api", "crmapi_api"}, {"worker", "crmapi_worker"}};

/* SQL: have PostgreSQL's log show neither the values of a statement that fails (DETAIL,
 * CONTEXT) nor those of a slow one: they are a contact's data (SECURITY). Only who may
 * set this for all can set it for the login. */
#define QUIET \
    "CASE WHEN has_parameter_privilege('log_error_verbosity', 'SET') THEN" \
    " format('ALTER ROLE %I IN DATABASE %I SET log_error_verbosity TO terse;'," \
    " $1::text, current_database()) ELSE '' END"

/* $1: the login, $2: its group, $3: password verifier or null, $4 and $5: names
 * and values of settings. One row: the statements, or a null if the login may
 * do more than its group. */
static const char script_sql[] =
    "SELECT CASE WHEN " CTL_RIGHTS_MORE " THEN NULL ELSE"
    " CASE WHEN r.rolname IS NULL THEN format('CREATE ROLE %I;', $1::text)"
    " ELSE '' END"
    " || format('ALTER ROLE %I LOGIN%s;GRANT %I TO %I;', $1::text,"
    " ' PASSWORD ' || quote_literal($3::text), $2::text, $1::text)"
    " || (SELECT string_agg(format('ALTER ROLE %I IN DATABASE %I SET %I TO"
    " %L;', $1::text, current_database(), s.name, s.value), '')"
    " FROM unnest($4::text[], $5::text[]) s(name, value)) || " QUIET " END"
    " FROM (VALUES ($2::text)) g(name)"
    " LEFT JOIN pg_roles r ON r.rolname = $1::text";

/* $1 and $2: names and values of settings. A text for each warning. The roles
 * belong to the cluster: logins of other databases need no settings here. */
static const char lacking_sql[] =
    "WITH l AS (SELECT g.kind, r.rolname, EXISTS (SELECT"
    "  FROM unnest($1::text[], $2::text[]) s(name, value)"
    "  WHERE s.name || '=' || s.value <> ALL (coalesce((SELECT c.setconfig"
    "   FROM pg_db_role_setting c WHERE c.setrole = r.oid"
    "   AND c.setdatabase = d.oid), '{}'))) AS lacks,"
    "  EXISTS (SELECT FROM pg_stat_activity a WHERE a.usesysid = r.oid"
    "   AND a.datid = d.oid) AS here"
    " FROM (VALUES ('api'), ('worker')) g(kind)"
    " JOIN pg_database d ON d.datname = current_database()"
    " JOIN pg_roles w ON w.rolname = 'crmapi_' || g.kind"
    " JOIN pg_auth_members m ON m.roleid = w.oid"
    " JOIN pg_roles r ON r.oid = m.member AND r.rolcanlogin"
    "  AND " CTL_RIGHTS_MEMBER ")"
    " SELECT format('no login of crmapi_%s has the settings of its sessions in"
    " this database, as after a restore. As a superuser: crmapictl role create"
    " %s %s', kind, kind, CASE count(*) WHEN 1 THEN min(rolname)"
    " ELSE 'LOGIN' END) FROM l GROUP BY kind HAVING bool_and(lacks)"
    " UNION ALL "
    "SELECT format('the login \"%s\" lacks settings of its sessions in this"
    " database. As a superuser: crmapictl role create %s %s', rolname, kind,"
    " rolname) FROM l WHERE lacks AND here AND kind IN (SELECT kind FROM l"
    "  WHERE NOT lacks)";

/* Return the role of KIND, or NULL. */
static const char *role_of(const char *kind)
{
    for (size_t i = 0; i < CRM_NELTS(kinds); i++) {
        if (!strcmp(kinds[i].kind, kind)) {
            return kinds[i].role;
        }
    }
    return NULL;
}

/* Set *VERIFIER_P to what PostgreSQL stores for the password of the login NAME,
 * so that the password itself is in no statement; NULL: it gets none. */
static crm_error_t *get_verifier(const char **verifier_p, const char *name,
                                 ctl_t *ctl)
{
    const char *from = ctl->options[CTL_PASSWORD_FILE];
    const char *password, *reason;
    PGconn *pg = crm_conn_pg(ctl->conn);
    char *verifier;

    *verifier_p = NULL;
    if (!from) {
        return NULL;
    }
    reason = crm_secret_read(&password, from, ctl->pool);
    if (reason) {
        return ctl_fault(ctl, "--password-file: %s: %s", from, reason);
    }
    verifier = PQencryptPasswordConn(pg, password, name, "scram-sha-256");
    if (!verifier) {
        return ctl_fault(ctl, "the password cannot be encrypted: %s",
                         PQerrorMessage(pg));
    }
    *verifier_p = apr_pstrdup(ctl->pool, verifier);
    PQfreemem(verifier);
    return NULL;
}

/* Run SCRIPT, and write its row of crmapi.audit, in one transaction; it grants
 * GROUP. */
static crm_error_t *run_script(ctl_t *ctl, const char *script,
                               const char *group)
{
    crm_error_t *error;

    CRM_ERR(ctl_begin(ctl));
    error = crm_db_exec(ctl->conn, script, ctl->pool);
    error = ctl_end(ctl, error ? error : ctl_audit(ctl));
    return !crm_error_is(error, "42501") ? error
           : ctl_fault(ctl, "%s: run role create as a superuser, or as a role"
                       " that may create roles and grant %s", error->log, group);
}

crm_error_t *ctl_role_create(ctl_t *ctl)
{
    static const ctl_column_t columns[] = {
        {"name", 's'}, {"role", 's'}, {NULL, 0}
    };
    const char *name = ctl->args[1];
    const char *values[5] = {name, role_of(ctl->args[0])};
    const char *script;
    PGresult *result;

    if (!values[1]) {
        return ctl_misuse(ctl, "role create needs api or worker, then the"
                          " name of the login");
    }
    if (!*name || strlen(name) > NAME_MAX_LEN) {
        return ctl_misuse(ctl, "the name of a login must have 1 to %d bytes",
                          NAME_MAX_LEN);
    }
    if (!crm_text_shows(name)) {
        return ctl_misuse(ctl, "the name of a login must not be blank");
    }
    CRM_ERR(get_verifier(&values[2], name, ctl));
    crm_conn_settings(&values[3], &values[4], ctl->pool);
    CRM_ERR(ctl_query(&result, ctl, script_sql, 5, values));
    script = crm_db_value(result, 0, 0);
    if (!script) {
        return ctl_fault(ctl, "the role \"%s\" exists and may do more than"
                         " %s: choose another name",
                         ctl_clean(name, ctl->pool), values[1]);
    }
    CRM_ERR(run_script(ctl, script, values[1]));
    CRM_ERR(ctl_query(&result, ctl, "SELECT $1::text, $2::text", 2, values));
    ctl_print_one(ctl, apr_pstrcat(ctl->pool, ctl_clean(name, ctl->pool),
                                   " is a login of ", values[1], NULL),
                  result, columns);
    return ctl_rights_tell(ctl);
}

crm_error_t *ctl_role_tell(ctl_t *ctl)
{
    const char *values[2];
    PGresult *result;

    crm_conn_settings(&values[0], &values[1], ctl->pool);
    CRM_ERR(ctl_query(&result, ctl, lacking_sql, 2, values));
    ctl_warn(ctl, result);
    return NULL;
}
