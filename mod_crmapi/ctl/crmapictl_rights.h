/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_rights.h: who may do more than he needs */
#ifndef CRMAPICTL_RIGHTS_H
#define CRMAPICTL_RIGHTS_H

#include "crmapictl.h"

/* A condition of SQL: the row m of pg_auth_members gives its member the rights of
 * the role. Since PostgreSQL 16, whoever makes a role without being a superuser is
 * its member, too, but may only grant it to others; in PostgreSQL 15 the row has
 * neither column. */
#define CTL_RIGHTS_MEMBER \
    "coalesce((to_jsonb(m) ->> 'inherit_option')::boolean" \
    " OR (to_jsonb(m) ->> 'set_option')::boolean, true)"

/* A condition of SQL: the row r of pg_roles may do more in this database than
 * the group g.name. He is a member of a role that has an attribute, belongs to
 * PostgreSQL, owns the schema or the database, is the other group, or was granted
 * something here; each role is a member of itself. */
#define CTL_RIGHTS_MORE \
    "EXISTS (SELECT FROM pg_roles m" \
    " JOIN pg_namespace s ON s.nspname = 'crmapi'" \
    " JOIN pg_database d ON d.datname = current_database()" \
    " WHERE pg_has_role(r.oid, m.oid, 'MEMBER') AND m.rolname <> g.name" \
    " AND (m.rolsuper OR m.rolcreaterole OR m.rolcreatedb OR m.rolbypassrls" \
    "  OR m.rolreplication OR m.rolname LIKE 'pg\\_%'" \
    "  OR m.rolname IN ('crmapi_api', 'crmapi_worker')" \
    "  OR m.oid IN (s.nspowner, d.datdba) OR EXISTS (SELECT FROM (" \
    "   SELECT d.datacl AS acl, '{CREATE,TEMPORARY}'::text[] AS rights" \
    "   UNION ALL SELECT n.nspacl, '{CREATE}' FROM pg_namespace n" \
    "   UNION ALL SELECT s.nspacl, NULL" \
    "   UNION ALL SELECT c.relacl, NULL FROM pg_class c" \
    "    WHERE c.relnamespace = s.oid" \
    "   UNION ALL SELECT a.attacl, NULL FROM pg_attribute a" \
    "    JOIN pg_class c ON c.oid = a.attrelid WHERE c.relnamespace = s.oid" \
    "     AND a.attacl IS NOT NULL" \
    "   UNION ALL SELECT p.proacl, NULL FROM pg_proc p" \
    "    WHERE p.pronamespace = s.oid) o" \
    "   CROSS JOIN LATERAL aclexplode(o.acl) x WHERE x.grantee = m.oid" \
    "    AND (x.privilege_type = ANY (o.rights) OR o.rights IS NULL))))"

/* Print a warning to stderr for each role that may do more than it needs, with
 * what to do about it. */
crm_error_t *ctl_rights_tell(ctl_t *ctl);

#endif /* CRMAPICTL_RIGHTS_H */
