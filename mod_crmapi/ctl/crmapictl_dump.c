/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_dump.c: writing all of a workspace as a stream (contract 14.2) */
#include "crmapictl_dump.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apr_strings.h"

#include "crm_array.h"
#include "crm_buf.h"
#include "crm_db_copy.h"
#include "crm_digest.h"
#include "crm_file.h"
#include "crm_schema.h"
#include "crmapictl_hold.h"
#include "crmapictl_output.h"
#include "crmapictl_workspace.h"

/* A dump that is being written. */
typedef struct dump_t {
    ctl_t *ctl;
    FILE *out;
    crm_digest_t *digest;
    apr_int64_t rows;
    apr_int64_t bytes;
    PGresult *changes;          /* of dump_changes(), if they were asked for */
    char sha256[CRM_DIGEST_SIZE];
} dump_t;

crm_error_t *ctl_dump_settings(ctl_t *ctl, const char *id)
{
    PGresult *result;

    /* The values of a row must not depend on the settings of a login. */
    return ctl_query(&result, ctl, "SELECT set_config(n.name, n.value, true)"
                     " FROM (VALUES ('crmapi.dump_workspace', $1::text),"
                     " ('bytea_output', 'hex'), ('extra_float_digits', '1'),"
                     " ('intervalstyle', 'postgres')) n(name, value)", 1, &id);
}

crm_error_t *ctl_dump_begin(const ctl_table_t **tables_p, int *count_p,
                            ctl_t *ctl, const char *id)
{
    ctl_table_t *tables;
    PGresult *result;

    CRM_ERR(ctl_dump_settings(ctl, id));
    CRM_ERR(ctl_query(&result, ctl, "SELECT name, columns, copy_out, copy_in,"
                      " shared FROM crmapi.dump_table()", 0, NULL));
    *count_p = PQntuples(result);
    tables = apr_pcalloc(ctl->pool, (apr_size_t)*count_p * sizeof(*tables));
    for (int i = 0; i < *count_p; i++) {
        tables[i].name = PQgetvalue(result, i, 0);
        tables[i].columns = PQgetvalue(result, i, 1);
        tables[i].copy_out = PQgetvalue(result, i, 2);
        tables[i].copy_in = PQgetvalue(result, i, 3);
        tables[i].shared = *PQgetvalue(result, i, 4) == 't';
    }
    *tables_p = tables;
    return NULL;
}

/* The column of TABLE that has the workspace. */
static const char *owner_of(const char *table)
{
    return strcmp(table, "workspace") ? "workspace_id" : "id";
}

apr_array_header_t *ctl_dump_names(const ctl_table_t *tables, int count,
                                   apr_pool_t *pool)
{
    apr_array_header_t *names = apr_array_make(pool, count,
                                               sizeof(const char *));

    for (int i = 0; i < count; i++) {
        APR_ARRAY_PUSH(names, const char *) = tables[i].name;
    }
    return names;
}

crm_error_t *ctl_dump_filled(PGresult **filled_p, ctl_t *ctl, const char *id,
                             const apr_array_header_t *names)
{
    crm_buf_t sql;

    *filled_p = NULL;
    if (ctl->distributed) {
        return NULL;            /* each is on a server of its own */
    }
    crm_buf_init(&sql, 8192, ctl->pool);
    for (int i = 0; i < names->nelts; i++) {
        const char *name = APR_ARRAY_IDX(names, i, const char *);

        crm_buf_printf(&sql, "%s EXISTS (SELECT FROM crmapi.%s WHERE %s ="
                       " $1::uuid)", i ? "," : "SELECT", name, owner_of(name));
    }
    crm_buf_putc(&sql, '\0');
    return ctl_query(filled_p, ctl, sql.data, 1, &id);
}

int ctl_dump_has(const PGresult *filled, int i)
{
    return !filled || *PQgetvalue(filled, 0, i) == 't';
}

/* A crm_db_line_t: write the LEN bytes at LINE. BATON is a dump_t. */
static crm_error_t *write_line(void *baton, const char *line, apr_size_t len)
{
    dump_t *dump = baton;

    if (fwrite(line, 1, len, dump->out) != len) {
        return ctl_fault(dump->ctl, "cannot write: %s", strerror(errno));
    }
    crm_digest_add(dump->digest, line, len);
    dump->bytes += (apr_int64_t)len;
    return NULL;
}

/* Write the string TEXT. */
static crm_error_t *write_text(dump_t *dump, const char *text)
{
    return write_line(dump, text, strlen(text));
}

/* Write the line of TABLE, which has ROWS rows. */
static crm_error_t *write_table(dump_t *dump, const ctl_table_t *table,
                                const char *rows)
{
    dump->rows += apr_atoi64(rows);
    return write_text(dump, apr_psprintf(dump->ctl->pool, "{\"table\":\"%s\","
                                         "\"columns\":%s,\"rows\":%s}\n",
                                         table->name, table->columns, rows));
}

/* Count the rows of TABLE, and write it. Its names come from the catalog. */
static crm_error_t *dump_table(dump_t *dump, const ctl_table_t *table,
                               const char *id)
{
    ctl_t *ctl = dump->ctl;
    PGresult *result;

    CRM_ERR(ctl_query(&result, ctl, apr_psprintf(ctl->pool, "SELECT count(*)"
                      " FROM crmapi.%s WHERE %s = $1::uuid", table->name,
                      owner_of(table->name)), 1, &id));
    CRM_ERR(write_table(dump, table, PQgetvalue(result, 0, 0)));
    return crm_db_copy_out(ctl->conn, table->copy_out, write_line, dump,
                           ctl->pool);
}

/* Write all tables of the workspace ID. */
static crm_error_t *dump_tables(dump_t *dump, const char *id)
{
    const ctl_table_t *tables;
    ctl_t *ctl = dump->ctl;
    PGresult *filled;
    int count;

    CRM_ERR(ctl_dump_begin(&tables, &count, ctl, id));
    CRM_ERR(ctl_dump_filled(&filled, ctl, id,
                            ctl_dump_names(tables, count, ctl->pool)));
    if (!ctl_dump_has(filled, 0)) {
        return ctl_no_workspace(ctl, id);       /* the first table has it */
    }
    for (int i = 0; i < count; i++) {
        CRM_ERR(ctl_dump_has(filled, i) ? dump_table(dump, &tables[i], id)
                : write_table(dump, &tables[i], "0"));
    }
    return NULL;
}

/* A crm_db_line_t: count and write a row. */
static crm_error_t *write_row(void *baton, const char *line, apr_size_t len)
{
    ((dump_t *)baton)->rows++;
    return write_line(baton, line, len);
}

/* Write what a COPY, SQL, reads if it IS_FILLED, line by line by EACH, and the line
 * that ends it. */
static crm_error_t *write_part(dump_t *dump, int is_filled, const char *sql,
                               crm_db_line_t each)
{
    if (is_filled) {
        CRM_ERR(crm_db_copy_out(dump->ctl->conn, sql, each, dump,
                                dump->ctl->pool));
    }
    return write_text(dump, CTL_DUMP_PART);
}

/* Check that there is a workspace ID, and that --since is a mark. In a transaction
 * the changes are those since then. */
static crm_error_t *check_since(ctl_t *ctl, const char *id)
{
    const char *values[2] = {ctl->options[CTL_SINCE], id};
    PGresult *result;

    if (ctl->distributed) {
        return ctl_fault(ctl, "a distributed database has no dumps of changes");
    }
    CRM_ERR(ctl_query(&result, ctl, "SELECT crmapi.dump_since($1::text), EXISTS"
                      " (SELECT FROM crmapi.workspace w WHERE w.id = $2::uuid)",
                      2, values));
    if (*PQgetvalue(result, 0, 1) != 't') {
        return ctl_no_workspace(ctl, id);
    }
    return *PQgetvalue(result, 0, 0) == 't' ? NULL
           : ctl_fault(ctl, "--since must be a mark that \"workspace dump"
                       " --output\" has printed for this cluster, less than 2^30"
                       " transactions ago");
}

/* Ask for what a dump of changes has. */
static crm_error_t *find_changes(dump_t *dump)
{
    return dump->changes ? NULL
           : ctl_query(&dump->changes, dump->ctl, "SELECT name, columns,"
                       " keys_out, rows_out FROM crmapi.dump_changes()", 0,
                       NULL);
}

/* Return the names of the tables of a dump of changes. */
static apr_array_header_t *changed_names(const dump_t *dump)
{
    int count = PQntuples(dump->changes);
    apr_array_header_t *names = apr_array_make(dump->ctl->pool, count,
                                               sizeof(const char *));

    for (int i = 0; i < count; i++) {
        APR_ARRAY_PUSH(names, const char *) = PQgetvalue(dump->changes, i, 0);
    }
    return names;
}

/* Write what has changed in the workspace ID since the dump with the mark
 * --since. */
static crm_error_t *dump_changes(dump_t *dump, const char *id)
{
    ctl_t *ctl = dump->ctl;
    PGresult *filled;

    CRM_ERR(ctl_dump_settings(ctl, id));
    CRM_ERR(check_since(ctl, id));
    CRM_ERR(find_changes(dump));
    CRM_ERR(ctl_dump_filled(&filled, ctl, id, changed_names(dump)));
    for (int i = 0; i < PQntuples(dump->changes); i++) {
        int is_filled = ctl_dump_has(filled, i);

        CRM_ERR(write_text(dump, apr_psprintf(
            ctl->pool, "{\"table\":\"%s\",\"columns\":%s}\n",
            PQgetvalue(dump->changes, i, 0), PQgetvalue(dump->changes, i, 1))));
        CRM_ERR(write_part(dump, is_filled, PQgetvalue(dump->changes, i, 2),
                           write_line));
        CRM_ERR(write_part(dump, is_filled, PQgetvalue(dump->changes, i, 3),
                           write_row));
    }
    return NULL;
}

/* Write the first line of a dump of the workspace ID. */
static crm_error_t *write_head(dump_t *dump, const char *id)
{
    const char *since = dump->ctl->options[CTL_SINCE];
    apr_pool_t *pool = dump->ctl->pool;
    crm_schema_t schema;

    CRM_ERR(crm_schema_read(&schema, dump->ctl->conn, pool));
    return write_text(dump, apr_psprintf(pool, "{\"dump\":\"" CTL_DUMP_NAME
                      "\",\"format\":%d,\"schema\":%d,\"workspace\":\"%s\""
                      "%s%s%s}\n", CTL_DUMP_FORMAT, schema.number, id,
                      since ? ",\"since\":\"" : "", since ? since : "",
                      since ? "\"" : ""));
}

/* Give what was written to the system. */
static crm_error_t *flush(dump_t *dump)
{
    return fflush(dump->out) ? ctl_fault(dump->ctl, "cannot write: %s",
                                         strerror(errno)) : NULL;
}

/* Close the API of the workspace ID, as --api says. Its clients wait from then on, so
 * what needs no snapshot is done before, and who restores the dump reads its first
 * line meanwhile. */
static crm_error_t *close_api(dump_t *dump, const char *id)
{
    CRM_ERR(write_head(dump, id));
    CRM_ERR(flush(dump));
    if (dump->ctl->options[CTL_SINCE]) {
        CRM_ERR(find_changes(dump));
    }
    return ctl_hold_close(dump->ctl, id);
}

/* Write the workspace ID, or its changes, from one snapshot. No writer waits for
 * it. */
static crm_error_t *dump_all(dump_t *dump, const char *id)
{
    ctl_t *ctl = dump->ctl;
    int closes = ctl->options[CTL_API] != NULL;

    if (closes) {
        CRM_ERR(close_api(dump, id));
    }
    CRM_ERR(crm_db_exec(ctl->conn, "BEGIN ISOLATION LEVEL REPEATABLE READ READ"
                        " ONLY", ctl->pool));
    CRM_ERR(closes ? NULL : write_head(dump, id));
    CRM_ERR(ctl->options[CTL_SINCE] ? dump_changes(dump, id)
                                    : dump_tables(dump, id));
    crm_digest_end(dump->sha256, dump->digest);
    CRM_ERR(write_text(dump, apr_psprintf(ctl->pool, "{\"sha256\":\"%s\"}\n",
                                          dump->sha256)));
    return flush(dump);
}

/* Print what was written to PATH. now() is the time of the snapshot. */
static crm_error_t *print(dump_t *dump, const char *id, const char *path)
{
    static const ctl_column_t columns[] = {
        {"workspace", 's'}, {"file", 's'}, {"rows", 'n'}, {"bytes", 'n'},
        {"sha256", 's'}, {"taken_at", 't'}, {"mark", 's'}, {NULL, 0}
    };
    apr_pool_t *pool = dump->ctl->pool;
    const char *values[5] = {id, path, apr_off_t_toa(pool, dump->rows),
                             apr_off_t_toa(pool, dump->bytes), dump->sha256};
    PGresult *result;

    CRM_ERR(ctl_query(&result, dump->ctl, "SELECT $1::text, $2::text,"
                      " $3::bigint, $4::bigint, $5::text, now(),"
                      " crmapi.dump_mark($5::text)", 5, values));
    ctl_print(dump->ctl, result, columns, 1);
    return NULL;
}

/* Return the folder of PATH, in POOL. */
static const char *folder_of(const char *path, apr_pool_t *pool)
{
    const char *slash = strrchr(path, '/');

    return !slash ? "." : slash == path ? "/"
           : apr_pstrmemdup(pool, path, (apr_size_t)(slash - path));
}

/* The file that is being written; NULL: none. */
static const char *volatile unfinished;

/* End by the signal NUMBER, without what is not complete. */
static void give_up(int number)
{
    if (unfinished) {
        unlink(unfinished);
    }
    signal(number, SIG_DFL);
    raise(number);
}

/* Return an error if PATH is there and is no file: it would be replaced by one, as
 * would be a device. */
static crm_error_t *check_path(ctl_t *ctl, const char *path)
{
    struct stat found;

    return stat(path, &found) || S_ISREG(found.st_mode) ? NULL
           : ctl_fault(ctl, "cannot write %s: it is not a regular file", path);
}

/* Write the workspace ID to PATH; if that fails, PATH stays as it was. The file
 * has secrets, so only its owner may read it. */
static crm_error_t *dump_to_file(dump_t *dump, const char *id,
                                 const char *path)
{
    static const int ends[] = {SIGHUP, SIGINT, SIGTERM};
    ctl_t *ctl = dump->ctl;
    char *part = apr_pstrcat(ctl->pool, path, ".XXXXXX", NULL);
    int fd = mkstemp(part);     /* mode 0600 */
    crm_error_t *error;

    if (fd < 0 || !(dump->out = fdopen(fd, "w"))) {
        return ctl_fault(ctl, "cannot write %s: %s", part, strerror(errno));
    }
    unfinished = part;
    for (size_t i = 0; i < CRM_NELTS(ends); i++) {
        if (signal(ends[i], give_up) == SIG_IGN) {
            signal(ends[i], SIG_IGN);   /* nohup */
        }
    }
    error = dump_all(dump, id);
    if (!error && (fsync(fd) || rename(part, path)
                   || !crm_file_sync_folder(folder_of(path, ctl->pool)))) {
        error = ctl_fault(ctl, "cannot write %s: %s", path, strerror(errno));
    }
    if (error) {
        unlink(part);
    }
    unfinished = NULL;
    fclose(dump->out);
    return error ? error : print(dump, id, path);
}

/* Say so if the workspace ID, which the command names, was not held when it was
 * dumped. */
static crm_error_t *warn(ctl_t *ctl, const char *id)
{
    PGresult *result;

    CRM_ERR(ctl_query(&result, ctl, "SELECT crmapi.sends_held($1::uuid)", 1,
                      &id));
    if (*PQgetvalue(result, 0, 0) != 't') {
        fprintf(stderr, "crmapictl: the workspace is not held: what it sends"
                " after this dump is sent again by a copy that is restored and"
                " released. To move it, hold it first: crmapictl workspace"
                " hold %s\n", ctl->args[0]);
    }
    return NULL;
}

crm_error_t *ctl_workspace_dump(ctl_t *ctl)
{
    const char *path = ctl->options[CTL_OUTPUT];
    dump_t dump = {.ctl = ctl, .out = stdout};
    crm_error_t *error;
    const char *id;

    if (ctl->options[CTL_API] && strcmp(ctl->options[CTL_API], "off")) {
        return ctl_misuse(ctl, "--api must be off: a dump opens no API");
    }
    CRM_ERR(ctl_workspace_id(&id, ctl, ctl->args[0]));
    if (path) {
        CRM_ERR(check_path(ctl, path));
    }
    if (ctl->options[CTL_SINCE]) {
        CRM_ERR(check_since(ctl, id));  /* before a line, and before --api off */
    }
    ctl->reads = !ctl->options[CTL_API];
    dump.digest = crm_digest_create(ctl->pool);
    error = path ? dump_to_file(&dump, id, path) : dump_all(&dump, id);
    if (!error) {
        error = warn(ctl, id);
    }
    crm_db_rollback(ctl->conn);
    return error;
}
