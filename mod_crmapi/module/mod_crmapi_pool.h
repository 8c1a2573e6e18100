/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_pool.h: mod_dbd's connection pools, and waiting for a place in
 * them */
#ifndef MOD_CRMAPI_POOL_H
#define MOD_CRMAPI_POOL_H

#include <pthread.h>

#include "mod_crmapi_config.h"
#include "mod_crmapi_news.h"

/* Interval at which an unchanged state is logged again. */
#define CRMAPI_POOL_LOG_AGAIN apr_time_from_sec(60)

/* States of a pool's database for the log. CRMAPI_POOL_SCHEMA + N: its schema
 * has version N. */
enum {
    CRMAPI_POOL_READY,
    CRMAPI_POOL_MISCONFIGURED,
    CRMAPI_POOL_UNREACHABLE,
    CRMAPI_POOL_SCHEMA
};

/* Whether a pool's database can be used, as found by the last check of
 * mod_crmapi_usable.c. In shared memory, initially zero; all members are
 * atomic. */
typedef struct crmapi_health_t {
    apr_uint32_t verdict;       /* 0: never checked */
    apr_int64_t at;             /* time of the verdict */
    apr_int64_t checking;       /* when the running check began; 0: none runs */
    apr_int64_t served;         /* when a process last found the schema valid */
} crmapi_health_t;

/* How many refusals of a database are told apart. */
#define CRMAPI_POOL_REFUSALS 16

/* What all processes know of a pool's database. */
typedef struct crmapi_pool_shared_t {
    crmapi_news_t state_news;
    crmapi_news_t busy_news;
    crmapi_news_t refusal_news[CRMAPI_POOL_REFUSALS];
    crmapi_health_t health;
    crm_roll_state_t roll;
} crmapi_pool_shared_t;

/* One of mod_dbd's connection pools in this process. Servers share one as they
 * do in mod_dbd. When all connections are in use, mod_dbd lets a thread wait
 * without limit. So each thread takes a place here first, also those of other
 * modules (mod_crmapi_dbd.c). */
typedef struct crmapi_pool_t {
    crmapi_news_t *state_news;  /* the state that was logged last */
    crmapi_news_t *busy_news;   /* last log message on failed waits */
    crmapi_news_t *refusal_news; /* refusals that were logged, by their hash */
    crmapi_health_t *health;
    crm_keys_t keys;            /* for its service */
    const crmapi_dbd_t *settings;
    const char *missing;        /* error in the configuration, or NULL */
    const char *label;          /* for the metrics: "dbname=crm user=www-data";
                                   "" if something is missing */
    const char *name;           /* for the log: " (LABEL)", or "" */
    apr_uint32_t realm;
    int max;                    /* connections per process; 0: no limit */
    int share;                  /* limit of threads while the database hangs; 0:
                                   none */
    apr_interval_time_t hangs_after; /* since when no connection was released */
    int dialect;                /* 0: unknown, 1: plain, 2: distributed;
                                   atomic */
    server_rec *opened;         /* for whom mod_dbd has opened a connection in
                                   this process; NULL: none yet; atomic */
    struct bell_t *bell;        /* mod_crmapi_bell.c; NULL: nobody has waited */
    int explaining;             /* whether a thread looks for the cause of an
                                   outage; atomic */
    apr_time_t schema_seen;     /* when the schema was last valid; atomic */
    int made;                   /* connections that mod_dbd has; atomic */
    int failing;                /* the last request got no usable connection;
                                   atomic */
    pthread_mutex_t *mutex;     /* of all that follows; NULL in the parent */
    pthread_cond_t *freed;
    pthread_cond_t *turned;     /* a turn has ended: mod_crmapi_turn.c */
    apr_uint64_t turn;          /* number of the last turn, from 1 */
    apr_time_t turn_since;      /* when it began; 0: it has ended */
    apr_uint64_t failed_turn;   /* number of the last turn that got no connection;
                                   0: the last one did */
    int used;                   /* places taken */
    int few;                    /* limit of places until FEW_UNTIL: the database
                                   gives no more connections */
    apr_time_t few_until;
    int waiting;                /* threads that wait for a place */
    int sharing;                /* threads that wait for another thread's
                                   statement; atomic */
    apr_time_t moved;           /* time of the last release, or of the first
                                   use after all were free; atomic */
} crmapi_pool_t;

/* Take a place in POOL. Wait for it at most WAIT, which is 0 or more, and set
 * *WAITED_P to the time waited. Return 0 if none became free, or if the
 * database hangs and its requests hold their share of the threads. */
int crmapi_pool_enter(apr_interval_time_t *waited_p, crmapi_pool_t *pool,
                      apr_interval_time_t wait);

/* Take a place in POOL. Wait for it without limit. */
void crmapi_pool_enter_always(crmapi_pool_t *pool);

/* Add CHANGE to the number of threads that wait, without a place, for another
 * thread's statement. Return whether they must stop waiting, because the database hangs
 * and its requests hold more than their share of the threads: see add_waiting() of
 * crm_conn_source_t. */
int crmapi_pool_add_waiting(crmapi_pool_t *pool, int change);

/* Release a place in POOL. SERVED: its connection was usable. */
void crmapi_pool_leave(crmapi_pool_t *pool, int served);

/* Return how many places of POOL, whose mutex is held, are taken by others than the
 * thread that may make a connection now. */
int crmapi_pool_busy(const crmapi_pool_t *pool);

/* Return how many connections of POOL there are that can be used, as far as is known: 0
 * if the last request got none that could. */
int crmapi_pool_usable(const crmapi_pool_t *pool);

/* Release a place in POOL, for which the database gave no connection. Return whether
 * others have connections. If so, there are no more places than theirs for a second:
 * who waits for one gets theirs. */
int crmapi_pool_refuse(crmapi_pool_t *pool);

/* Set the limit of POOL to MAX. Return the previous limit. */
int crmapi_pool_limit(crmapi_pool_t *pool, int max);

/* Log TEXT about the database of POOL for the server S at LEVEL, unless its
 * STATE was logged recently. */
void crmapi_pool_report(const crmapi_pool_t *pool, apr_uint32_t state,
                        int level, const server_rec *s, const char *text);

/* Return whether to log LINE, which tells what POOL's database refuses, now: the same
 * line is logged at most once a minute. */
int crmapi_pool_refusal_is_news(const crmapi_pool_t *pool, const char *line);

/* Return whether crmapi_pool_report() would log STATE for POOL now. */
int crmapi_pool_is_news(const crmapi_pool_t *pool, apr_uint32_t state);

/* Log in the same way what is missing in POOL's configuration. Scratch memory
 * is in P. */
void crmapi_pool_report_missing(const crmapi_pool_t *pool,
                                const server_rec *s, apr_pool_t *p);

/* Forget the pools of the previous configuration. */
void crmapi_pools_clear(apr_pool_t *pconf);

/* Set CONFIG's pool and realm. A new pool is allocated in PCONF. */
void crmapi_pool_make(crmapi_config_t *config, apr_pool_t *pconf);

/* Set CONFIG's pool to one that was made for another server, or to NULL. */
void crmapi_pool_join(crmapi_config_t *config);

/* Return the number of pools, and the pool number INDEX, from 0. */
int crmapi_pools_count(void);
crmapi_pool_t *crmapi_pool_at(int index);

/* Put the states of all pools into shared memory. All pools must have been made
 * before. KEYS is what they have in common. Return NULL or an error text
 * allocated in PTEMP. */
const char *crmapi_pools_share(const crm_keys_t *keys, apr_pool_t *pconf,
                               apr_pool_t *ptemp);

/* Log what is missing in the configuration, once for each pool. */
void crmapi_pools_complain(const server_rec *main_server, apr_pool_t *ptemp);

/* Make the locks of this process, allocated in PCHILD. */
void crmapi_pools_create(apr_pool_t *pchild);

/* Set *USED_P to the connections in use, *MAX_P to their limit, over all pools
 * of this process. */
void crmapi_pools_stats(int *used_p, int *max_p);

#endif /* MOD_CRMAPI_POOL_H */
