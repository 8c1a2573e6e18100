/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_mark.c: noticing that the database was restored */
#include "crmapid_mark.h"

#include <pthread.h>

#include "apr_strings.h"

#include "crm_buf.h"
#include "crm_db.h"
#include "crm_text.h"
#include "crmapid_journal.h"
#include "crmapid_log.h"

/* Lines of the journal in one statement. */
#define BATCH 500

/* The lock protects all below, and the journal. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static crmd_numbers_t known;
static int told;                /* the fault of this database was logged */

/* ---- the mark ------------------------------------------------------------ */

/* Return the mark as an array, in POOL. The caller has the lock. */
static const char *known_text(apr_pool_t *pool)
{
    crm_buf_t buf;

    crm_buf_init(&buf, 256, pool);
    for (int i = 0; i < CRMD_SLOTS; i++) {
        crm_buf_printf(&buf, "%c%" APR_INT64_T_FMT, i ? ',' : '{',
                       known.slot[i]);
    }
    crm_buf_add(&buf, "}", 2);
    return apr_pstrdup(pool, buf.data);
}

const char *crmd_mark_known(apr_pool_t *pool)
{
    const char *text;

    pthread_mutex_lock(&lock);
    text = known_text(pool);
    pthread_mutex_unlock(&lock);
    return text;
}

/* Raise the mark to MARKS, an array of bigint, and store it. */
static crm_error_t *learn(const char *marks, apr_pool_t *pool)
{
    char *at = apr_pstrdup(pool, marks);

    for (int i = 0; i < CRMD_SLOTS && *at; i++) {
        apr_int64_t n = apr_strtoi64(at + 1, &at, 10);

        if (known.slot[i] < n) {
            known.slot[i] = n;
        }
    }
    return crmd_journal_save(&known, pool);
}

/* ---- holding ------------------------------------------------------------- */

/* Lines of the journal on their way to the database. */
typedef struct batch_t {
    crm_conn_t *conn;
    apr_array_header_t *lines;  /* of const char *, in POOL */
    apr_int64_t taken;          /* how many messages the database has taken */
    apr_int64_t damaged;        /* how many lines it could not read */
    apr_pool_t *pool;           /* cleared after each batch */
    apr_pool_t *error_pool;
} batch_t;

static void clear(batch_t *batch)
{
    apr_pool_clear(batch->pool);
    batch->lines = apr_array_make(batch->pool, BATCH, sizeof(const char *));
}

/* Send COUNT lines of BATCH, from FIRST on, to the database. */
static crm_error_t *send_lines(batch_t *batch, int first, int count)
{
    const char *values[1];
    crm_stmt_t stmt = {"SELECT crmapi.past_add($1::jsonb)", 1, values};
    PGresult *result;
    crm_buf_t text;

    crm_buf_init(&text, 1024, batch->pool);
    for (int i = 0; i < count; i++) {
        crm_buf_putc(&text, i ? ',' : '[');
        crm_buf_puts(&text, APR_ARRAY_IDX(batch->lines, first + i,
                                          const char *));
    }
    crm_buf_add(&text, "]", 2);
    values[0] = text.data;
    CRM_ERR(crm_db_query(&result, batch->conn, &stmt, batch->error_pool));
    batch->taken += apr_atoi64(PQgetvalue(result, 0, 0));
    crm_db_clear(result, batch->error_pool);
    return NULL;
}

/* Send the lines of BATCH. A disk may have damaged one, or somebody else have written
 * it: the others count all the same. */
static crm_error_t *flush(batch_t *batch)
{
    int count = batch->lines->nelts;
    crm_error_t *error = count ? send_lines(batch, 0, count) : NULL;

    if (crm_error_refuses(error)) {
        error = NULL;
        for (int i = 0; i < count && !error; i++) {
            error = send_lines(batch, i, 1);
            if (crm_error_refuses(error)) {
                batch->damaged++;
                error = NULL;
            }
        }
    }
    clear(batch);
    return error;
}

/* Add LINE to the batch BATON. */
static crm_error_t *take_line(void *baton, const char *line)
{
    batch_t *batch = baton;

    APR_ARRAY_PUSH(batch->lines, const char *) = apr_pstrdup(batch->pool, line);
    return batch->lines->nelts < BATCH ? NULL : flush(batch);
}

/* Hold the database of CONN because of WHY. MARK is an array that its numbers
 * are raised to, or NULL. */
static crm_error_t *hold(crm_conn_t *conn, const char *why, const char *mark,
                         apr_pool_t *pool)
{
    const char *values[2] = {why, mark};
    crm_stmt_t stmt = {"SELECT crmapi.instance_hold($1::text, $2::bigint[])",
                       2, values};
    PGresult *result;

    return crm_db_query(&result, conn, &stmt, pool);
}

/* Hold the database of CONN because of WHY, and store in it what the journal
 * says was sent. Its numbers are raised last: if the daemon is killed before
 * that, its next start does all of it again. */
static crm_error_t *hold_older(crm_conn_t *conn, const char *why,
                               apr_pool_t *pool)
{
    batch_t batch = {.conn = conn, .error_pool = pool};

    CRM_ERR(hold(conn, why, NULL, pool));
    apr_pool_create(&batch.pool, pool);
    clear(&batch);
    CRM_ERR(crmd_journal_each(take_line, &batch, pool));
    CRM_ERR(flush(&batch));
    CRM_ERR(hold(conn, why, known_text(pool), pool));
    crmd_logf(CRM_LOG_ERR, "CRM3010: %s: nothing is sent until \"crmapictl"
              " release\"; the journal has %" APR_INT64_T_FMT " message%s of"
              " enrollments that live in it%s", why, batch.taken,
              CRM_TEXT_S(batch.taken), batch.damaged ? apr_psprintf(
                  pool, ", and %" APR_INT64_T_FMT " damaged line%s",
                  batch.damaged, CRM_TEXT_S(batch.damaged)) : "");
    return NULL;
}

/* What the database says of itself; see instance_look(). All in the pool. */
typedef struct look_t {
    const char *id;             /* its name */
    int held;
    const char *why;            /* the reason to hold it; NULL: none */
    const char *marks;          /* its numbers, an array */
} look_t;

/* Fill LOOK by CONN, in POOL. MARK: the mark as an array. */
static crm_error_t *look_at(look_t *look, crm_conn_t *conn, const char *mark,
                            apr_pool_t *pool)
{
    crm_stmt_t name = {"SELECT i.id, i.held_at IS NOT NULL FROM crmapi.instance i",
                       0, NULL};
    crm_stmt_t compare = {"SELECT l.why, l.marks FROM"
                          " crmapi.instance_look($1::bigint[]) l", 1, &mark};
    PGresult *result;

    CRM_ERR(crm_db_query(&result, conn, &name, pool));
    look->id = PQgetvalue(result, 0, 0);
    look->held = *PQgetvalue(result, 0, 1) == 't';
    CRM_ERR(crm_db_query(&result, conn, &compare, pool));
    look->why = crm_db_value(result, 0, 0);
    look->marks = PQgetvalue(result, 0, 1);
    return NULL;
}

/* Open the journal of the database ID, unless it is open; *NEW_P = whether it was not.
 * The mark was then that of another database, or of none. */
static crm_error_t *open_journal(int *new_p, const crmd_config_t *config,
                                 const char *id, apr_pool_t *pool)
{
    crm_error_t *error = NULL;

    pthread_mutex_lock(&lock);
    *new_p = !crmd_journal_is(config->run_dir, id);
    if (*new_p) {
        told = 0;
        error = crmd_journal_open(&known, config->run_dir, id,
                                  config->keep_sent, pool);
    }
    pthread_mutex_unlock(&lock);
    return error;
}

/* Act on LOOK, what the database of CONN says. The caller has the lock. A database
 * that was told of, but is not held, is another copy of the same name: a test system
 * is made anew each night. */
static crm_error_t *settle(look_t *look, crm_conn_t *conn, apr_pool_t *pool)
{
    if (look->why) {
        /* another thread may have held it meanwhile */
        CRM_ERR(look_at(look, conn, known_text(pool), pool));
    }
    if (look->why && !(told && look->held)) {
        CRM_ERR(hold_older(conn, look->why, pool));
    }
    told = look->why != NULL;
    return learn(look->marks, pool);
}

crm_error_t *crmd_mark_check(const crmd_config_t *config, crm_conn_t *conn,
                             apr_pool_t *scratch_pool)
{
    crm_error_t *error;
    look_t look;
    int is_new;

    /* without the lock: others send, and extend leases, while the database hangs */
    CRM_ERR(look_at(&look, conn, crmd_mark_known(scratch_pool), scratch_pool));
    CRM_ERR(open_journal(&is_new, config, look.id, scratch_pool));
    if (is_new) {
        CRM_ERR(look_at(&look, conn, crmd_mark_known(scratch_pool),
                        scratch_pool));
    }
    pthread_mutex_lock(&lock);
    error = settle(&look, conn, scratch_pool);
    pthread_mutex_unlock(&lock);
    return error;
}

crm_error_t *crmd_mark_learn(const char *number, const char *marks,
                             apr_pool_t *scratch_pool)
{
    crm_error_t *error;

    pthread_mutex_lock(&lock);
    crmd_numbers_raise(&known, apr_atoi64(number));
    error = learn(marks, scratch_pool);
    pthread_mutex_unlock(&lock);
    return error;
}

/* ---- the journal --------------------------------------------------------- */

/* Write the line of SENDING in STATE; if SYNC, wait until the disk has it. */
static crm_error_t *add(const crmd_sending_t *sending, const char *state,
                        const char *provider_id, int sync,
                        const crmd_work_t *work)
{
    crm_error_t *error;
    crm_buf_t buf;

    crm_buf_init(&buf, 512, work->pool);
    crm_buf_printf(&buf, "{\"mark\":%" APR_INT64_T_FMT ",\"state\":\"%s\","
                   "\"at\":\"%s\",\"workspace_id\":\"%s\","
                   "\"%s\":\"%s\",\"%s\":\"%s\"", sending->number,
                   state, work->job->now, work->job->workspace_id,
                   sending->group_member, sending->group,
                   sending->part_member, sending->part);
    if (provider_id) {
        crm_buf_puts(&buf, ",\"provider_id\":");
        crm_buf_json_text(&buf, provider_id);
    }
    crm_buf_puts(&buf, "}\n");
    pthread_mutex_lock(&lock);
    crmd_numbers_raise(&known, sending->number);
    error = crmd_journal_add(buf.data, buf.len, sync, work->pool);
    pthread_mutex_unlock(&lock);
    return error;
}

crm_error_t *crmd_mark_begin(const crmd_sending_t *sending,
                             const crmd_work_t *work)
{
    return add(sending, "unknown", NULL, 1, work);
}

void crmd_mark_end(const crmd_sending_t *sending, const char *state,
                   const char *provider_id, const crmd_work_t *work)
{
    crm_error_t *error = add(sending, state, provider_id, 0, work);

    if (error) {
        crmd_logf(CRM_LOG_WARNING, "CRM3011: the journal was not written: %s",
                  error->log ? error->log : error->message);
    }
}
