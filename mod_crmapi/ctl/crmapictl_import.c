/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_import.c: importing JSON Lines into a workspace */
#include "crmapictl_import.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_db_copy.h"
#include "crm_json.h"
#include "crm_pointer.h"
#include "crm_resources.h"
#include "crm_schema.h"
#include "crm_sql.h"
#include "crm_sql_print.h"
#include "crm_text.h"
#include "crmapictl_address.h"
#include "crmapictl_field.h"
#include "crmapictl_lines.h"
#include "crmapictl_settle.h"

/* Each line is validated as the API would do and copied into a temporary table
 * of its resource, which the first such line makes. Then the database checks all
 * ids and references. Then the rows are inserted table by table, so that
 * references may point forward. */

#define LINE_MAX_MIB 4
#define SEND_BYTES 65536        /* of a table's rows at once */
#define PROGRESS_LINES 1000

/* SQL: the default of a time that is NOT NULL. */
#define NOW "date_trunc('milliseconds', now())"

/* A resource and its rows. */
typedef struct stage_t {
    const crm_resource_t *resource;
    crm_buf_t rows;             /* in COPY's text format, not yet sent */
    apr_int64_t count;          /* 0: there is neither buffer nor table */
    int made;                   /* the table */
} stage_t;

/* The state of an import. */
typedef struct import_t {
    crm_conn_t *conn;
    const char *workspace_id;
    stage_t *stages;
    int stage_count;
    stage_t *copied;            /* to which a COPY is under way, or NULL */
    apr_int64_t line;
    int distributed;            /* crm_schema_t */
    apr_pool_t *pool;
    apr_pool_t *line_pool;      /* cleared after each line */
} import_t;

/* Return the error for LINE, where FIELD (NULL: the whole line), a name or a JSON
 * pointer, breaks RULE. */
static crm_error_t *refuse(import_t *import, apr_int64_t line,
                           const char *field, const char *rule)
{
    const char *where = field ? crm_pointer_path(field, import->pool) : "";

    return crm_error_createf(CRM_E_VALIDATION, import->pool,
                             "line %" APR_INT64_T_FMT ": %s%s%s", line, where,
                             *where ? ": " : "", rule);
}

static crm_error_t *run(PGresult **result_p, import_t *import, crm_sql_t *sql)
{
    crm_stmt_t stmt;

    sql->distributed = import->distributed;
    crm_sql_stmt(&stmt, sql);
    return crm_db_query(result_p, import->conn, &stmt, import->line_pool);
}

/* Return whether FIELD is part of a line and stored. */
static int is_stored(const crm_field_t *field)
{
    return !(field->flags & CRM_F_DERIVED)
           && strcmp(field->name, "workspace_id");
}

/* ---- the temporary tables ---- */

static crm_error_t *create_stage(import_t *import, stage_t *stage)
{
    crm_sql_t sql;
    crm_stmt_t stmt;

    crm_sql_init(&sql, import->line_pool);
    crm_sql_adds(&sql, "CREATE TEMPORARY TABLE stage_", stage->resource->name,
                 " (line bigint NOT NULL", NULL);
    for (const crm_field_t *field = stage->resource->fields; field->name;
         field++) {
        if (is_stored(field)) {
            crm_sql_adds(&sql, ", ", field->name, " ", field->type->cast,
                         NULL);
        }
    }
    crm_sql_add(&sql, ") ON COMMIT DROP");
    crm_sql_stmt(&stmt, &sql);
    stage->made = 1;
    return crm_db_exec(import->conn, stmt.sql, import->line_pool);
}

static crm_error_t *begin(import_t *import)
{
    PGresult *result;
    crm_sql_t sql;

    CRM_ERR(crm_db_exec(import->conn, "BEGIN", import->pool));
    crm_sql_init(&sql, import->line_pool);
    /* The lock makes imports into a workspace take turns. Each uses slot -1 of
     * the workspace's counters, so that no other writer waits for it. The
     * pending lists are larger for many rows at once: with 256 kB, updating the
     * index for searches takes twice as long. */
    crm_sql_template(&sql, "SELECT pg_advisory_xact_lock(hashtextextended("
                     "'import:' || ?, 0)), set_config('crmapi.counter_slot',"
                     " '-1', true), set_config('gin_pending_list_limit',"
                     " '4MB', true)", import->workspace_id, "text");
    return run(&result, import, &sql);
}

/* Add VALUE (NULL: null) to ROWS in COPY's text format. */
static void add_copy_value(crm_buf_t *rows, const char *value)
{
    if (!value) {
        crm_buf_add(rows, "\\N", 2);
        return;
    }
    for (; *value; value++) {
        switch (*value) {
        case '\\':
            crm_buf_add(rows, "\\\\", 2);
            break;
        case '\n':
            crm_buf_add(rows, "\\n", 2);
            break;
        case '\r':
            crm_buf_add(rows, "\\r", 2);
            break;
        case '\t':
            crm_buf_add(rows, "\\t", 2);
            break;
        default:
            crm_buf_putc(rows, *value);
        }
    }
}

/* End the COPY that is under way, if there is one. */
static crm_error_t *end_copy(import_t *import)
{
    apr_int64_t rows;
    int copied = import->copied != NULL;

    import->copied = NULL;
    return copied ? crm_db_copy_end(&rows, import->conn, import->pool) : NULL;
}

static crm_error_t *begin_copy(import_t *import, stage_t *stage)
{
    CRM_ERR(end_copy(import));
    if (!stage->made) {
        CRM_ERR(create_stage(import, stage));
    }
    CRM_ERR(crm_db_copy_begin(import->conn,
                              apr_pstrcat(import->line_pool, "COPY stage_",
                                          stage->resource->name,
                                          " FROM STDIN", NULL),
                              import->pool));
    import->copied = stage;
    return NULL;
}

/* Send the rows of STAGE. The COPY goes on, so that the database takes them
 * while further lines are read. */
static crm_error_t *send_rows(import_t *import, stage_t *stage)
{
    crm_error_t *error;

    if (!stage->rows.len) {
        return NULL;
    }
    if (import->copied != stage) {
        CRM_ERR(begin_copy(import, stage));
    }
    error = crm_db_copy_put(import->conn, stage->rows.data, stage->rows.len,
                            import->pool);
    stage->rows.len = 0;
    if (error) {                /* the COPY has ended */
        import->copied = NULL;
    }
    return error;
}

/* ---- reading lines ---- */

/* Read FIELD of OBJECT into *BIND_P. *SENT_P: whether it is present. A null
 * counts as absent. */
static void read_field(const char **bind_p, unsigned char *sent_p,
                       crm_input_t *input, const crm_field_t *field,
                       json_object *object)
{
    json_object *value = json_object_object_get(object, field->name);

    if (value) {
        *sent_p = 1;
        crm_type_parse(bind_p, input, field, field->name, value);
    }
    else if (field->flags & CRM_F_REQUIRED) {
        crm_input_error(input, field->name, "is required");
    }
    else {
        ctl_field_initial(bind_p, field, input->pool);
    }
}

/* Validate OBJECT and add it to the rows of STAGE. */
static crm_error_t *read_object(import_t *import, stage_t *stage,
                                json_object *object)
{
    const crm_field_t *fields = stage->resource->fields;
    size_t count = (size_t)crm_resource_fields(stage->resource);
    crm_input_t input = {import->line_pool, NULL, 0};
    const char **binds = apr_pcalloc(input.pool, count * sizeof(*binds));
    unsigned char *sent = apr_pcalloc(input.pool, count);

    ctl_field_members(&input, stage->resource, object, NULL);
    for (size_t i = 0; i < count; i++) {
        if (is_stored(&fields[i])) {
            read_field(&binds[i], &sent[i], &input, &fields[i], object);
        }
    }
    if (!input.error && stage->resource->check) {
        stage->resource->check(&input, stage->resource, binds, sent);
    }
    if (input.error) {
        const crm_detail_t *detail = &APR_ARRAY_IDX(input.error->details, 0,
                                                    crm_detail_t);

        return refuse(import, import->line, detail->field, detail->message);
    }
    if (!stage->count++) {
        crm_buf_init(&stage->rows, SEND_BYTES, import->pool);
    }
    crm_buf_printf(&stage->rows, "%" APR_INT64_T_FMT, import->line);
    for (size_t i = 0; i < count; i++) {
        if (is_stored(&fields[i])) {
            crm_buf_putc(&stage->rows, '\t');
            add_copy_value(&stage->rows, binds[i]);
        }
    }
    crm_buf_putc(&stage->rows, '\n');
    return stage->rows.len > SEND_BYTES ? send_rows(import, stage) : NULL;
}

/* Return the stage of the resource NAME, or NULL. */
static stage_t *find_stage(import_t *import, const char *name)
{
    for (int i = 0; name && i < import->stage_count; i++) {
        if (!strcmp(import->stages[i].resource->name, name)) {
            return &import->stages[i];
        }
    }
    return NULL;
}

/* Return, in IMPORT's pool, that an object must be one that can be imported. */
static const char *object_rule(const import_t *import)
{
    const char *list = NULL;

    for (int i = 0; i < import->stage_count; i++) {
        list = crm_text_listed(list, import->stages[i].resource->name, import->pool);
    }
    return apr_pstrcat(import->pool, "must be one of ", list, NULL);
}

/* Remove the byte order mark at the start of the first line, the *LEN_P bytes at
 * *TEXT_P. That of another encoding than UTF-8 is an error. */
static crm_error_t *skip_mark(import_t *import, const char **text_p,
                              apr_size_t *len_p)
{
    apr_size_t mark = crm_text_mark(*text_p, *len_p);

    if (mark) {
        *text_p += mark;
        *len_p -= mark;
    }
    else if (crm_text_has_wide_mark(*text_p, *len_p)) {
        return refuse(import, import->line, NULL,
                      "is UTF-16; the file must be UTF-8");
    }
    return NULL;
}

/* Read LINE, without the blanks at its end. */
static crm_error_t *read_line(import_t *import, const crm_buf_t *line)
{
    const char *text = line->data;
    apr_size_t len = line->len;
    json_object *object;
    apr_size_t offset;
    const char *rule;
    stage_t *stage;

    while (len && memchr("\r\n \t", text[len - 1], 4)) {
        len--;
    }
    if (import->line == 1) {
        CRM_ERR(skip_mark(import, &text, &len));
    }
    if (!len) {
        return NULL;
    }
    rule = crm_json_parse(&object, &offset, text, len, import->line_pool);
    if (rule) {
        return refuse(import, import->line, NULL,
                      apr_psprintf(import->pool, "is not valid JSON: %s at "
                                   "byte %" APR_SIZE_T_FMT, rule, offset));
    }
    if (!json_object_is_type(object, json_type_object)) {
        return refuse(import, import->line, NULL, "is not a JSON object");
    }
    stage = find_stage(import, crm_json_text(json_object_object_get(object,
                                                                    "object")));
    return stage ? read_object(import, stage, object)
           : refuse(import, import->line, "object", object_rule(import));
}

static crm_error_t *read_lines(import_t *import, int in,
                               crm_import_progress_t progress, void *baton)
{
    ctl_lines_t *lines = apr_palloc(import->pool, sizeof(*lines));
    crm_error_t *error = NULL;
    const char *fault;

    ctl_lines_init(lines, in, LINE_MAX_MIB, import->pool);
    while (!error && !(fault = ctl_lines_next(lines)) && lines->line.len) {
        import->line = lines->number;
        error = read_line(import, &lines->line);
        apr_pool_clear(import->line_pool);
        if (progress && import->line % PROGRESS_LINES == 0) {
            progress(baton, import->line);
        }
    }
    if (!error && fault) {
        return refuse(import, lines->number, NULL, fault);
    }
    for (int i = 0; !error && i < import->stage_count; i++) {
        error = send_rows(import, &import->stages[i]);
    }
    return error ? error : end_copy(import);
}

/* ---- checking ids and references ---- */

/* The first invalid line found so far. */
typedef struct fault_t {
    apr_int64_t line;
    const char *field;
    const char *rule;
} fault_t;

/* Run SQL, which returns the first line where FIELD breaks RULE, or null, and
 * update FAULT. */
static crm_error_t *ask(fault_t *fault, import_t *import, crm_sql_t *sql,
                        const char *field, const char *rule)
{
    PGresult *result;
    const char *value;

    CRM_ERR(run(&result, import, sql));
    value = crm_db_value(result, 0, 0);
    if (value && (!fault->line || apr_atoi64(value) < fault->line)) {
        fault->line = apr_atoi64(value);
        fault->field = field;
        fault->rule = rule;
    }
    return NULL;
}

/* Add the condition that a row r of the resource NAME has an id that is COLUMN,
 * or with NOT that none has. Citus joins no local table with others: there the
 * ids of the workspace are collected first. */
static void add_exists(crm_sql_t *sql, const import_t *import, const char *not,
                       const char *name, const char *column)
{
    crm_sql_adds(sql, CRM_SQL_PLAIN, not, "EXISTS (SELECT FROM crmapi.", name,
                 " r WHERE r.id = ", column, CRM_SQL_CITUS, column, " ", not,
                 "IN (SELECT r.id FROM crmapi.", name, " r WHERE true",
                 CRM_SQL_BOTH, NULL);
    crm_sql_template(sql, " AND r.workspace_id = ?)", import->workspace_id,
                     "uuid");
}

static crm_error_t *check_ids(fault_t *fault, import_t *import,
                              const stage_t *stage)
{
    const char *name = stage->resource->name;
    crm_sql_t sql;

    crm_sql_init(&sql, import->line_pool);
    crm_sql_adds(&sql, "SELECT min(line) FROM (SELECT line, row_number() OVER"
                 " (PARTITION BY id ORDER BY line) AS n FROM stage_", name,
                 ") s WHERE n > 1", NULL);
    CRM_ERR(ask(fault, import, &sql, "id", "occurs twice"));
    crm_sql_init(&sql, import->line_pool);
    crm_sql_adds(&sql, "SELECT min(s.line) FROM stage_", name, " s WHERE ",
                 NULL);
    add_exists(&sql, import, "", name, "s.id");
    return ask(fault, import, &sql, "id", "exists already");
}

/* Check that FIELD, a unique one, has each value once. */
static crm_error_t *check_unique(fault_t *fault, import_t *import,
                                 const stage_t *stage,
                                 const crm_field_t *field)
{
    const char *name = stage->resource->name;
    crm_sql_t sql;

    crm_sql_init(&sql, import->line_pool);
    crm_sql_adds(&sql, "SELECT min(line) FROM (SELECT line, row_number() OVER"
                 " (PARTITION BY ", field->name, " ORDER BY line) AS n FROM"
                 " stage_", name, " WHERE ", field->name, " IS NOT NULL) s"
                 " WHERE n > 1", NULL);
    CRM_ERR(ask(fault, import, &sql, field->name, "occurs twice"));
    crm_sql_init(&sql, import->line_pool);
    crm_sql_adds(&sql, "SELECT min(s.line) FROM stage_", name, " s WHERE s.",
                 field->name, " IN (SELECT r.", field->name, " FROM crmapi.",
                 name, NULL);
    crm_sql_template(&sql, " r WHERE r.workspace_id = ?)",
                     import->workspace_id, "uuid");
    return ask(fault, import, &sql, field->name, "exists already");
}

static crm_error_t *check_reference(fault_t *fault, import_t *import,
                                    const stage_t *stage,
                                    const crm_field_t *field)
{
    const stage_t *referred = find_stage(import, field->ref);
    crm_sql_t sql;

    crm_sql_init(&sql, import->line_pool);
    crm_sql_adds(&sql, "SELECT min(s.line) FROM stage_",
                 stage->resource->name, " s WHERE s.", field->name,
                 " IS NOT NULL AND ", NULL);
    if (referred && referred->count) {
        crm_sql_adds(&sql, CRM_SQL_PLAIN "NOT EXISTS (SELECT FROM stage_",
                     field->ref, " r WHERE r.id = s.", field->name, ")"
                     CRM_SQL_CITUS "s.", field->name, " NOT IN (SELECT r.id"
                     " FROM stage_", field->ref, " r)" CRM_SQL_BOTH " AND ",
                     NULL);
    }
    add_exists(&sql, import, "NOT ", field->ref,
               apr_pstrcat(import->line_pool, "s.", field->name, NULL));
    return ask(fault, import, &sql, field->name,
               crm_ref_rule(field->ref, import->pool));
}

/* Make statistics of those columns of STAGE that the checks use. Statistics of
 * all columns would take a fifth of the time of the import. */
static crm_error_t *analyze_stage(import_t *import, const stage_t *stage)
{
    crm_sql_t sql;
    crm_stmt_t stmt;

    crm_sql_init(&sql, import->line_pool);
    crm_sql_adds(&sql, "ANALYZE stage_", stage->resource->name, " (id", NULL);
    for (const crm_field_t *field = stage->resource->fields; field->name;
         field++) {
        if (field->ref && is_stored(field)) {
            crm_sql_adds(&sql, ", ", field->name, NULL);
        }
    }
    crm_sql_add(&sql, ")");
    crm_sql_stmt(&stmt, &sql);
    return crm_db_exec(import->conn, stmt.sql, import->line_pool);
}

/* Check that the addresses of agents are nobody else's. */
static crm_error_t *check_addresses(fault_t *fault, import_t *import)
{
    fault_t found;

    if (!find_stage(import, "agent")->count) {
        return NULL;
    }
    CRM_ERR(ctl_address_check(&found.line, &found.field, &found.rule,
                              import->conn, import->workspace_id,
                              import->pool));
    if (found.line && (!fault->line || found.line < fault->line)) {
        *fault = found;
    }
    return NULL;
}

/* Check all ids, references and addresses. */
static crm_error_t *check(import_t *import)
{
    fault_t fault = {0, NULL, NULL};

    for (int i = 0; i < import->stage_count; i++) {
        if (import->stages[i].count) {
            CRM_ERR(analyze_stage(import, &import->stages[i]));
        }
    }
    for (int i = 0; i < import->stage_count; i++) {
        const stage_t *stage = &import->stages[i];

        if (!stage->count) {
            continue;
        }
        CRM_ERR(check_ids(&fault, import, stage));
        for (const crm_field_t *field = stage->resource->fields; field->name;
             field++) {
            if (field->ref && is_stored(field)) {
                CRM_ERR(check_reference(&fault, import, stage, field));
            }
            if (field->flags & CRM_F_UNIQUE) {
                CRM_ERR(check_unique(&fault, import, stage, field));
            }
        }
    }
    CRM_ERR(check_addresses(&fault, import));
    return fault.line ? refuse(import, fault.line, fault.field, fault.rule)
           : NULL;
}

/* ---- inserting rows ---- */

/* Fill conversations without last_message_at from their messages among the lines,
 * as the intake would have (schema/0015-intake.sql). The messages of programs
 * neither ask nor answer, and nobody can answer a call. */
static crm_error_t *follow_messages(import_t *import)
{
    static const char latest[] = " ORDER BY m.created_at DESC, m.line DESC)";
    crm_sql_t sql;
    PGresult *result;

    if (!find_stage(import, "conversation")->count
        || !find_stage(import, "message")->count) {
        return NULL;
    }
    crm_sql_init(&sql, import->line_pool);
    crm_sql_adds(&sql, "UPDATE stage_conversation s SET last_message_at = f.at,"
                 " last_active_at = coalesce(s.last_active_at, f.at),"
                 " last_message = coalesce(s.last_message, f.said),"
                 " unanswered = s.unanswered OR s.type <> 2"
                 " AND f.role IS NOT DISTINCT FROM 'user'"
                 " FROM (SELECT m.conversation_id, max(coalesce(m.created_at,"
                 " " NOW ")) AS at,"
                 " (array_agg(left(m.content, 255)", latest, " FILTER (WHERE"
                 " m.content <> ''))[1] AS said, (array_agg(m.role", latest,
                 " FILTER (WHERE m.role IN ('user', 'human') OR m.role ="
                 " 'assistant' AND m.tool_used IS NULL))[1] AS role"
                 " FROM stage_message m GROUP BY m.conversation_id) f"
                 " WHERE f.conversation_id = s.id AND s.last_message_at IS NULL",
                 NULL);
    return run(&result, import, &sql);
}

/* Insert the rows of STAGE up to LAST, a line. */
static crm_error_t *insert_up_to(import_t *import, const stage_t *stage,
                                 apr_int64_t last)
{
    const crm_field_t *fields = stage->resource->fields;
    PGresult *result;
    crm_sql_t sql;

    crm_sql_init(&sql, import->line_pool);
    crm_sql_adds(&sql, "INSERT INTO crmapi.", stage->resource->name,
                 " (workspace_id", NULL);
    for (int i = 0; fields[i].name; i++) {
        if (is_stored(&fields[i])) {
            crm_sql_adds(&sql, ", ", fields[i].name, NULL);
        }
    }
    crm_sql_template(&sql, ") SELECT ?", import->workspace_id, "uuid");
    for (int i = 0; fields[i].name; i++) {
        /* a time that is NOT NULL defaults to now */
        int now = fields[i].type == &crm_type_time
                  && !(fields[i].flags & CRM_F_NULLABLE);

        if (is_stored(&fields[i])) {
            crm_sql_adds(&sql, now ? ", coalesce(s." : ", s.", fields[i].name,
                         now ? ", " NOW ")" : "",
                         NULL);
        }
    }
    crm_sql_adds(&sql, " FROM stage_", stage->resource->name, " s", NULL);
    crm_sql_template(&sql, " WHERE s.line <= ? ORDER BY s.line",
                     apr_psprintf(import->line_pool, "%" APR_INT64_T_FMT,
                                  last), "bigint");
    return run(&result, import, &sql);
}

/* Find the first line of STAGE that the database refuses, by bisection, because
 * its error does not name the line. Return the error for that line, with the
 * database's message as the rule. */
static crm_error_t *locate(import_t *import, const stage_t *stage)
{
    apr_int64_t low = 1, high = import->line;
    const char *rule = "is refused by the database";

    while (low <= high) {
        apr_int64_t middle = low + (high - low) / 2;
        crm_error_t *error;

        CRM_ERR(crm_db_exec(import->conn, "ROLLBACK TO SAVEPOINT rows",
                            import->pool));
        error = insert_up_to(import, stage, middle);
        if (error && !crm_error_refuses(error)) {
            return error;
        }
        if (error) {
            rule = crm_error_is(error, "23505")
                   ? "exists already, or occurs twice" : error->log;
            high = middle - 1;
        }
        else {
            low = middle + 1;
        }
    }
    return refuse(import, low, NULL, rule);
}

/* Insert the rows of STAGE. */
static crm_error_t *insert(import_t *import, const stage_t *stage)
{
    crm_error_t *error;

    CRM_ERR(crm_db_exec(import->conn, "SAVEPOINT rows", import->pool));
    error = insert_up_to(import, stage, import->line);
    if (crm_error_refuses(error)) {
        return locate(import, stage);
    }
    CRM_ERR(error);
    return crm_db_exec(import->conn, "RELEASE SAVEPOINT rows", import->pool);
}

static crm_error_t *import_all(import_t *import, int in,
                               crm_import_progress_t progress,
                               crm_import_end_t end, void *baton)
{
    CRM_ERR(begin(import));
    CRM_ERR(read_lines(import, in, progress, baton));
    CRM_ERR(check(import));
    CRM_ERR(follow_messages(import));
    for (int i = 0; i < import->stage_count; i++) {
        if (import->stages[i].count) {
            CRM_ERR(insert(import, &import->stages[i]));
        }
    }
    CRM_ERR(end(baton));
    CRM_ERR(crm_db_exec(import->conn, "COMMIT", import->pool));
    for (int i = 0; i < import->stage_count; i++) {
        if (import->stages[i].count) {
            ctl_settle(import->conn, import->stages[i].resource->name,
                       import->line_pool);
        }
    }
    return NULL;
}

crm_error_t *crm_import(apr_int64_t *count_p, crm_conn_t *conn,
                        const char *workspace_id, int in,
                        crm_import_progress_t progress,
                        crm_import_end_t end, void *baton,
                        apr_pool_t *result_pool)
{
    import_t import = {.conn = conn, .workspace_id = workspace_id,
                       .pool = result_pool};
    crm_schema_t schema;
    crm_error_t *error;
    size_t count = 0;

    CRM_ERR(crm_schema_read(&schema, conn, result_pool));
    import.distributed = schema.distributed;
    while (crm_resources[count]) {
        count++;
    }
    import.stages = apr_pcalloc(result_pool, count * sizeof(stage_t));
    for (size_t i = 0; i < count; i++) {
        if (!crm_resources[i]->no_import) {
            import.stages[import.stage_count++].resource = crm_resources[i];
        }
    }
    apr_pool_create(&import.line_pool, result_pool);
    error = import_all(&import, in, progress, end, baton);
    if (import.copied) {
        crm_db_copy_abort(conn);
    }
    if (error) {
        crm_db_rollback(conn);
    }
    *count_p = 0;
    for (int i = 0; i < import.stage_count; i++) {
        *count_p += import.stages[i].count;
    }
    return error;
}
