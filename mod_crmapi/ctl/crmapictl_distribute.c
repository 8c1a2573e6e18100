/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_distribute.c: distributing the workspaces over the servers of Citus
 * (contract 16.4) */
#include "crmapictl_distribute.h"

#include <stdlib.h>

#include "apr_strings.h"

#include "crm_db.h"
#include "crm_migrate.h"
#include "crmapictl_output.h"
#include "crmapictl_shown.h"

/* Return an error unless the database can be distributed now. Set *NODES_P to
 * the number of servers that will have the workspaces. */
static crm_error_t *check(int *nodes_p, ctl_t *ctl)
{
    PGresult *result;

    if (ctl->distributed) {
        return ctl_fault(ctl, "the database is distributed already");
    }
    CRM_ERR(ctl_query(&result, ctl, "SELECT extversion FROM pg_extension"
                      " WHERE extname = 'citus'", 0, NULL));
    if (!PQntuples(result)) {
        return ctl_fault(ctl, "the database has no extension citus:"
                         " docs/scaling.md says how to create it");
    }
    CRM_ERR(ctl_query(&result, ctl, "SELECT count(*) FROM pg_dist_node"
                      " WHERE shouldhaveshards AND isactive", 0, NULL));
    *nodes_p = atoi(PQgetvalue(result, 0, 0));
    if (!*nodes_p) {
        return ctl_fault(ctl, "Citus knows no server that takes data: add one"
                         " with citus_add_node()");
    }
    return NULL;
}

/* Run the files that distribute the tables, and those that are repeated. */
static crm_error_t *run(ctl_t *ctl)
{
    const char *dir = ctl_schema_dir(ctl);

    CRM_ERR(ctl_shown_tell(ctl));
    CRM_ERR(crm_migrate_run(ctl->conn, apr_pstrcat(ctl->pool, dir, "/citus",
                                                   NULL), ctl->pool));
    return crm_migrate_repeat(ctl->conn, dir, 1, ctl->pool);
}

/* All is one transaction: after an error the database is as before. */
crm_error_t *ctl_distribute(ctl_t *ctl)
{
    static const ctl_column_t columns[] = {{"nodes", 'n'}, {NULL, 0}};
    crm_error_t *error;
    const char *value;
    PGresult *result;
    int nodes = 0;

    CRM_ERR(check(&nodes, ctl));
    CRM_ERR(crm_db_exec(ctl->conn, "SET client_min_messages = warning;"
                        " BEGIN", ctl->pool));
    error = run(ctl);
    if (error) {
        crm_error_t *ignored = crm_db_exec(ctl->conn, "ROLLBACK", ctl->pool);

        (void)ignored;  /* the session ends with the program */
        return error;
    }
    CRM_ERR(crm_db_exec(ctl->conn, "COMMIT", ctl->pool));
    value = apr_itoa(ctl->pool, nodes);
    CRM_ERR(ctl_query(&result, ctl, "SELECT $1::integer", 1, &value));
    ctl_print_one(ctl, apr_pstrcat(ctl->pool, "distributed over ", value,
                                   nodes == 1 ? " server" : " servers", NULL),
                  result, columns);
    return NULL;
}
