/* SPDX-License-Identifier: Apache-2.0 */
/* crm_schema.c: whether a program can use a database: the schema's version, and
 * the rights of the login */
#include "crm_schema.h"

#include <stdlib.h>
#include <string.h>

#include "apr_strings.h"

/* Whether the login may call the function NAME; true if there is none: then the
 * schema is another one. Each connection asks. PostgreSQL's caches answer this; to
 * plan a query of pg_proc takes as long as half of a session's start. */
#define MAY_CALL(name) \
    " coalesce(has_function_privilege(to_regproc('crmapi." name "')," \
    " 'EXECUTE'), true)"

crm_error_t *crm_schema_range(crm_schema_t *schema, crm_conn_t *conn,
                              apr_pool_t *scratch_pool)
{
    static const crm_stmt_t stmt = {
        "SELECT coalesce(max(number) FILTER (WHERE steps_done = steps), 0),"
        " coalesce(max(coalesce(min_module, number))"
        "  FILTER (WHERE steps_done > 0), 0) FROM crmapi.migration", 0, NULL
    };
    PGresult *result;

    CRM_ERR(crm_db_query(&result, conn, &stmt, scratch_pool));
    schema->number = atoi(PQgetvalue(result, 0, 0));
    schema->oldest = atoi(PQgetvalue(result, 0, 1));
    return NULL;
}

crm_error_t *crm_schema_read(crm_schema_t *schema, crm_conn_t *conn,
                             apr_pool_t *scratch_pool)
{
    /* crmapictl migrate creates the table and adds the column. */
    static const crm_stmt_t exists = {
        "SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid ="
        " to_regclass('crmapi.migration') AND attname = 'min_module'),"
        /* crmapictl distribute creates the table */
        " to_regclass('crmapi.key_home') IS NOT NULL,"
        MAY_CALL("key_look_up") "," MAY_CALL("job_claim"), 0, NULL
    };
    PGresult *result;

    memset(schema, 0, sizeof(*schema));
    CRM_ERR(crm_db_query(&result, conn, &exists, scratch_pool));
    if (*PQgetvalue(result, 0, 0) != 't') {
        return NULL;
    }
    schema->distributed = *PQgetvalue(result, 0, 1) == 't';
    schema->serves = *PQgetvalue(result, 0, 2) == 't';
    schema->works = *PQgetvalue(result, 0, 3) == 't';
    return crm_schema_range(schema, conn, scratch_pool);
}

crm_error_t *crm_schema_unfinished(PGresult **result_p, crm_conn_t *conn,
                                   apr_pool_t *result_pool)
{
    static const crm_stmt_t stmt = {
        "SELECT m.name, format('%s of %s%s', m.steps_done + 1, m.steps,"
        "  ': ' || m.step), coalesce(m.rows_done || ' of about ' ||"
        "  coalesce(m.rows_expected, 0) || ' rows', i.phase || ', ' ||"
        "  round(100.0 * i.blocks_done / nullif(i.blocks_total, 0)) || ' %',"
        "  i.phase), l.pid"
        " FROM crmapi.migration m LEFT JOIN pg_locks l"
        "  ON l.locktype = 'advisory' AND l.granted AND"
        "  (l.classid::bigint << 32) | l.objid::bigint = " CRM_MIGRATE_LOCK
        "  AND l.database = (SELECT oid FROM pg_database"
        "   WHERE datname = current_database())"
        " LEFT JOIN pg_stat_progress_create_index i ON i.pid = l.pid"
        " WHERE m.steps_done < m.steps ORDER BY m.number LIMIT 1", 0, NULL
    };

    return crm_db_query(result_p, conn, &stmt, result_pool);
}

const char *crm_schema_fault(const crm_schema_t *schema, const char *program,
                             apr_pool_t *result_pool)
{
    if (!schema->number) {
        return "the database has no schema: run crmapictl migrate";
    }
    if (schema->oldest > CRM_SCHEMA_VERSION) {
        return apr_psprintf(result_pool, "the database's schema is version %d,"
                            " for programs of version %d or later, but %s has"
                            " version %d: upgrade %s, or create a database of"
                            " an unreleased version again", schema->number,
                            schema->oldest, program, CRM_SCHEMA_VERSION,
                            program);
    }
    if (schema->number < CRM_SCHEMA_VERSION) {
        return apr_psprintf(result_pool, "the database's schema is version %d,"
                            " but %s needs version %d: run crmapictl migrate",
                            schema->number, program, CRM_SCHEMA_VERSION);
    }
    if (!schema->serves && !strcmp(program, "mod_crmapi")) {
        return "the login has not the rights of mod_crmapi: crmapictl role"
               " create api gives them";
    }
    if (!schema->works && !strcmp(program, "crmapid")) {
        return "the login has not the rights of crmapid: crmapictl role"
               " create worker gives them";
    }
    return NULL;
}
