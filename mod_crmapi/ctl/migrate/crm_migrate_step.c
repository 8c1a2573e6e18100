/* SPDX-License-Identifier: Apache-2.0 */
/* crm_migrate_step.c: running a step of a migration */
#include "crm_migrate_step.h"

#include <stdlib.h>
#include <string.h>

#include "apr_strings.h"
#include "apr_time.h"

#include "crm_array.h"
#include "crm_db.h"
#include "crm_time.h"

/* In milliseconds, so that no statement of the API waits for a second (contract
 * 16.2). While a step waits for a lock, later statements queue behind it:
 * LOCK_TIME limits that wait. HOLD_TIME limits a whole step, whose locks others
 * may wait for, if older programs can use the database meanwhile. */
#define LOCK_TIME 300
#define HOLD_TIME 800

/* Pauses between attempts: each is twice as long as the one before. */
#define FIRST_PAUSE apr_time_from_msec(250)
#define LAST_PAUSE apr_time_from_sec(10)

/* The minimum interval between log lines about a step. */
#define TELL apr_time_from_sec(10)

/* The time that a batch should take, because it holds locks on its rows. */
#define BATCH_TIME apr_time_from_msec(100)
#define FIRST_BATCH 100
#define LAST_BATCH 10000

/* Quotes SQL in the statement of a transaction. */
#define QUOTE "$crm_migration$"

/* Record that a step is done: $1 is the migration, $2 the number of steps that
 * were done before. A step cannot be recorded twice. */
#define ADVANCE(number, done) \
    "UPDATE crmapi.migration SET steps_done = steps_done + 1, step = NULL," \
    " rows_done = NULL, rows_expected = NULL, position = NULL," \
    " applied_at = clock_timestamp()" \
    " WHERE number = " number " AND steps_done = " done

/* A step under way. */
typedef struct state_t {
    const crm_migrate_step_t *run;
    const crm_migration_step_t *step;
    const char *number;         /* the migration's, as text */
    const char *done;           /* number of its applied steps, as text */
    int rows;                   /* the size of a batch */
    int more;                   /* there are further batches */
    const char *position;       /* the key of the last row that is done, as an
                                   array; NULL: none is */
    apr_time_t told;            /* time of the last log line */
    apr_time_t begun;
    apr_pool_t *pool;           /* of an attempt */
} state_t;

/* --- messages ------------------------------------------------------------- */

static const char *step_name(const state_t *state)
{
    const crm_migrate_step_t *run = state->run;

    return apr_psprintf(state->pool, "%s, step %d of %d (%s)",
                        run->migration->name, run->done + 1,
                        run->migration->steps->nelts, state->step->title);
}

static void tell(state_t *state, const char *text)
{
    const crm_log_t *log = state->run->log;

    state->told = crm_time_monotonic();
    log->write(log->baton, CRM_LOG_NOTICE, text);
}

static const char *log_of(const crm_error_t *error)
{
    return error->log ? error->log : error->message;
}

/* Return a text about the session that probably holds the lock: the one with
 * the oldest transaction that has locked a table. */
static const char *find_holder(const state_t *state)
{
    static const crm_stmt_t stmt = {
        "SELECT format('backend %s, %s, %s, has had %s on %s for %s s', l.pid,"
        " coalesce(nullif(a.application_name, ''), a.backend_type, '?'),"
        " coalesce(a.state, '?'), l.mode, l.relation::regclass,"
        " coalesce(extract(epoch FROM now() - a.xact_start)::integer::text,"
        "  '?')) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation"
        " LEFT JOIN pg_stat_activity a ON a.pid = l.pid"
        " WHERE l.granted AND l.pid <> pg_backend_pid()"
        " AND c.relnamespace = 'crmapi'::regnamespace AND l.database ="
        " (SELECT oid FROM pg_database WHERE datname = current_database())"
        " ORDER BY a.xact_start, l.pid, c.relkind = 'r' DESC LIMIT 1", 0, NULL
    };
    PGresult *result;

    if (crm_db_query(&result, state->run->conn, &stmt, state->pool)
        || !PQntuples(result)) {
        return "";
    }
    return apr_pstrcat(state->pool, "; ", PQgetvalue(result, 0, 0), NULL);
}

/* --- one attempt of each kind --------------------------------------------- */

/* Set the session's limits in milliseconds; 0: none. */
static crm_error_t *set_limits(const state_t *state, int lock, int statement)
{
    return crm_db_exec(state->run->conn, apr_psprintf(
        state->pool, "SET lock_timeout = %d; SET statement_timeout = %d", lock,
        statement), state->pool);
}

/* Record that the step is done, by a statement of its own. */
static crm_error_t *advance(const state_t *state)
{
    const char *values[] = {state->number, state->done};
    const crm_stmt_t stmt = {ADVANCE("$1::integer", "$2::integer"), 2, values};
    PGresult *result;

    return crm_db_query(&result, state->run->conn, &stmt, state->pool);
}

/* One statement executes and records the step, so that statement_timeout limits
 * both. It is a transaction of its own, so that no lock is left if the client
 * stops. */
static crm_error_t *try_transaction(state_t *state)
{
    const crm_migration_t *migration = state->run->migration;
    const char *record;

    if (strstr(state->step->sql, QUOTE)) {
        return crm_migration_fault(state->pool, "SQL must not contain " QUOTE);
    }
    CRM_ERR(set_limits(state, LOCK_TIME,
                       migration->min_module < migration->number
                       ? HOLD_TIME : 0));
    record = apr_psprintf(state->pool, ADVANCE("%s", "%s"), state->number,
                          state->done);
    return crm_db_exec(state->run->conn, apr_pstrcat(
        state->pool, "DO $crm_step$ BEGIN ", record, "; IF NOT FOUND THEN"
        " RAISE 'another run has executed this step'; END IF; EXECUTE " QUOTE,
        state->step->sql, QUOTE "; END $crm_step$", NULL), state->pool);
}

/* Set *VALID_P to whether the index of the step is complete, and *EXISTS_P to
 * whether it exists. */
static crm_error_t *look_at_index(int *exists_p, int *valid_p,
                                  const state_t *state)
{
    const char *values[] = {state->step->object};
    const crm_stmt_t stmt = {
        "SELECT i.indisvalid FROM pg_index i JOIN pg_class c"
        " ON c.oid = i.indexrelid WHERE c.relname = $1::text"
        " AND c.relnamespace = 'crmapi'::regnamespace", 1, values
    };
    PGresult *result;

    CRM_ERR(crm_db_query(&result, state->run->conn, &stmt, state->pool));
    *exists_p = PQntuples(result) > 0;
    *valid_p = *exists_p && *PQgetvalue(result, 0, 0) == 't';
    return NULL;
}

/* An invalid index was left by an interrupted run. */
static crm_error_t *try_index(state_t *state)
{
    int exists, valid;

    CRM_ERR(look_at_index(&exists, &valid, state));
    if (exists && !valid) {
        tell(state, apr_pstrcat(state->pool, "CRM2112: ", step_name(state),
                                ": the index was left incomplete and is built"
                                " again", NULL));
        CRM_ERR(crm_db_exec(state->run->conn, apr_pstrcat(
            state->pool, "DROP INDEX CONCURRENTLY IF EXISTS crmapi.",
            state->step->object, NULL), state->pool));
    }
    if (!valid) {
        CRM_ERR(crm_db_exec(state->run->conn, state->step->sql, state->pool));
        CRM_ERR(look_at_index(&exists, &valid, state));
    }
    if (!valid) {
        return crm_migration_fault(state->pool, "the step has created no index"
                                   " crmapi.%s", state->step->object);
    }
    return advance(state);
}

static crm_error_t *try_alone(state_t *state)
{
    CRM_ERR(crm_db_exec(state->run->conn, state->step->sql, state->pool));
    return advance(state);
}

/* --- batches -------------------------------------------------------------- */

/* Return TEXT without trailing spaces and semicolons, in POOL. */
static const char *without_end(const char *text, apr_pool_t *pool)
{
    apr_size_t len = strlen(text);

    while (len && strchr(" \t\r\n;", text[len - 1])) {
        len--;
    }
    return apr_pstrmemdup(pool, text, len);
}

/* The parts of a batch's statement. */
typedef struct batch_key_t {
    const char *columns;        /* "workspace_id, id" */
    const char *backwards;      /* "workspace_id DESC, id DESC" */
    const char *position;       /* "workspace_id::text, id::text" */
    const char *after;          /* "($4::text[])[1]::uuid, ..." */
} batch_key_t;

/* Set *KEY to the primary key of the step's table. */
static crm_error_t *read_key(batch_key_t *key, const state_t *state)
{
    const char *values[] = {state->step->object};
    const crm_stmt_t stmt = {
        "SELECT string_agg(c, ', ' ORDER BY n),"
        " string_agg(c || ' DESC', ', ' ORDER BY n),"
        " string_agg(c || '::text', ', ' ORDER BY n),"
        " string_agg(format('($4::text[])[%s]::%s', n, type), ', ' ORDER BY n)"
        " FROM (SELECT quote_ident(a.attname) AS c, k.n,"
        "  format_type(a.atttypid, a.atttypmod) AS type"
        "  FROM pg_index i, unnest(i.indkey) WITH ORDINALITY k (attnum, n),"
        "  pg_attribute a WHERE i.indisprimary AND a.attrelid = i.indrelid"
        "  AND a.attnum = k.attnum"
        "  AND i.indrelid = to_regclass('crmapi.' || $1::text)) x", 1, values
    };
    PGresult *result;

    CRM_ERR(crm_db_query(&result, state->run->conn, &stmt, state->pool));
    if (!(key->columns = crm_db_value(result, 0, 0))) {
        return crm_migration_fault(state->pool, "crmapi.%s has no primary key",
                                   state->step->object);
    }
    key->backwards = crm_db_value(result, 0, 1);
    key->position = crm_db_value(result, 0, 2);
    key->after = crm_db_value(result, 0, 3);
    return NULL;
}

/* Return the statement of a batch. Its values are the migration's number, the
 * number of its applied steps, the maximum number of rows, and the position. */
static const char *batch_sql(const state_t *state, const batch_key_t *key)
{
    return apr_pstrcat(state->pool, "WITH batch AS MATERIALIZED (SELECT ",
        key->columns, " FROM crmapi.", state->step->object,
        state->position ? " WHERE (" : "",
        state->position ? key->columns : "",
        state->position ? ") > (" : "",
        state->position ? key->after : "",
        state->position ? ")" : "",
        " ORDER BY ", key->columns, " LIMIT $3::integer),"
        " change AS (", without_end(state->step->sql, state->pool), "\n)"
        " UPDATE crmapi.migration SET position = coalesce((SELECT ARRAY[",
        key->position, "] FROM batch ORDER BY ", key->backwards, " LIMIT 1),"
        " position), rows_done = coalesce(rows_done, 0)"
        " + (SELECT count(*) FROM batch)"
        " WHERE number = $1::integer AND steps_done = $2::integer"
        " RETURNING (SELECT count(*) FROM batch), position, rows_done,"
        " coalesce(rows_expected, 0)", NULL);
}

/* Log the progress in RESULT, that of a batch, if the last line is old
 * enough. */
static void tell_progress(state_t *state, const PGresult *result)
{
    apr_time_t last = state->told ? state->told : state->begun;

    if (crm_time_monotonic() - last >= TELL) {
        tell(state, apr_pstrcat(state->pool, "CRM2113: ", step_name(state),
                                ": ", PQgetvalue(result, 0, 2), " of about ",
                                PQgetvalue(result, 0, 3), " rows", NULL));
    }
}

/* Choose the size of the next batch after one that took TIME. Then sleep as
 * long, so that the server has time for others. */
static void pace(state_t *state, apr_interval_time_t time)
{
    if (time < BATCH_TIME / 2 && state->rows < LAST_BATCH) {
        state->rows *= 2;
    }
    else if (time > BATCH_TIME && state->rows > 1) {
        state->rows = (int)(state->rows * BATCH_TIME / time);
    }
    state->rows = state->rows < 1 ? 1 : state->rows;
    apr_sleep(time);
}

/* Execute a batch and set STATE->more to whether there is another one. After a
 * batch that does not get its locks, the next one is smaller. */
static crm_error_t *try_batch(state_t *state)
{
    const char *values[] = {state->number, state->done,
                            apr_itoa(state->pool, state->rows),
                            state->position};
    crm_stmt_t stmt = {NULL, state->position ? 4 : 3, values};
    apr_pool_t *keep = state->run->pool;
    apr_time_t start;
    batch_key_t key = {NULL, NULL, NULL, NULL};
    PGresult *result;
    crm_error_t *error;
    int rows;

    CRM_ERR(read_key(&key, state));
    CRM_ERR(set_limits(state, LOCK_TIME, HOLD_TIME));
    stmt.sql = batch_sql(state, &key);
    start = crm_time_monotonic();
    error = crm_db_query(&result, state->run->conn, &stmt, state->pool);
    if (error) {
        state->rows = state->rows > 1 ? state->rows / 2 : 1;
        return error;
    }
    if (!PQntuples(result)) {
        return crm_migration_fault(state->pool, "another run has executed it");
    }
    rows = atoi(PQgetvalue(result, 0, 0));
    tell_progress(state, result);
    state->more = rows == state->rows;
    if (state->more) {
        state->position = apr_pstrdup(keep, PQgetvalue(result, 0, 1));
        pace(state, crm_time_monotonic() - start);
        return NULL;
    }
    return advance(state);
}

/* --- a step --------------------------------------------------------------- */

/* How to execute a kind of step. LIMITED: statement_timeout limits its
 * attempts, and a statement that was cancelled by it is retried. */
static const struct {
    crm_error_t *(*attempt)(state_t *state);
    int limited;
} kinds[CRM_MIGRATION_KINDS] = {
    [CRM_MIGRATION_TRANSACTION] = {try_transaction, 1},
    [CRM_MIGRATION_INDEX] = {try_index, 0},
    [CRM_MIGRATION_ALONE] = {try_alone, 0},
    [CRM_MIGRATION_BATCHES] = {try_batch, 1},
};

/* Return whether a retry after ERROR may succeed: the attempt did not get a
 * lock, or was the victim of a deadlock. */
static int may_succeed(const state_t *state, const crm_error_t *error)
{
    static const char *const states[] = {"55P03", "40P01", "40001", "57014"};
    int limited = kinds[state->step->kind].limited;

    return error->sqlstate
           && crm_words_have(states, CRM_NELTS(states) - !limited,
                             error->sqlstate);
}

/* Execute the step, or its next batch. Retry it for the run's patience. */
static crm_error_t *attempt(state_t *state)
{
    const crm_migrate_step_t *run = state->run;
    apr_time_t end = crm_time_monotonic() + run->patience;
    apr_interval_time_t pause = FIRST_PAUSE;
    crm_error_t *error;
    const char *text;

    for (;;) {
        apr_pool_clear(state->pool);
        error = kinds[state->step->kind].attempt(state);
        if (!error || !may_succeed(state, error)) {
            return error;
        }
        text = apr_pstrcat(state->pool, log_of(error), find_holder(state),
                           NULL);
        if (crm_time_monotonic() + pause > end) {
            return crm_migration_fault(run->pool, "%s: run crmapictl migrate"
                                       " again", text);
        }
        if (crm_time_monotonic() - state->told >= TELL) {
            tell(state, apr_pstrcat(state->pool, "CRM2111: ",
                                    step_name(state), ": ", text,
                                    ": trying again", NULL));
        }
        apr_sleep(pause);
        pause = pause * 2 < LAST_PAUSE ? pause * 2 : LAST_PAUSE;
    }
}

/* Record that the step has begun. Set STATE's position to that of an earlier
 * run. */
static crm_error_t *begin(state_t *state)
{
    const crm_migration_t *migration = state->run->migration;
    apr_pool_t *pool = state->run->pool;
    const char *values[] = {state->number, migration->name, migration->sha256,
                            apr_itoa(pool, migration->min_module),
                            apr_itoa(pool, migration->steps->nelts),
                            state->step->title, state->step->object};
    const crm_stmt_t stmt = {
        "INSERT INTO crmapi.migration AS m (number, name, sha256, min_module,"
        " steps, steps_done, step, rows_expected) VALUES ($1::integer,"
        " $2::text, $3::text, $4::integer, $5::integer, 0, $6::text,"
        " (SELECT greatest(c.reltuples, 0)::bigint FROM pg_class c"
        "  WHERE c.relkind = 'r' AND c.oid = to_regclass('crmapi.' ||"
        "  $7::text))) ON CONFLICT (number) DO UPDATE SET name = excluded.name,"
        " sha256 = excluded.sha256, min_module = excluded.min_module,"
        " steps = excluded.steps, step = excluded.step,"
        " rows_expected = excluded.rows_expected RETURNING position", 7, values
    };
    PGresult *result;

    CRM_ERR(crm_db_query(&result, state->run->conn, &stmt, pool));
    state->position = crm_db_value(result, 0, 0);
    return NULL;
}

crm_error_t *crm_migrate_step(const crm_migrate_step_t *run)
{
    state_t state = {.run = run, .rows = FIRST_BATCH,
                     .begun = crm_time_monotonic()};
    crm_error_t *error;

    state.step = &APR_ARRAY_IDX(run->migration->steps, run->done,
                                crm_migration_step_t);
    state.number = apr_itoa(run->pool, run->migration->number);
    state.done = apr_itoa(run->pool, run->done);
    apr_pool_create(&state.pool, run->pool);
    error = begin(&state);
    do {
        error = error ? error : attempt(&state);
    } while (!error && state.more);
    /* what follows is not part of the step */
    error = error ? error : set_limits(&state, 0, 0);
    return error ? crm_migration_fault(run->pool, "CRM2107: %s: %s",
                                       step_name(&state), log_of(error))
                 : NULL;
}
