/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_changes.c: bringing a restored workspace up to date (contract 14.3) */
#include "crmapictl_changes.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_db_copy.h"
#include "crmapictl_dump_line.h"
#include "crmapictl_output.h"

/* All lines of the dump go into temporary tables first. When its checksum was seen
 * to be right, they are compared with what is there. As long as the workspace has no
 * feed, no trigger writes an event. A trigger may change what an UPDATE says
 * (conversation.activated_at); a second one with the same values changes it back. */
#define TRIES 6

/* A table of the dump. */
typedef struct change_t {
    ctl_table_t table;          /* its name and columns */
    const char *keys_make, *keys_in, *rows_make, *rows_in;
    const char *clear, *remove, *put, *lacks;
    int has_keys, has_rows;
} change_t;

/* The tables of a dump, and what was done. */
typedef struct changes_t {
    ctl_restore_t *restore;
    change_t *tables;
    int count;
    apr_int64_t written;
    apr_int64_t deleted;
} changes_t;

/* Set the tables. */
static crm_error_t *find_tables(changes_t *changes)
{
    ctl_t *ctl = changes->restore->ctl;
    PGresult *result;

    CRM_ERR(ctl_query(&result, ctl, "SELECT name, columns, keys_make, keys_in,"
                      " rows_make, rows_in, clear, remove, put, lacks FROM"
                      " crmapi.dump_changes()", 0, NULL));
    changes->count = PQntuples(result);
    changes->tables = apr_pcalloc(ctl->pool, (apr_size_t)changes->count
                                  * sizeof(*changes->tables));
    for (int i = 0; i < changes->count; i++) {
        change_t *change = &changes->tables[i];
        const char **texts[] = {
            &change->table.name, &change->table.columns, &change->keys_make,
            &change->keys_in, &change->rows_make, &change->rows_in,
            &change->clear, &change->remove, &change->put, &change->lacks
        };

        for (int n = 0; n < PQnfields(result); n++) {
            *texts[n] = PQgetvalue(result, i, n);
        }
    }
    return NULL;
}

/* Refuse options that a new workspace has, and one that was not restored from the
 * dump that the changes follow. */
static crm_error_t *check(ctl_restore_t *restore)
{
    const char *values[2] = {restore->from, restore->since};
    ctl_t *ctl = restore->ctl;
    PGresult *result;

    if (*restore->id || restore->slug) {
        return ctl_fault(ctl, "--as and --slug are not for a dump of changes: it"
                         " is for the workspace that was restored under its own"
                         " id");
    }
    if (ctl->distributed) {
        return ctl_fault(ctl, "a distributed database takes no dumps of"
                         " changes");
    }
    CRM_ERR(ctl_query(&result, ctl, "SELECT FROM crmapi.workspace_hold h WHERE"
                      " h.workspace_id = $1::uuid AND left(h.dump, 16) ="
                      " split_part($2::text, '.', 3) FOR UPDATE", 2, values));
    return PQntuples(result) ? NULL
           : ctl_fault(ctl, "%s: there is no held workspace %s here whose last"
                       " dump has the mark %.64s: restore that dump first",
                       restore->path, restore->from, restore->since);
}

/* Send the current line, and before it the id of the workspace if it IS_ROW. */
static crm_error_t *send_line(ctl_restore_t *restore, int is_row)
{
    crm_buf_t *line = &restore->lines.line;

    if (is_row) {
        crm_buf_add(&restore->buf, restore->id, CRM_UUID_LEN);
        crm_buf_putc(&restore->buf, '\t');
    }
    crm_buf_add(&restore->buf, line->data, line->len);
    return restore->buf.len < CTL_RESTORE_BYTES ? NULL
           : ctl_restore_send(restore);
}

/* Return whether the current line ends a part of a table. */
static int is_part(const ctl_restore_t *restore)
{
    const crm_buf_t *line = &restore->lines.line;

    return line->len == strlen(CTL_DUMP_PART)
           && !memcmp(line->data, CTL_DUMP_PART, line->len);
}

/* Send the current line and those that follow, up to the end of the part. */
static crm_error_t *send_part(ctl_restore_t *restore, int is_row)
{
    while (!is_part(restore)) {
        CRM_ERR(send_line(restore, is_row));
        CRM_ERR(ctl_restore_next(restore));
    }
    return ctl_restore_send(restore);
}

/* Read a part of a table: rows if it IS_ROW, else keys. If it has a line, run MAKE,
 * copy all by IN, and set *HAS_P. */
static crm_error_t *copy_part(int *has_p, ctl_restore_t *restore,
                              const char *make, const char *in, int is_row)
{
    apr_int64_t first = restore->lines.number + 1, row;
    ctl_t *ctl = restore->ctl;
    crm_error_t *error;

    CRM_ERR(ctl_restore_next(restore));
    *has_p = !is_part(restore);
    if (!*has_p) {
        return NULL;
    }
    CRM_ERR(crm_db_copy_begin(ctl->conn, apr_pstrcat(ctl->pool, make, "; ", in,
                                                     NULL), ctl->pool));
    error = send_part(restore, is_row);
    if (error) {
        crm_db_copy_abort(ctl->conn);
        return error;
    }
    error = crm_db_copy_end(&row, ctl->conn, ctl->pool);
    return error && error->sqlstate && !strncmp(error->sqlstate, "22", 2)
           ? ctl_refuse(restore, row ? first + row - 1 : first, "%s",
                        error->log)
           : error;
}

/* Read all tables. */
static crm_error_t *copy_tables(changes_t *changes)
{
    ctl_restore_t *restore = changes->restore;

    for (int i = 0; i < changes->count; i++) {
        change_t *change = &changes->tables[i];
        const char *fault;

        CRM_ERR(ctl_restore_next(restore));
        fault = ctl_dump_read_table(NULL, &restore->lines.line, &change->table,
                                    restore->ctl->pool);
        if (fault) {
            return ctl_refuse(restore, restore->lines.number, "%s", fault);
        }
        CRM_ERR(copy_part(&change->has_keys, restore, change->keys_make,
                          change->keys_in, 0));
        CRM_ERR(copy_part(&change->has_rows, restore, change->rows_make,
                          change->rows_in, 1));
    }
    return changes->tables[0].has_keys ? NULL
           : ctl_refuse(restore, restore->lines.number, "a dump has one"
                        " workspace");
}

/* Run SQL, whose only value is the workspace, and set *COUNT_P to the number of rows
 * that it wrote or found. */
static crm_error_t *run(apr_int64_t *count_p, changes_t *changes, const char *sql)
{
    const char *id = changes->restore->id;
    PGresult *result;

    CRM_ERR(ctl_query(&result, changes->restore->ctl, sql, 1, &id));
    *count_p = apr_atoi64(PQcmdTuples(result));
    return NULL;
}

/* Delete the feed, and again after the rows of CHANGE were written or deleted, if
 * these have a trigger that makes it. */
static crm_error_t *delete_feed(changes_t *changes, const change_t *change)
{
    apr_int64_t count;

    return change && strcmp(change->table.name, "webhook_endpoint") ? NULL
           : run(&count, changes, "DELETE FROM crmapi.event_feed WHERE"
                 " workspace_id = $1::uuid");
}

/* Delete the rows of CHANGE that the dump does not have. */
static crm_error_t *remove_from(changes_t *changes, const change_t *change)
{
    apr_int64_t count;

    CRM_ERR(run(&count, changes, change->has_keys ? change->remove
                                                  : change->clear));
    changes->deleted += count;
    return delete_feed(changes, change);
}

/* Delete the rows that the dump does not have, but for the workspace itself: first
 * those that refer to others. */
static crm_error_t *remove_rows(changes_t *changes)
{
    ctl_restore_t *restore = changes->restore;
    apr_array_header_t *names = apr_array_make(restore->ctl->pool,
                                               changes->count,
                                               sizeof(const char *));
    PGresult *filled;

    for (int i = 0; i < changes->count; i++) {
        APR_ARRAY_PUSH(names, const char *) = changes->tables[i].table.name;
    }
    CRM_ERR(ctl_dump_filled(&filled, restore->ctl, restore->id, names));
    for (int i = changes->count - 1; i > 0; i--) {
        CRM_ERR(ctl_dump_has(filled, i) ? remove_from(changes,
                                                      &changes->tables[i])
                                        : NULL);
    }
    return NULL;
}

/* Write the rows of CHANGE, until none differs. */
static crm_error_t *put_rows(changes_t *changes, const change_t *change)
{
    apr_int64_t count = 0;

    for (int i = 0; change->has_rows && i < TRIES && (!i || count); i++) {
        CRM_ERR(run(&count, changes, change->put));
        changes->written += i ? 0 : count;
    }
    if (!count && change->has_keys) {
        CRM_ERR(run(&count, changes, change->lacks));
    }
    return !count ? NULL
           : ctl_fault(changes->restore->ctl, "%s: the rows of the table %s would"
                       " not be those of the dump", changes->restore->path,
                       change->table.name);
}

/* Write the rows of all tables. */
static crm_error_t *put_tables(changes_t *changes)
{
    for (int i = 0; i < changes->count; i++) {
        const change_t *change = &changes->tables[i];

        CRM_ERR(put_rows(changes, change));
        CRM_ERR(delete_feed(changes, change));
    }
    return NULL;
}

/* Print what was done. */
static crm_error_t *print(changes_t *changes)
{
    static const ctl_column_t columns[] = {
        {"id", 's'}, {"slug", 's'}, {"written", 'n'}, {"deleted", 'n'},
        {"held_reason", 's'}, {NULL, 0}
    };
    ctl_t *ctl = changes->restore->ctl;
    const char *values[3] = {
        changes->restore->id, apr_off_t_toa(ctl->pool, changes->written),
        apr_off_t_toa(ctl->pool, changes->deleted)
    };
    PGresult *result;

    CRM_ERR(ctl_query(&result, ctl, "SELECT w.id, w.slug, $2::bigint,"
                      " $3::bigint, h.reason FROM crmapi.workspace w JOIN"
                      " crmapi.workspace_hold h ON h.workspace_id = w.id"
                      " WHERE w.id = $1::uuid", 3, values));
    ctl_print(ctl, result, columns, 1);
    return NULL;
}

/* Write and delete rows. What the database refuses is told with the dump. */
static crm_error_t *change_rows(changes_t *changes)
{
    ctl_restore_t *restore = changes->restore;
    crm_error_t *error = delete_feed(changes, NULL);

    error = error ? error : remove_rows(changes);
    error = error ? error : put_tables(changes);
    return error && error->sqlstate && !strncmp(error->sqlstate, "23", 2)
           ? ctl_fault(restore->ctl, "%s: %s", restore->path, error->log) : error;
}

crm_error_t *ctl_restore_changes(ctl_restore_t *restore)
{
    changes_t changes = {.restore = restore};

    CRM_ERR(crm_db_exec(restore->ctl->conn, "BEGIN; SET CONSTRAINTS ALL"
                        " IMMEDIATE", restore->ctl->pool));
    CRM_ERR(check(restore));
    strcpy(restore->id, restore->from);
    CRM_ERR(ctl_dump_settings(restore->ctl, restore->id));
    CRM_ERR(find_tables(&changes));
    CRM_ERR(copy_tables(&changes));
    CRM_ERR(ctl_restore_end(restore));
    CRM_ERR(change_rows(&changes));
    CRM_ERR(ctl_restore_done(restore));
    return print(&changes);
}
