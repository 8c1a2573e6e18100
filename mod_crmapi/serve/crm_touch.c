/* SPDX-License-Identifier: Apache-2.0 */
/* crm_touch.c: recording when an API key was last used */
#include "crm_touch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "apr_strings.h"

#include "crm_db.h"
#include "crm_sql_print.h"
#include "crm_uuid.h"

/* The maximum number of keys that wait to be written. */
#define KEYS_MAX 256

/* Interval between two statements of a process. */
#define INTERVAL apr_time_from_msec(20)

typedef struct touch_key_t {
    char workspace_id[CRM_UUID_LEN + 1];
    char id[CRM_UUID_LEN + 1];
} touch_key_t;

struct crm_toucher_t {
    pthread_mutex_t lock;
    int led;                    /* a thread will write KEYS */
    int count;                  /* of KEYS */
    apr_time_t written;         /* when a thread last took KEYS */
    touch_key_t keys[KEYS_MAX];
};

/* Where statements run. */
typedef struct touch_t {
    const crm_service_t *service;
    void *baton;                /* of SERVICE's functions */
    apr_pool_t *pool;
} touch_t;

/* ---- keys that wait ---- */

/* Pool cleanup: free the toucher at DATA. */
static apr_status_t free_toucher(void *data)
{
    crm_toucher_t *toucher = data;

    pthread_mutex_destroy(&toucher->lock);
    free(toucher);
    return APR_SUCCESS;
}

crm_toucher_t *crm_toucher_create(apr_pool_t *pool)
{
    crm_toucher_t *toucher = calloc(1, sizeof(*toucher));

    if (toucher) {
        pthread_mutex_init(&toucher->lock, NULL);
        apr_pool_cleanup_register(pool, toucher, free_toucher,
                                  apr_pool_cleanup_null);
    }
    return toucher;
}

/* Add KEY to those of TOUCHER. Return 0 if there are too many. Otherwise set
 * *WAIT_P to the time after which the caller must take them, or to -1 if another
 * thread will do so. */
static int add(apr_interval_time_t *wait_p, crm_toucher_t *toucher,
               const touch_key_t *key)
{
    int added;

    pthread_mutex_lock(&toucher->lock);
    added = toucher->count < KEYS_MAX;
    if (added) {
        toucher->keys[toucher->count++] = *key;
        *wait_p = -1;
        if (!toucher->led) {
            toucher->led = 1;
            *wait_p = toucher->written + INTERVAL - apr_time_now();
            *wait_p = *wait_p < 0 ? 0
                      : *wait_p > INTERVAL ? INTERVAL : *wait_p;
        }
    }
    pthread_mutex_unlock(&toucher->lock);
    return added;
}

/* Take the keys of TOUCHER: set *COUNT_P to their number and return them in
 * POOL. */
static touch_key_t *take(int *count_p, crm_toucher_t *toucher,
                         apr_pool_t *pool)
{
    touch_key_t *keys;

    pthread_mutex_lock(&toucher->lock);
    *count_p = toucher->count;
    keys = apr_pmemdup(pool, toucher->keys,
                       (apr_size_t)toucher->count * sizeof(*keys));
    toucher->count = toucher->led = 0;
    toucher->written = apr_time_now();
    pthread_mutex_unlock(&toucher->lock);
    return keys;
}

/* ---- statements ---- */

/* Run STMT. Return its result, or NULL after an error. */
static PGresult *run(const touch_t *touch, const crm_stmt_t *stmt)
{
    const crm_service_t *service = touch->service;
    PGresult *result = NULL;
    crm_conn_t *conn;

    if (service->acquire(&conn, apr_time_now(), touch->baton, touch->pool)) {
        return NULL;
    }
    if (crm_db_query(&result, conn, stmt, touch->pool)) {
        result = NULL;
    }
    service->release(conn, touch->baton);
    return result;
}

/* Set SQL to the statement for KEY. Its commit does not wait for the disk, but
 * Citus takes no function in RETURNING. */
static void make_sql(crm_sql_t *sql, const touch_t *touch,
                     const touch_key_t *key, int distributed)
{
    crm_sql_init(sql, touch->pool);
    crm_sql_add(sql, "UPDATE crmapi.api_key t SET last_used_at ="
                " crmapi.now_ms()");
    crm_sql_clause(sql, CRM_SQL_WHERE);
    crm_sql_template(sql, " WHERE t.workspace_id = ?", key->workspace_id,
                     "uuid");
    crm_sql_template(sql, " AND t.id = ?", key->id, "uuid");
    if (!distributed) {
        crm_sql_clause(sql, CRM_SQL_RETURNING);
        crm_sql_add(sql, " RETURNING set_config('synchronous_commit', 'off',"
                    " true)");
        crm_sql_write(sql, 2, "api_key");
    }
}

static void write_one(const touch_t *touch, const touch_key_t *key,
                      int distributed)
{
    crm_stmt_t stmt;
    crm_sql_t sql;

    make_sql(&sql, touch, key, distributed);
    crm_sql_stmt(&stmt, &sql);
    run(touch, &stmt);
}

/* Write the COUNT KEYS in one statement. Return its result, see
 * crm_sql_batch(), or NULL after an error. */
static PGresult *write_many(const touch_t *touch, const touch_key_t *keys,
                            int count)
{
    apr_array_header_t *workspaces = apr_array_make(touch->pool, count,
                                                    sizeof(const char *));
    apr_array_header_t *ids = apr_array_make(touch->pool, count,
                                             sizeof(const char *));
    const char *values[2];
    crm_stmt_t stmt;
    crm_sql_t sql;

    for (int i = 0; i < count; i++) {
        APR_ARRAY_PUSH(workspaces, const char *) = keys[i].workspace_id;
        APR_ARRAY_PUSH(ids, const char *) = keys[i].id;
    }
    make_sql(&sql, touch, keys, 0);
    crm_sql_stmt(&stmt, &sql);
    values[0] = crm_sql_array(workspaces, touch->pool);
    values[1] = crm_sql_array(ids, touch->pool);
    stmt.sql = crm_sql_batch(&sql, touch->pool);
    stmt.values = values;
    return run(touch, &stmt);
}

/* Return whether RESULT, of write_many() or NULL, has the row of KEY. */
static int has_row(const PGresult *result, const touch_key_t *key)
{
    int column = PQnfields(result) - 1;

    for (int i = 0; i < PQntuples(result); i++) {
        if (!strcmp(PQgetvalue(result, i, column), key->id)) {
            return 1;
        }
    }
    return 0;
}

/* Write the COUNT KEYS. One statement skips rows that are locked; then their
 * own statements wait. */
static void write_all(const touch_t *touch, const touch_key_t *keys, int count)
{
    PGresult *result = count > 1 ? write_many(touch, keys, count) : NULL;

    for (int i = 0; i < count; i++) {
        if (!has_row(result, &keys[i])) {
            write_one(touch, &keys[i], 0);
        }
    }
}

void crm_touch(const crm_service_t *service, void *baton,
               const char *workspace_id, const char *key_id, apr_pool_t *pool)
{
    const touch_t touch = {service, baton, pool};
    int distributed = service->distributed && service->distributed(baton);
    crm_toucher_t *toucher = service->toucher;
    apr_interval_time_t wait;
    touch_key_t key, *keys;
    int count;

    apr_cpystrn(key.workspace_id, workspace_id, sizeof(key.workspace_id));
    apr_cpystrn(key.id, key_id, sizeof(key.id));
    if (distributed || !toucher || !add(&wait, toucher, &key)) {
        write_one(&touch, &key, distributed);
    }
    else if (wait >= 0) {
        apr_sleep(wait);
        keys = take(&count, toucher, pool);
        write_all(&touch, keys, count);
    }
}
