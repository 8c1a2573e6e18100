/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_restore.c: making a workspace from a dump (contract 14.2) */
#include "crmapictl_restore.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_db_copy.h"
#include "crm_digest.h"
#include "crm_sql.h"
#include "crmapictl_audit.h"
#include "crmapictl_changes.h"
#include "crmapictl_dump_line.h"
#include "crmapictl_lines.h"
#include "crmapictl_output.h"
#include "crmapictl_person.h"
#include "crmapictl_settle.h"
#include "crmapictl_workspace.h"

/* A restore is one transaction. A dump may be forged, so its names are compared
 * with the catalog, and its rows are only values of COPY, to which this file
 * adds the workspace's id. When all rows are written, they are read again as a
 * dump reads them, and must be the rows of the dump: no trigger, default or
 * type may have changed them. */

/* Number of slugs to try if the slug of the dump is taken. */
#define SLUG_TRIES 50

#define REASON "it was restored from a dump"

/* SQL for a distributed database: let the keys in TABLE lead to the workspace. */
#define KEY_HOME(table) \
    CRM_SQL_CITUS "INSERT INTO crmapi.key_home (key_hash, workspace_id)" \
    " SELECT k.key_hash, k.workspace_id FROM crmapi." table " k" \
    " WHERE k.workspace_id = $1::uuid"

crm_error_t *ctl_refuse(ctl_restore_t *restore, apr_int64_t number,
                        const char *format, ...)
{
    apr_pool_t *pool = restore->ctl->pool;
    const char *rule;
    va_list args;

    va_start(args, format);
    rule = apr_pvsprintf(pool, format, args);
    va_end(args);
    return ctl_fault(restore->ctl, "%s: line %" APR_INT64_T_FMT ": %s",
                     restore->path, number, rule);
}

/* ---- reading lines ---- */

/* Read the next line. */
static crm_error_t *next(ctl_restore_t *restore)
{
    ctl_lines_t *lines = &restore->lines;
    const char *fault = ctl_lines_next(lines);

    if (fault) {
        return ctl_refuse(restore, lines->number, "%s", fault);
    }
    return ctl_lines_whole(lines) ? NULL
           : ctl_refuse(restore, lines->number, "the dump ends here: it is not"
                        " complete");
}

crm_error_t *ctl_restore_next(ctl_restore_t *restore)
{
    CRM_ERR(next(restore));
    crm_digest_add(restore->whole, restore->lines.line.data,
                   restore->lines.line.len);
    return NULL;
}

/* Read the first line, and set FROM. */
static crm_error_t *read_head(ctl_restore_t *restore)
{
    const char *fault;

    CRM_ERR(ctl_restore_next(restore));
    fault = ctl_dump_read_head(restore->from, &restore->since,
                               &restore->lines.line, restore->ctl->pool);
    return fault ? ctl_refuse(restore, restore->lines.number, "%s", fault)
           : NULL;
}

/* Read the line of the table I. */
static crm_error_t *read_table(ctl_restore_t *restore, int i, apr_pool_t *pool)
{
    const char *fault;

    CRM_ERR(ctl_restore_next(restore));
    fault = ctl_dump_read_table(&restore->rows[i], &restore->lines.line,
                                &restore->tables[i], pool);
    if (!fault && !i && restore->rows[i] != 1) {
        fault = "a dump has one workspace";
    }
    return fault ? ctl_refuse(restore, restore->lines.number, "%s", fault)
           : NULL;
}

crm_error_t *ctl_restore_end(ctl_restore_t *restore)
{
    ctl_lines_t *lines = &restore->lines;
    const char *fault;

    crm_digest_end(restore->sum, restore->whole);
    CRM_ERR(next(restore));
    fault = ctl_dump_read_end(&lines->line, restore->sum, restore->ctl->pool);
    if (!fault) {
        fault = ctl_lines_next(lines);
    }
    if (!fault && lines->line.len) {
        fault = "something follows the end of the dump";
    }
    return fault ? ctl_refuse(restore, lines->number, "%s", fault) : NULL;
}

/* ---- the workspace itself ---- */

/* Set *TAKEN_P to whether a workspace has SLUG. */
static crm_error_t *is_taken(int *taken_p, ctl_restore_t *restore,
                             const char *slug)
{
    PGresult *result;

    CRM_ERR(ctl_query(&result, restore->ctl, "SELECT FROM crmapi.workspace"
                      " WHERE slug = $1::text", 1, &slug));
    *taken_p = PQntuples(result) > 0;
    return NULL;
}

/* Set *CHOSEN_P to the slug of the new workspace: --slug, or else SLUG, that of
 * the dump. If it is taken, and the workspace gets another id, add a number to
 * it. */
static crm_error_t *choose_slug(const char **chosen_p, ctl_restore_t *restore,
                                const char *slug)
{
    const char *chosen = restore->slug ? restore->slug : slug;
    int many = !restore->slug && strcmp(restore->from, restore->id);
    int taken;

    CRM_ERR(is_taken(&taken, restore, chosen));
    for (int try = 2; taken && many && try <= SLUG_TRIES; try++) {
        chosen = apr_psprintf(restore->ctl->pool, "%.60s-%d", slug, try);
        CRM_ERR(is_taken(&taken, restore, chosen));
    }
    *chosen_p = chosen;
    return !taken ? NULL
           : ctl_refuse(restore, restore->lines.number, "there is a workspace"
                        " with the slug \"%s\" already: give another one by"
                        " --slug", chosen);
}

/* Put the slug of the new workspace into LINE, the row of the table workspace. It
 * is the second column. */
static crm_error_t *replace_slug(ctl_restore_t *restore, crm_buf_t *line)
{
    static const char characters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    apr_pool_t *pool = restore->ctl->pool;
    const char *start = memchr(line->data, '\t', line->len);
    const char *end = line->data + line->len, *stop, *old, *chosen, *rest;

    start = start ? start + 1 : end;
    stop = memchr(start, '\t', (size_t)(end - start));
    old = apr_pstrmemdup(pool, start, (apr_size_t)((stop ? stop : end)
                                                   - start));
    if (!stop || !*old || strlen(old) > 63
        || strspn(old, characters) != strlen(old)) {
        return ctl_refuse(restore, restore->lines.number, "a workspace cannot"
                          " have this slug");
    }
    CRM_ERR(choose_slug(&chosen, restore, old));
    rest = apr_pstrmemdup(pool, stop, (apr_size_t)(end - stop));
    line->len = (apr_size_t)(start - line->data);
    crm_buf_puts(line, chosen);
    crm_buf_puts(line, rest);
    return NULL;
}

/* ---- rows ---- */

/* Replace the workspace's id in LINE, where it is the member "workspace_id" of an
 * object in JSON. */
static void replace_member(const ctl_restore_t *restore, crm_buf_t *line)
{
    static const char name[] = "\"workspace_id\"";
    char *end = line->data + line->len, *p = line->data;

    while ((p = memmem(p, (size_t)(end - p), name, sizeof(name) - 1))) {
        p += sizeof(name) - 1;
        while (p < end && (*p == ' ' || *p == ':')) {
            p++;
        }
        if (end - p > CRM_UUID_LEN + 1 && *p == '"'
            && !memcmp(p + 1, restore->from, CRM_UUID_LEN)) {
            memcpy(p + 1, restore->id, CRM_UUID_LEN);
        }
    }
}

/* Return whether the rows of TABLE contain responses of the API or events. */
static int has_answers(const ctl_table_t *table)
{
    return !strcmp(table->name, "event")
           || !strcmp(table->name, "idempotent_answer");
}

crm_error_t *ctl_restore_send(ctl_restore_t *restore)
{
    apr_size_t len = restore->buf.len;

    restore->buf.len = 0;
    return crm_db_copy_put(restore->ctl->conn, restore->buf.data, len,
                           restore->ctl->pool);
}

/* Add the current line to the rows of TABLE. */
static crm_error_t *add_row(ctl_restore_t *restore, const ctl_table_t *table)
{
    crm_buf_t *line = &restore->lines.line;

    if (strcmp(restore->from, restore->id) && has_answers(table)) {
        replace_member(restore, line);
    }
    crm_digest_add(restore->part, line->data, line->len);
    crm_buf_add(&restore->buf, restore->id, CRM_UUID_LEN);
    crm_buf_putc(&restore->buf, '\t');
    crm_buf_add(&restore->buf, line->data, line->len);
    return restore->buf.len < CTL_RESTORE_BYTES ? NULL
           : ctl_restore_send(restore);
}

/* Return the error about the rows of TABLE, whose first row is the line FIRST.
 * ERROR is the database's. It concerns the row ROW; 0: unknown. */
static crm_error_t *row_error(ctl_restore_t *restore, const ctl_table_t *table,
                              apr_int64_t first, apr_int64_t row,
                              crm_error_t *error)
{
    apr_int64_t number = row ? first + row - 1 : first;

    if (!crm_error_refuses(error)) {
        return error;
    }
    if (table->shared && crm_error_is(error, "23505")) {
        return ctl_refuse(restore, number, "another workspace of this database"
                          " has this key (table %s). With --as no keys are"
                          " restored", table->name);
    }
    if (table == restore->tables && crm_error_is(error, "23505")) {
        /* there was none when we looked: begin(), choose_slug() */
        return ctl_refuse(restore, number, "another workspace with this id or"
                          " slug was made at the same time");
    }
    if (table == restore->tables && crm_error_is(error, "23503")) {
        return ctl_refuse(restore, number, "this database does not have the plan"
                          " of the workspace");
    }
    return ctl_refuse(restore, number, "table %s: %s", table->name, error->log);
}

/* Copy the rows of the table I, whose line was read. The first table has one
 * row, the workspace; it may get another slug. */
static crm_error_t *copy_rows(ctl_restore_t *restore, int i)
{
    const ctl_table_t *table = &restore->tables[i];
    apr_int64_t first = restore->lines.number + 1, row;
    ctl_t *ctl = restore->ctl;
    crm_error_t *error = NULL;

    if (!i) {
        CRM_ERR(ctl_restore_next(restore));
        CRM_ERR(replace_slug(restore, &restore->lines.line));
    }
    CRM_ERR(crm_db_copy_begin(ctl->conn, table->copy_in, ctl->pool));
    for (row = 0; !error && row < restore->rows[i]; row++) {
        error = i ? ctl_restore_next(restore) : NULL;
        if (!error) {
            error = add_row(restore, table);
        }
    }
    if (!error) {
        error = ctl_restore_send(restore);
    }
    if (error) {
        crm_db_copy_abort(ctl->conn);
        return error;
    }
    error = crm_db_copy_end(&row, ctl->conn, ctl->pool);
    if (error) {
        return row_error(restore, table, first, row, error);
    }
    return row == restore->rows[i] ? NULL
           : ctl_refuse(restore, first, "these are not the %" APR_INT64_T_FMT
                        " rows of the table %s", restore->rows[i], table->name);
}

/* Skip the rows of the table I, whose line was read. */
static crm_error_t *skip_rows(ctl_restore_t *restore, int i)
{
    for (apr_int64_t row = 0; row < restore->rows[i]; row++) {
        CRM_ERR(ctl_restore_next(restore));
    }
    restore->left_out += restore->rows[i];
    restore->rows[i] = 0;
    return NULL;
}

/* ---- the run ---- */

/* Begin the transaction, and refuse a workspace that exists. Constraint
 * triggers run after each table, not at the end: the trigger of enrollments
 * would write events if it found an event feed. The pending lists are larger
 * for many rows at once. */
static crm_error_t *begin(ctl_restore_t *restore)
{
    ctl_t *ctl = restore->ctl;
    const char *id = restore->id;
    PGresult *result;

    CRM_ERR(crm_db_exec(ctl->conn, "BEGIN; SET CONSTRAINTS ALL IMMEDIATE;"
                        " SET LOCAL gin_pending_list_limit = '4MB'",
                        ctl->pool));
    /* triggers on its server ask for it */
    CRM_ERR(ctl_exec(ctl, apr_pstrcat(ctl->pool, CRM_SQL_CITUS "SET LOCAL"
                     " citus.propagate_set_commands = 'local';"
                     " SET LOCAL crmapi.dump_workspace = '", id, "'", NULL)));
    CRM_ERR(ctl_query(&result, ctl, "SELECT FROM crmapi.workspace WHERE id ="
                      " $1::uuid", 1, &id));
    if (PQntuples(result)) {
        return ctl_fault(ctl, "there is a workspace with the id %s already:"
                         " delete it, or give another id by --as", id);
    }
    CRM_ERR(ctl_dump_begin(&restore->tables, &restore->count, ctl, id));
    restore->sums = apr_pcalloc(ctl->pool, (apr_size_t)restore->count
                                * sizeof(*restore->sums));
    restore->rows = apr_pcalloc(ctl->pool, (apr_size_t)restore->count
                                * sizeof(*restore->rows));
    return NULL;
}

/* Undo what triggers added after the rows of the table I. After the workspace's
 * row, hold it. In a distributed database, add what leads to the workspace. */
static crm_error_t *after_table(ctl_restore_t *restore, int i)
{
    static const struct {
        const char *table, *sql;
    } steps[] = {
        {"workspace", "SELECT crmapi.hold($1::uuid, '" REASON "')"},
        {"workspace", "DELETE FROM crmapi.link_key WHERE workspace_id ="
         " $1::uuid"},
        {"webhook_endpoint", "DELETE FROM crmapi.event_feed"
         " WHERE workspace_id = $1::uuid"},
        {"workspace", CRM_SQL_CITUS "INSERT INTO crmapi.slug_home"
         " (slug, workspace_id) SELECT w.slug, w.id FROM crmapi.workspace w"
         " WHERE w.id = $1::uuid"},
        {"api_key", KEY_HOME("api_key")},
        {"intake_key", KEY_HOME("intake_key")},
        {"event_feed", CRM_SQL_CITUS "DELETE FROM crmapi.event_home"
         " WHERE workspace_id = $1::uuid"},
    };
    const ctl_table_t *table = &restore->tables[i];
    const char *id = restore->id;
    crm_error_t *error = NULL;
    PGresult *result;

    for (size_t n = 0; !error && n < CRM_NELTS(steps); n++) {
        if (!strcmp(steps[n].table, table->name)) {
            error = ctl_query(&result, restore->ctl, steps[n].sql, 1, &id);
        }
    }
    return !error ? NULL
           : row_error(restore, table, restore->lines.number
                       - restore->rows[i] + 1, 0, error);
}

/* Read and write all tables. With --as, leave out the keys. */
static crm_error_t *restore_tables(ctl_restore_t *restore)
{
    int other = strcmp(restore->from, restore->id) != 0;
    apr_pool_t *pool;

    apr_pool_create(&pool, restore->ctl->pool);
    for (int i = 0; i < restore->count; i++) {
        const ctl_table_t *table = &restore->tables[i];

        CRM_ERR(read_table(restore, i, pool));
        CRM_ERR(other && table->shared ? skip_rows(restore, i)
                : restore->rows[i] ? copy_rows(restore, i) : NULL);
        crm_digest_end(restore->sums[i], restore->part);
        CRM_ERR(after_table(restore, i));
        apr_pool_clear(pool);
    }
    return NULL;
}

/* A crm_db_line_t: add a row to the digest at BATON. */
static crm_error_t *sum_row(void *baton, const char *line, apr_size_t len)
{
    crm_digest_add(baton, line, len);
    return NULL;
}

/* Compare the rows of the database with those that were sent. */
static crm_error_t *verify(ctl_restore_t *restore)
{
    ctl_t *ctl = restore->ctl;
    char sum[CRM_DIGEST_SIZE];
    PGresult *filled;

    CRM_ERR(ctl_dump_filled(&filled, ctl, restore->id,
                            ctl_dump_names(restore->tables, restore->count,
                                           ctl->pool)));
    for (int i = 0; i < restore->count; i++) {
        if (ctl_dump_has(filled, i)) {
            CRM_ERR(crm_db_copy_out(ctl->conn, restore->tables[i].copy_out,
                                    sum_row, restore->part, ctl->pool));
        }
        crm_digest_end(sum, restore->part);
        if (strcmp(sum, restore->sums[i])) {
            return ctl_fault(ctl, "%s: the rows of the table %s would not be"
                             " those of the dump", restore->path,
                             restore->tables[i].name);
        }
    }
    return NULL;
}

crm_error_t *ctl_restore_done(ctl_restore_t *restore)
{
    const char *values[2] = {restore->id, restore->sum};
    ctl_t *ctl = restore->ctl;
    apr_int64_t erased;
    PGresult *result;

    CRM_ERR(ctl_query(&result, ctl, "SELECT crmapi.restore_numbers($1::uuid)",
                      1, values));
    CRM_ERR(ctl_erase_again(&erased, ctl, restore->id, restore->from));
    CRM_ERR(ctl_query(&result, ctl, "UPDATE crmapi.workspace_hold SET dump ="
                      " $2::text WHERE workspace_id = $1::uuid", 2, values));
    /* what was restored stays as it was: the row is none of the workspace */
    ctl_audit_object(ctl, NULL, restore->id);
    CRM_ERR(ctl_audit(ctl));
    return crm_db_exec(ctl->conn, "COMMIT", ctl->pool);
}

/* Print what was restored. */
static crm_error_t *print(ctl_restore_t *restore)
{
    static const ctl_column_t columns[] = {
        {"id", 's'}, {"slug", 's'}, {"rows", 'n'}, {"keys_left_out", 'n'},
        {"held_reason", 's'}, {NULL, 0}
    };
    apr_pool_t *pool = restore->ctl->pool;
    apr_int64_t rows = 0;
    const char *values[3] = {restore->id, NULL,
                             apr_off_t_toa(pool, restore->left_out)};
    PGresult *result;

    for (int i = 0; i < restore->count; i++) {
        rows += restore->rows[i];
    }
    values[1] = apr_off_t_toa(pool, rows);
    CRM_ERR(ctl_query(&result, restore->ctl, "SELECT w.id, w.slug, $2::bigint,"
                      " $3::bigint, h.reason FROM crmapi.workspace w LEFT JOIN"
                      " crmapi.workspace_hold h ON h.workspace_id = w.id"
                      " WHERE w.id = $1::uuid", 3, values));
    ctl_print(restore->ctl, result, columns, 1);
    return NULL;
}

/* Restore the workspace from the lines. */
static crm_error_t *restore_all(ctl_restore_t *restore)
{
    ctl_t *ctl = restore->ctl;

    CRM_ERR(read_head(restore));
    if (*restore->since) {
        return ctl_restore_changes(restore);
    }
    if (!*restore->id) {
        strcpy(restore->id, restore->from);
    }
    CRM_ERR(begin(restore));
    CRM_ERR(restore_tables(restore));
    CRM_ERR(ctl_restore_end(restore));
    CRM_ERR(verify(restore));
    CRM_ERR(ctl_restore_done(restore));
    for (int i = 0; i < restore->count; i++) {
        if (restore->rows[i]) {
            ctl_settle(ctl->conn, restore->tables[i].name, ctl->pool);
        }
    }
    return print(restore);
}

/* Set ID to the value of --as; it stays empty without it. */
static crm_error_t *read_as(ctl_restore_t *restore)
{
    const char *as = restore->ctl->options[CTL_AS];

    if (as && !strcmp(as, "new")) {
        crm_uuid_v7(restore->id);
    }
    else if (as && !crm_uuid_parse(restore->id, as, strlen(as))) {
        return ctl_misuse(restore->ctl, "--as must be a UUID, or new");
    }
    return NULL;
}

crm_error_t *ctl_workspace_restore(ctl_t *ctl)
{
    ctl_restore_t *restore = apr_pcalloc(ctl->pool, sizeof(*restore));
    crm_error_t *error;
    int fd;

    restore->ctl = ctl;
    restore->slug = ctl->options[CTL_SLUG];
    CRM_ERR(read_as(restore));
    if (restore->slug) {
        CRM_ERR(ctl_check_slug(ctl, restore->slug));
    }
    CRM_ERR(ctl_open(&fd, &restore->path, ctl, ctl->args[0]));
    ctl_lines_init(&restore->lines, fd, CTL_LINES_MAX, ctl->pool);
    crm_buf_init(&restore->buf, CTL_RESTORE_BYTES, ctl->pool);
    restore->whole = crm_digest_create(ctl->pool);
    restore->part = crm_digest_create(ctl->pool);
    error = restore_all(restore);
    crm_db_rollback(ctl->conn);
    ctl_close(fd);
    return error;
}
