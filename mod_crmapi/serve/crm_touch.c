/* SPDX-License-Identifier: Apache-2.0 */
/* crm_touch.c: recording when an API key was last used */
#include "crm_touch.h"

#include "crm_batch.h"
#include "crm_sql.h"

/* Where the connection of a statement comes from. */
typedef struct touch_t {
    const crm_service_t *service;
    void *baton;                /* of SERVICE's functions */
    crm_conn_t *conn;
    apr_time_t since;           /* when crm_touch() was called */
    apr_pool_t *pool;
} touch_t;

static crm_error_t *acquire(crm_conn_t **conn_p, apr_time_t since, void *baton)
{
    touch_t *touch = baton;

    CRM_ERR(touch->service->acquire(&touch->conn, since, touch->baton,
                                    touch->pool));
    *conn_p = touch->conn;
    return NULL;
}

static void release(void *baton)
{
    touch_t *touch = baton;

    if (touch->conn) {
        touch->service->release(touch->conn, touch->baton);
        touch->conn = NULL;
    }
}

static int add_waiting(int change, void *baton)
{
    const touch_t *touch = baton;

    return touch->service->add_waiting(change, touch->baton);
}

/* Run SQL by itself. */
static void run_alone(touch_t *touch, crm_sql_t *sql)
{
    crm_conn_t *conn;
    PGresult *result;
    crm_stmt_t stmt;

    if (!acquire(&conn, touch->since, touch)) {
        crm_sql_stmt(&stmt, sql);
        crm_db_query(&result, conn, &stmt, touch->pool);
        release(touch);
    }
}

/* Run SQL in a statement with others. Return 0 if the caller must run it by
 * itself, see crm_batch_run(). */
static int share(touch_t *touch, crm_sql_t *sql)
{
    const crm_conn_source_t source = {acquire, release, add_waiting,
                                      CRM_TOUCH_WAIT, touch};
    crm_batch_part_t part;
    crm_error_t *error;
    crm_rows_t rows;
    int done;

    error = crm_batch_run(&rows, &part, touch->service->batcher, sql, &source,
                          touch->pool);
    done = error || rows.count || (rows.result && !rows.shared);
    crm_rows_drop(&rows);
    release(touch);
    return done;
}

void crm_touch(const crm_service_t *service, void *baton,
               const char *workspace_id, const char *key_id, apr_pool_t *pool)
{
    touch_t touch = {service, baton, NULL, apr_time_now(), pool};
    int distributed = service->distributed && service->distributed(baton);
    apr_size_t from;
    crm_sql_t sql;

    crm_sql_init(&sql, pool);
    crm_sql_add(&sql, "UPDATE crmapi.api_key t SET last_used_at ="
                " crmapi.now_ms()");
    from = sql.text.len;
    crm_sql_template(&sql, " WHERE t.workspace_id = ?", workspace_id, "uuid");
    crm_sql_template(&sql, " AND t.id = ?", key_id, "uuid");
    if (!distributed) {         /* Citus takes no function in RETURNING */
        crm_sql_add(&sql, " RETURNING set_config('synchronous_commit', 'off',"
                    " true)");
        crm_sql_write(&sql, from, 2, "api_key");
    }
    if (distributed || !service->batcher || !share(&touch, &sql)) {
        run_alone(&touch, &sql);
    }
}
