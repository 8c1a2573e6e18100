/* SPDX-License-Identifier: Apache-2.0 */
/* crm_dial.c: connecting to PostgreSQL, unless nobody wants that any more */
#include "crm_dial.h"

#include <pthread.h>

#include "apr_strings.h"
#include "apr_tables.h"

#include "crm_cond.h"
#include "crm_db_private.h"
#include "crm_thread.h"

/* A connection that is being opened. Its memory is released by who is last: the thread
 * that opens it, or who wanted it. */
typedef struct dial_t {
    apr_pool_t *pool;           /* lives longer than all others */
    const char **keywords, **values;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    PGconn *pg;
    int opened;                 /* PG is all that there will be */
    int left;                   /* nobody wants it any more */
} dial_t;

/* Return a copy of TEXTS, which end with a NULL, in POOL. */
static const char **copy(const char *const *texts, apr_pool_t *pool)
{
    apr_array_header_t *copies = apr_array_make(pool, 16, sizeof(char *));

    for (; *texts; texts++) {
        APR_ARRAY_PUSH(copies, const char *) = apr_pstrdup(pool, *texts);
    }
    APR_ARRAY_PUSH(copies, const char *) = NULL;
    return (const char **)copies->elts;
}

static void dial_free(dial_t *dial)
{
    pthread_cond_destroy(&dial->changed);
    pthread_mutex_destroy(&dial->mutex);
    apr_pool_destroy(dial->pool);
}

/* The thread that opens the dial_t at DATA. */
static void *open_main(void *data)
{
    dial_t *dial = data;
    PGconn *pg = PQconnectdbParams(dial->keywords, dial->values, 1);
    int left;

    pthread_mutex_lock(&dial->mutex);
    dial->pg = pg;
    dial->opened = 1;
    left = dial->left;
    pthread_cond_signal(&dial->changed);
    pthread_mutex_unlock(&dial->mutex);
    if (left) {
        PQfinish(pg);
        dial_free(dial);
    }
    return NULL;
}

/* Return a new dial_t, whose thread runs; NULL if it cannot be started. */
static dial_t *dial_start(const char *const *keywords,
                          const char *const *values)
{
    apr_pool_t *pool;
    dial_t *dial;

    if (apr_pool_create_unmanaged_ex(&pool, NULL, NULL) != APR_SUCCESS) {
        return NULL;
    }
    dial = apr_pcalloc(pool, sizeof(*dial));
    dial->pool = pool;
    dial->keywords = copy(keywords, pool);
    dial->values = copy(values, pool);
    pthread_mutex_init(&dial->mutex, NULL);
    crm_cond_init(&dial->changed);
    if (!crm_thread_start(open_main, dial)) {
        dial_free(dial);
        return NULL;
    }
    return dial;
}

PGconn *crm_dial(const char *const *keywords, const char *const *values,
                 int (*unwanted)(void *baton), void *baton)
{
    dial_t *dial = unwanted ? dial_start(keywords, values) : NULL;
    PGconn *pg;
    int opened;

    if (!dial) {
        return PQconnectdbParams(keywords, values, 1);
    }
    pthread_mutex_lock(&dial->mutex);
    while (!dial->opened && !dial->left) {
        crm_cond_wait(&dial->changed, &dial->mutex, CRM_DB_WATCH_TIME);
        dial->left = !dial->opened && unwanted(baton);
    }
    opened = dial->opened;
    pg = dial->pg;
    pthread_mutex_unlock(&dial->mutex);
    if (opened) {
        dial_free(dial);
    }
    return pg;
}
