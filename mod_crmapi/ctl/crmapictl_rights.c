/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_rights.c: who may do more than he needs */
#include "crmapictl_rights.h"

#include "crmapictl_output.h"

/* What is wrong, a text each. What crmapictl may change itself, migrate has
 * changed (schema/repeat). */
static const char wrong_sql[] =
    "SELECT format('the role \"%s\", which owns the schema, %s. Who gets its"
    " rights gets those of the server. As a superuser: ALTER ROLE %I %s',"
    " r.rolname, CASE WHEN r.rolsuper THEN 'is a superuser'"
    " ELSE 'may create roles' END, r.rolname, CASE WHEN r.rolsuper"
    " THEN 'NOSUPERUSER' ELSE 'NOCREATEROLE' END)"
    " FROM pg_namespace n JOIN pg_roles r ON r.oid = n.nspowner"
    " WHERE n.nspname = 'crmapi' AND (r.rolsuper OR r.rolcreaterole)"
    " UNION ALL "
    "SELECT format('each role may create temporary objects. As the owner of"
    " the database: REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', d.datname)"
    " FROM pg_database d WHERE d.datname = current_database() AND EXISTS ("
    "  SELECT FROM aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) x"
    "  WHERE x.grantee = 0 AND x.privilege_type = 'TEMPORARY')"
    " UNION ALL "
    "SELECT format('each role may create objects in the schema \"%s\". As its"
    " owner: REVOKE CREATE ON SCHEMA %I FROM PUBLIC', n.nspname, n.nspname)"
    " FROM pg_namespace n CROSS JOIN LATERAL aclexplode(n.nspacl) x"
    " WHERE x.grantee = 0 AND x.privilege_type = 'CREATE'"
    " UNION ALL "
    "SELECT format('the login \"%s\" may do more than %s: use one that may"
    " not', r.rolname, g.name)"
    " FROM pg_roles r JOIN (VALUES ('crmapi_api'), ('crmapi_worker')) g(name)"
    " ON r.rolcanlogin AND NOT r.rolsuper AND EXISTS (SELECT"
    "  FROM pg_auth_members m JOIN pg_roles w ON w.oid = m.roleid"
    "  WHERE m.member = r.oid AND w.rolname = g.name"
    "   AND " CTL_RIGHTS_MEMBER ")"
    " WHERE " CTL_RIGHTS_MORE;

crm_error_t *ctl_rights_tell(ctl_t *ctl)
{
    PGresult *result;

    CRM_ERR(ctl_query(&result, ctl, wrong_sql, 0, NULL));
    ctl_warn(ctl, result);
    return NULL;
}
