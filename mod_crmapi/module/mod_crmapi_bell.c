/* SPDX-License-Identifier: Apache-2.0 */
/* mod_crmapi_bell.c: what happens in workspaces, as their databases tell it
 *
 * The session of a bell has a shared advisory lock for each workspace that
 * somebody waits for. A transaction that writes an event or a message tries that
 * lock, and notifies if it is taken (crmapi.bell() of 0013-events.sql). So nothing
 * is asked while nothing happens, and writes notify nobody if nobody waits.
 *
 * A transaction that tried the lock before it was taken may commit later without
 * notifying. The bell waits for those, and rings then.
 *
 * Everybody in a workspace may wait for anything, and a visitor for messages of his
 * chats alone: then one message does not wake all visitors. A notification has the
 * workspace, and the visitor of a message.
 *
 * A pooler lends the session to others, and a distributed database has many: such
 * a bell rings every two seconds. */
#include "mod_crmapi_bell.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apr_hash.h"
#include "apr_portable.h"
#include "apr_ring.h"
#include "apr_strings.h"

#include "crm_db.h"
#include "crm_probe.h"
#include "crm_time.h"
#include "crm_uuid.h"

#define CHANNEL "crmapi_bell"

/* The advisory lock of the workspace $1: see crmapi.bell(). */
#define LOCK "(uuid_hash_extended($1::uuid, 1))"

/* A workspace is watched for this time after the last one that waited. */
#define KEEP apr_time_from_sec(60)

#define CONNECT_TIME apr_time_from_sec(2)
#define STATEMENT_TIME apr_time_from_sec(5)

/* Milliseconds. */
#define RETRY 1000              /* after a failure */
#define SETTLE 50               /* between looks at transactions that began
                                   before */
#define INTERVAL 2000           /* of a bell without notifications */

#define LINES 1021              /* for visitors */

struct crmapi_watch_t {
    APR_RING_ENTRY(crmapi_watch_t) link;
    struct bell_t *bell;
    char workspace_id[CRM_UUID_LEN + 1];
    apr_uint32_t counts[1 + LINES]; /* atomic; the first is of everything */
    int users;
    apr_time_t left;            /* when the last user left */
    int locked;                 /* the session has its lock */
    int settled;                /* and all that began before has ended */
};

APR_RING_HEAD(watches_t, crmapi_watch_t);

/* The bell of a database. The thread alone uses what follows "watches". */
typedef struct bell_t {
    crmapi_pool_t *pool;
    apr_pool_t *p;
    apr_thread_mutex_t *mutex;  /* of the watches */
    apr_thread_t *thread;
    int pipe[2];                /* wakes the thread */
    int ends;                   /* atomic */
    struct watches_t watches;
    apr_pool_t *conn_pool;      /* NULL: there is no connection */
    PGconn *pg;
    crm_conn_t *conn;
    unsigned session;
    int deaf;                   /* it gets no notifications */
    int silent;                 /* nothing has come for a while: is the server
                                   still there? */
    const char *before;         /* transactions to wait for, an array in
                                   CONN_POOL; or NULL */
    int running;                /* how many of them the last look found; -1: there
                                   was none */
    int locked_out;             /* a watch's lock is somebody else's */
} bell_t;

static struct {
    apr_pool_t *p;
    apr_thread_mutex_t *mutex;  /* of pool->bell */
    void (*ring)(void);
} bells;

/* ---- watches ------------------------------------------------------------- */

static void rouse(bell_t *bell)
{
    ssize_t written = write(bell->pipe[1], "", 1);

    (void)written;              /* full: it is being woken */
}

static void *APR_THREAD_FUNC bell_main(apr_thread_t *thread, void *baton);

/* Free the watches of BELL that nobody uses. */
static void free_watches(bell_t *bell)
{
    crmapi_watch_t *watch, *next;

    APR_RING_FOREACH_SAFE(watch, next, &bell->watches, crmapi_watch_t, link) {
        if (!watch->users) {
            APR_RING_REMOVE(watch, link);
            free(watch);
        }
    }
}

static apr_status_t bell_end(void *baton)
{
    bell_t *bell = baton;
    apr_status_t status, joined;

    __atomic_store_n(&bell->ends, 1, __ATOMIC_SEQ_CST);
    rouse(bell);
    joined = apr_thread_join(&status, bell->thread);
    apr_thread_mutex_lock(bell->mutex);
    free_watches(bell);
    apr_thread_mutex_unlock(bell->mutex);
    return joined;
}

/* Return a new bell of POOL, whose thread runs. NULL: there is none. */
static bell_t *bell_begin(crmapi_pool_t *pool)
{
    bell_t *bell;
    apr_pool_t *p;

    apr_pool_create(&p, bells.p);
    bell = apr_pcalloc(p, sizeof(*bell));
    bell->pool = pool;
    bell->p = p;
    APR_RING_INIT(&bell->watches, crmapi_watch_t, link);
    if (apr_thread_mutex_create(&bell->mutex, APR_THREAD_MUTEX_DEFAULT, p)
        || pipe2(bell->pipe, O_NONBLOCK | O_CLOEXEC)) {
        apr_pool_destroy(p);
        return NULL;
    }
    if (apr_thread_create(&bell->thread, NULL, bell_main, bell, p)) {
        close(bell->pipe[0]);
        close(bell->pipe[1]);
        apr_pool_destroy(p);
        return NULL;
    }
    apr_pool_pre_cleanup_register(p, bell, bell_end);
    return bell;
}

static bell_t *bell_of(crmapi_pool_t *pool)
{
    apr_thread_mutex_lock(bells.mutex);
    if (!pool->bell) {
        pool->bell = bell_begin(pool);
    }
    apr_thread_mutex_unlock(bells.mutex);
    return pool->bell;
}

/* Return the watch of WORKSPACE_ID, which may be new, or NULL. BELL is
 * locked. */
static crmapi_watch_t *watch_of(bell_t *bell, const char *workspace_id)
{
    crmapi_watch_t *watch;

    APR_RING_FOREACH(watch, &bell->watches, crmapi_watch_t, link) {
        if (!strcmp(watch->workspace_id, workspace_id)) {
            return watch;
        }
    }
    watch = calloc(1, sizeof(*watch));
    if (watch) {
        watch->bell = bell;
        apr_cpystrn(watch->workspace_id, workspace_id,
                    sizeof(watch->workspace_id));
        APR_RING_INSERT_TAIL(&bell->watches, watch, crmapi_watch_t, link);
        rouse(bell);
    }
    return watch;
}

crmapi_watch_t *crmapi_bell_enter(crmapi_pool_t *pool,
                                  const char *workspace_id)
{
    bell_t *bell = bell_of(pool);
    crmapi_watch_t *watch;

    if (!bell) {
        return NULL;
    }
    apr_thread_mutex_lock(bell->mutex);
    watch = watch_of(bell, workspace_id);
    if (watch) {
        watch->users++;
    }
    apr_thread_mutex_unlock(bell->mutex);
    return watch;
}

void crmapi_bell_leave(crmapi_watch_t *watch)
{
    bell_t *bell = watch->bell;

    apr_thread_mutex_lock(bell->mutex);
    watch->users--;
    watch->left = crm_time_monotonic();
    apr_thread_mutex_unlock(bell->mutex);
}

int crmapi_bell_line(const char *visitor)
{
    apr_ssize_t len = APR_HASH_KEY_STRING;

    return visitor ? 1 + (int)(apr_hashfunc_default(visitor, &len) % LINES)
                   : 0;
}

apr_uint32_t crmapi_bell_count(const crmapi_watch_t *watch, int line)
{
    return __atomic_load_n(&watch->counts[line], __ATOMIC_SEQ_CST);
}

static void count(crmapi_watch_t *watch, int line)
{
    __atomic_add_fetch(&watch->counts[line], 1, __ATOMIC_SEQ_CST);
}

/* Ring for all that wait for WATCH's workspace. Its bell is locked. */
static void ring_all(crmapi_watch_t *watch)
{
    for (int line = 0; line <= LINES; line++) {
        count(watch, line);
    }
    bells.ring();
}

/* Ring for those that the notification TEXT is for. BELL is locked. */
static void ring(bell_t *bell, const char *text)
{
    size_t len = strcspn(text, " ");
    crmapi_watch_t *watch;

    APR_RING_FOREACH(watch, &bell->watches, crmapi_watch_t, link) {
        if (len == strlen(watch->workspace_id)
            && !strncmp(watch->workspace_id, text, len)) {
            count(watch, 0);
            if (text[len]) {
                count(watch, crmapi_bell_line(text + len + 1));
            }
        }
    }
    bells.ring();
}

/* ---- the connection ------------------------------------------------------ */

/* Close the connection. All locks are gone with it. */
static void close_connection(bell_t *bell)
{
    crmapi_watch_t *watch;

    if (bell->conn_pool) {
        PQfinish(bell->pg);
        apr_pool_destroy(bell->conn_pool);
        bell->conn_pool = NULL;
        bell->before = NULL;
    }
    apr_thread_mutex_lock(bell->mutex);
    APR_RING_FOREACH(watch, &bell->watches, crmapi_watch_t, link) {
        watch->locked = watch->settled = 0;
    }
    apr_thread_mutex_unlock(bell->mutex);
}

/* Run SQL with VALUE as $1 and set *VALUE_P to its first value. Return whether
 * that succeeded. */
static int ask(const char **value_p, bell_t *bell, const char *sql,
               const char *value, apr_pool_t *p)
{
    crm_stmt_t stmt = {sql, value != NULL, &value};
    PGresult *result;

    if (crm_db_query(&result, bell->conn, &stmt, p)
        || (bell->session && crm_conn_session(bell->conn) != bell->session)) {
        return 0;
    }
    *value_p = PQntuples(result) ? crm_db_value(result, 0, 0) : NULL;
    return 1;
}

/* Listen on the new connection of BELL. Return whether that succeeded. */
static int begin_to_listen(bell_t *bell)
{
    const char *pid = apr_itoa(bell->conn_pool, PQbackendPID(bell->pg));
    const char *value;

    bell->session = 0;
    if (!ask(&value, bell, "SELECT pg_backend_pid() = $1::integer", pid,
             bell->conn_pool)) {
        return 0;
    }
    bell->deaf = !value || *value != 't'
                 || __atomic_load_n(&bell->pool->dialect, __ATOMIC_SEQ_CST)
                    == 2;
    if (!bell->deaf && !ask(&value, bell, "LISTEN " CHANNEL, NULL,
                            bell->conn_pool)) {
        return 0;
    }
    bell->session = crm_conn_session(bell->conn);
    return 1;
}

/* Open the connection of BELL, unless it is open. Return whether it is. */
static int open_connection(bell_t *bell)
{
    const crm_conn_options_t options = {.named_statements = CRM_NAMES_OFF,
                                        .timeout = STATEMENT_TIME};
    crm_probe_t probe;

    if (bell->conn_pool) {
        return 1;
    }
    apr_pool_create(&bell->conn_pool, bell->p);
    crm_probe_open(&probe, bell->pool->settings->params, "crmapi bell",
                   CONNECT_TIME, bell->conn_pool);
    bell->pg = probe.pg;
    if (!probe.pg
        || crm_conn_adopt(&bell->conn, probe.pg, &options, bell->conn_pool,
                          bell->conn_pool)
        || !begin_to_listen(bell)) {
        close_connection(bell);
        return 0;
    }
    return 1;
}

/* ---- the thread ---------------------------------------------------------- */

/* Return the next watch of BELL behind AFTER (NULL: the first one) that has no lock,
 * or NULL. Only this thread removes watches. */
static crmapi_watch_t *find_new(bell_t *bell, crmapi_watch_t *after)
{
    crmapi_watch_t *watch, *none;

    apr_thread_mutex_lock(bell->mutex);
    none = APR_RING_SENTINEL(&bell->watches, crmapi_watch_t, link);
    watch = after ? APR_RING_NEXT(after, link) : APR_RING_FIRST(&bell->watches);
    while (watch != none && watch->locked) {
        watch = APR_RING_NEXT(watch, link);
    }
    apr_thread_mutex_unlock(bell->mutex);
    return watch == none ? NULL : watch;
}

/* Remove a watch of BELL that nobody has used for a while, and return it, or
 * NULL. */
static crmapi_watch_t *take_old(bell_t *bell)
{
    apr_time_t limit = crm_time_monotonic() - KEEP;
    crmapi_watch_t *watch, *found = NULL;

    apr_thread_mutex_lock(bell->mutex);
    APR_RING_FOREACH(watch, &bell->watches, crmapi_watch_t, link) {
        if (!watch->users && watch->left && watch->left < limit) {
            APR_RING_REMOVE(watch, link);
            found = watch;
            break;
        }
    }
    apr_thread_mutex_unlock(bell->mutex);
    return found;
}

/* Take the locks of new watches, and ring for these: something may have happened
 * since they were entered. A lock that somebody else has is not waited for: writers,
 * who have it for a moment, or any session of the database. Until it is tried again,
 * all that happens there notifies. Return 0 after a failure. */
static int lock_new(bell_t *bell, apr_pool_t *p)
{
    crmapi_watch_t *watch = NULL;
    const char *value;
    int any = 0;

    bell->locked_out = 0;
    while ((watch = find_new(bell, watch))) {
        if (!ask(&value, bell, "SELECT pg_try_advisory_lock_shared" LOCK,
                 watch->workspace_id, p)) {
            return 0;
        }
        watch->locked = value && *value == 't';
        any |= watch->locked;
        bell->locked_out |= !watch->locked;
    }
    if (!any) {
        return 1;
    }
    if (!ask(&value, bell, "SELECT array_agg(DISTINCT l.virtualtransaction)"
             " FROM pg_locks l WHERE l.relation IN"
             " ('crmapi.event'::regclass, 'crmapi.message'::regclass)"
             " AND l.mode = 'RowExclusiveLock'", NULL, p)) {
        return 0;
    }
    bell->before = apr_pstrdup(bell->conn_pool, value ? value : "{}");
    bell->running = -1;
    return 1;
}

/* Look how many of the transactions that began before the locks run. If one has ended,
 * ring for new watches. Return 0 after a failure. */
static int settle(bell_t *bell, apr_pool_t *p)
{
    crmapi_watch_t *watch;
    const char *value;
    int running;

    if (!bell->before) {
        return 1;
    }
    if (!ask(&value, bell, "SELECT count(DISTINCT l.virtualtransaction)"
             " FROM pg_locks l WHERE l.virtualtransaction = ANY ($1::text[])",
             bell->before, p)) {
        return 0;
    }
    running = value ? atoi(value) : 0;
    if (running == bell->running) {
        return 1;
    }
    bell->running = running;
    if (!running) {
        bell->before = NULL;
    }
    apr_thread_mutex_lock(bell->mutex);
    APR_RING_FOREACH(watch, &bell->watches, crmapi_watch_t, link) {
        if (watch->locked && !watch->settled) {
            watch->settled = !bell->before;
            ring_all(watch);
        }
    }
    apr_thread_mutex_unlock(bell->mutex);
    return 1;
}

/* Give back the locks of old watches. Return 0 after a failure. */
static int unlock_old(bell_t *bell, apr_pool_t *p)
{
    crmapi_watch_t *watch;
    const char *value;
    int good = 1;

    while (good && (watch = take_old(bell))) {
        if (watch->locked && bell->conn_pool && !bell->deaf) {
            good = ask(&value, bell, "SELECT pg_advisory_unlock_shared" LOCK,
                       watch->workspace_id, p);
        }
        free(watch);
    }
    return good;
}

/* Ring for the notifications that have come. Return 0 after a failure. */
static int hear(bell_t *bell)
{
    PGnotify *notice;

    if (!PQconsumeInput(bell->pg)) {
        return 0;
    }
    apr_thread_mutex_lock(bell->mutex);
    while ((notice = PQnotifies(bell->pg))) {
        ring(bell, notice->extra);
        PQfreemem(notice);
    }
    apr_thread_mutex_unlock(bell->mutex);
    return 1;
}

/* Return whether nobody waits. */
static int is_idle(bell_t *bell)
{
    int idle;

    apr_thread_mutex_lock(bell->mutex);
    idle = APR_RING_EMPTY(&bell->watches, crmapi_watch_t, link);
    apr_thread_mutex_unlock(bell->mutex);
    return idle;
}

/* Ring for all that wait. */
static void ring_everywhere(bell_t *bell)
{
    crmapi_watch_t *watch;

    apr_thread_mutex_lock(bell->mutex);
    APR_RING_FOREACH(watch, &bell->watches, crmapi_watch_t, link) {
        ring_all(watch);
    }
    apr_thread_mutex_unlock(bell->mutex);
}

/* Do what is to be done. Return the milliseconds to sleep, -1: without limit. */
static int tend(bell_t *bell, apr_pool_t *p)
{
    int good = unlock_old(bell, p);
    const char *value;

    if (is_idle(bell)) {
        close_connection(bell);
        return -1;
    }
    if (!good || !open_connection(bell)) {
        close_connection(bell);
        return RETRY;
    }
    if (bell->deaf) {
        ring_everywhere(bell);
        return INTERVAL;
    }
    if ((bell->silent && !ask(&value, bell, "SELECT 1", NULL, p))
        || !lock_new(bell, p) || !settle(bell, p) || !hear(bell)) {
        close_connection(bell);
        return RETRY;
    }
    return bell->before || bell->locked_out ? SETTLE
           : (int)apr_time_as_msec(KEEP);
}

/* Sleep for TIMEOUT milliseconds, until a notification comes, or until
 * rouse(). */
static void nap(bell_t *bell, int timeout)
{
    struct pollfd pollers[2] = {{bell->pipe[0], POLLIN, 0},
                                {-1, POLLIN, 0}};
    char drop[64];

    if (bell->conn_pool && !bell->deaf) {
        pollers[1].fd = PQsocket(bell->pg);
    }
    bell->silent = !poll(pollers, 2, timeout) && timeout > INTERVAL;
    while (read(bell->pipe[0], drop, sizeof(drop)) > 0) {
    }
}

static void *APR_THREAD_FUNC bell_main(apr_thread_t *thread, void *baton)
{
    bell_t *bell = baton;
    sigset_t signals;
    apr_pool_t *p;

    sigfillset(&signals);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    apr_pool_create(&p, bell->p);
    while (!__atomic_load_n(&bell->ends, __ATOMIC_SEQ_CST)) {
        int timeout = tend(bell, p);

        apr_pool_clear(p);
        nap(bell, timeout);
    }
    close_connection(bell);
    close(bell->pipe[0]);
    close(bell->pipe[1]);
    apr_thread_exit(thread, APR_SUCCESS);
    return NULL;
}

apr_status_t crmapi_bells_create(void (*ring_function)(void),
                                 apr_pool_t *pchild)
{
    bells.p = pchild;
    bells.ring = ring_function;
    return apr_thread_mutex_create(&bells.mutex, APR_THREAD_MUTEX_DEFAULT,
                                   pchild);
}
