/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_httpd.c: the configuration of httpd for a database */
#include "crmapictl_httpd.h"

#include <stdio.h>
#include <string.h>

#include "apr_lib.h"

#include "crm_array.h"
#include "crm_buf.h"
#include "crm_db.h"
#include "crm_hosts.h"
#include "crm_text.h"
#include "crmapictl_output.h"
#include "crmapictl_rights.h"

/* The line of the sample that is replaced. */
#define PARAMS "\nDBDParams "

/* Where the password for a connection by TCP is looked for: libpq's passfile,
 * as the sample explains. */
#define PASSWORD_FILE " passfile=/etc/apache2/crmapi.pgpass"

/* The parameters that httpd's connections share with crmapictl's. The others
 * are about who connects, or about the session. */
static const char *const shared[] = {
    "host", "hostaddr", "port", "dbname", "sslmode", "sslrootcert", "sslcrl",
    "sslcrldir", "ssl_min_protocol_version", "ssl_max_protocol_version",
    "channel_binding", "require_auth", "gssencmode", "krbsrvname",
    "target_session_attrs", "load_balance_hosts"
};

/* Logins of crmapi_api, by name; only $1, if it is not null. */
static const char logins_sql[] =
    "SELECT r.rolname FROM pg_auth_members m"
    " JOIN pg_roles g ON g.oid = m.roleid AND g.rolname = 'crmapi_api'"
    " JOIN pg_roles r ON r.oid = m.member AND r.rolcanlogin"
    "  AND " CTL_RIGHTS_MEMBER
    " WHERE $1::text IS NULL OR r.rolname = $1::text"
    " GROUP BY r.rolname ORDER BY r.rolname";

/* Return the names in RESULT with commas between them. */
static const char *names_of(const PGresult *result, ctl_t *ctl)
{
    const char *names = PQgetvalue(result, 0, 0);

    for (int i = 1; i < PQntuples(result); i++) {
        names = crm_text_listed(names, PQgetvalue(result, i, 0), ctl->pool);
    }
    return ctl_clean(names, ctl->pool);
}

/* Set *LOGIN_P to the login that httpd shall use. */
static crm_error_t *find_login(const char **login_p, ctl_t *ctl)
{
    const char *name = ctl->args[0];
    PGresult *result;

    CRM_ERR(ctl_query(&result, ctl, logins_sql, 1, &name));
    if (!PQntuples(result)) {
        return ctl_fault(ctl, "there is no login%s%s of crmapi_api: role create"
                         " api %s makes it", name ? " " : "",
                         name ? ctl_clean(name, ctl->pool) : "",
                         name ? ctl_clean(name, ctl->pool) : "NAME");
    }
    if (PQntuples(result) > 1) {
        return ctl_fault(ctl, "say which login httpd shall use: %s",
                         names_of(result, ctl));
    }
    *login_p = PQgetvalue(result, 0, 0);
    return NULL;
}

/* Return whether VALUE needs no quotes in a conninfo, nor in httpd.conf. */
static int is_plain(const char *value)
{
    const char *c = value;

    while (apr_isalnum(*c) || (*c && strchr("_-./:,@%", *c))) {
        c++;
    }
    return c != value && !*c;
}

/* Append C, of an argument of httpd.conf in double quotes, to OUT. */
static void add_escaped(crm_buf_t *out, char c)
{
    if (c == '"' || c == '\\') {
        crm_buf_putc(out, '\\');
    }
    crm_buf_putc(out, c);
}

/* Append KEYWORD=VALUE to OUT, a conninfo within double quotes of httpd.conf.
 * httpd cannot quote control characters and ${. */
static crm_error_t *add_param(crm_buf_t *out, const char *keyword,
                              const char *value, ctl_t *ctl)
{
    int plain = is_plain(value);

    for (const char *c = value; *c; c++) {
        if (apr_iscntrl(*c) || (*c == '$' && c[1] == '{')) {
            return ctl_fault(ctl, "%s has characters that httpd.conf cannot"
                             " have", keyword);
        }
    }
    crm_buf_printf(out, "%s%s=%s", out->len ? " " : "", keyword,
                   plain ? "" : "'");
    for (const char *c = value; *c; c++) {
        if (*c == '\'' || *c == '\\') {
            add_escaped(out, '\\');
        }
        add_escaped(out, *c);
    }
    crm_buf_puts(out, plain ? "" : "'");
    return NULL;
}

/* Return what httpd shall use for KEYWORD, or NULL: libpq's default. OPTIONS are
 * the parameters of the connection. HOSTS, of crm_hosts_options(), name the hosts as
 * the user does, the connection by their addresses. */
static const char *value_of(const char *keyword,
                            const PQconninfoOption *options,
                            const PQconninfoOption *hosts, ctl_t *ctl)
{
    int names_hosts = !strcmp(keyword, "host") || !strcmp(keyword, "hostaddr")
                      || !strcmp(keyword, "port");
    const char *value = crm_hosts_value(names_hosts ? hosts : options,
                                        keyword);

    while (options && options->keyword
           && strcmp(options->keyword, keyword)) {
        options++;
    }
    if (!*value && !strcmp(keyword, "host")
        && !*crm_hosts_value(hosts, "hostaddr")) {
        value = PQhost(crm_conn_pg(ctl->conn));
    }
    return value && *value && (!options || !options->compiled
                               || strcmp(value, options->compiled)) ? value
           : NULL;
}

/* Append the parameters for LOGIN to OUT. OPTIONS and HOSTS: see value_of(). */
static crm_error_t *add_params(crm_buf_t *out, const PQconninfoOption *options,
                               const PQconninfoOption *hosts,
                               const char *login, ctl_t *ctl)
{
    const char *host = PQhost(crm_conn_pg(ctl->conn));

    for (size_t i = 0; i < CRM_NELTS(shared); i++) {
        const char *value = value_of(shared[i], options, hosts, ctl);

        if (value) {
            CRM_ERR(add_param(out, shared[i], value, ctl));
        }
    }
    CRM_ERR(add_param(out, "user", login, ctl));
    /* with a socket httpd's user is the login's name */
    crm_buf_puts(out, host && *host != '/' ? PASSWORD_FILE : "");
    crm_buf_puts(out, " connect_timeout=5");
    return NULL;
}

crm_error_t *ctl_httpd_conf(ctl_t *ctl)
{
    const char *line = strstr(ctl_httpd_sample, PARAMS);
    PQconninfoOption *options = PQconninfo(crm_conn_pg(ctl->conn));
    PQconninfoOption *hosts = crm_hosts_options(ctl->options[CTL_DATABASE]);
    crm_error_t *error;
    const char *login = NULL;
    crm_buf_t params;

    crm_buf_init(&params, 256, ctl->pool);
    error = find_login(&login, ctl);
    if (!error) {
        error = add_params(&params, options, hosts, login, ctl);
    }
    PQconninfoFree(options);
    PQconninfoFree(hosts);
    CRM_ERR(error);
    crm_buf_putc(&params, '\0');
    line += strlen(PARAMS);
    printf("%.*s\"%s\"%s", (int)(line - ctl_httpd_sample), ctl_httpd_sample,
           params.data, line + strcspn(line, "\n"));
    return NULL;
}
