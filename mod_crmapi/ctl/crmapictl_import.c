/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_import.c: importing JSON Lines into a workspace */
#include "crmapictl_import.h"

#include <string.h>

#include "apr_strings.h"

#include "crm_db_copy.h"
#include "crm_json.h"
#include "crm_resources.h"
#include "crm_schema.h"
#include "crm_text.h"
#include "crmapictl_field.h"
#include "crmapictl_import_check.h"
#include "crmapictl_import_rows.h"
#include "crmapictl_lines.h"
#include "crmapictl_output.h"
#include "crmapictl_settle.h"

/* Each line is validated as the API would do and copied into a temporary table
 * of its resource, which the first such line makes. Then the database checks all
 * ids and references. Then the rows are inserted table by table, so that
 * references may point forward. */

#define LINE_MAX_MIB 4
#define PROGRESS_LINES 1000
#define FAULTS_MAX 20

static crm_error_t *faults(const ctl_import_t *import)
{
    return crm_error_create(CRM_E_VALIDATION, import->faults, import->pool);
}

/* Note for the line that is read, as ctl_import_refuse() does, that FIELD breaks RULE:
 * those behind it are still checked. Return all faults when they are many, or without a
 * FIELD: the file may be of another kind. */
static crm_error_t *refuse(ctl_import_t *import, const char *field,
                           const char *rule)
{
    const char *said = ctl_clean(ctl_import_refuse(import, import->line, field,
                                                   rule)->message,
                                 import->pool);

    import->faults = import->faults
                     ? apr_pstrcat(import->pool, import->faults, "\n", said,
                                   NULL) : said;
    import->fault_count++;
    return field && import->fault_count < FAULTS_MAX ? NULL : faults(import);
}

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
static crm_error_t *read_object(ctl_import_t *import, ctl_stage_t *stage,
                                json_object *object)
{
    const crm_field_t *fields = stage->resource->fields;
    size_t count = (size_t)crm_resource_fields(stage->resource);
    crm_input_t input = {import->line_pool, NULL, 0};
    const char **binds = apr_pcalloc(input.pool, count * sizeof(*binds));
    unsigned char *sent = apr_pcalloc(input.pool, count);

    ctl_field_members(&input, stage->resource, object, NULL);
    for (size_t i = 0; i < count; i++) {
        if (ctl_stage_has(&fields[i])) {
            read_field(&binds[i], &sent[i], &input, &fields[i], object);
        }
    }
    if (!input.error && stage->resource->check) {
        stage->resource->check(&input, stage->resource, binds, sent);
    }
    if (input.error) {
        const crm_detail_t *detail = &APR_ARRAY_IDX(input.error->details, 0,
                                                    crm_detail_t);

        return refuse(import, detail->field, detail->message);
    }
    return import->faults ? NULL : ctl_stage_add(import, stage, binds);
}

/* Return, in IMPORT's pool, that an object must be one that can be imported. */
static const char *object_rule(const ctl_import_t *import)
{
    const char *list = NULL;

    for (int i = 0; i < import->stage_count; i++) {
        list = crm_text_listed(list, import->stages[i].resource->name,
                               import->pool);
    }
    return apr_pstrcat(import->pool, "must be one of ", list, NULL);
}

/* Remove the byte order mark at the start of the first line, the *LEN_P bytes at
 * *TEXT_P. That of another encoding than UTF-8 is an error. */
static crm_error_t *skip_mark(ctl_import_t *import, const char **text_p,
                              apr_size_t *len_p)
{
    apr_size_t mark = crm_text_mark(*text_p, *len_p);

    if (mark) {
        *text_p += mark;
        *len_p -= mark;
    }
    else if (crm_text_has_wide_mark(*text_p, *len_p)) {
        return refuse(import, NULL, "is UTF-16; the file must be UTF-8");
    }
    return NULL;
}

/* Read LINE, without the blanks at its end. */
static crm_error_t *read_line(ctl_import_t *import, const crm_buf_t *line)
{
    const char *text = line->data;
    apr_size_t len = line->len;
    json_object *object;
    apr_size_t offset;
    const char *rule;
    ctl_stage_t *stage;

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
        return refuse(import, NULL,
                      apr_psprintf(import->pool, "is not valid JSON: %s at "
                                   "byte %" APR_SIZE_T_FMT, rule, offset));
    }
    if (!json_object_is_type(object, json_type_object)) {
        return refuse(import, NULL, "is not a JSON object");
    }
    stage = ctl_stage_find(import, crm_json_text(
        json_object_object_get(object, "object")));
    return stage ? read_object(import, stage, object)
           : refuse(import, "object", object_rule(import));
}

static crm_error_t *read_lines(ctl_import_t *import, int in,
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
        import->line = lines->number;
        error = refuse(import, NULL, fault);
    }
    if (!error && import->faults) {
        error = faults(import);
    }
    for (int i = 0; !error && i < import->stage_count; i++) {
        error = ctl_stage_send(import, &import->stages[i]);
    }
    return error ? error : ctl_stage_end(import);
}

static crm_error_t *begin(ctl_import_t *import)
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
    return ctl_import_run(&result, import, &sql);
}

static crm_error_t *import_all(ctl_import_t *import, int in,
                               crm_import_progress_t progress,
                               crm_import_end_t end, void *baton)
{
    CRM_ERR(begin(import));
    CRM_ERR(read_lines(import, in, progress, baton));
    CRM_ERR(ctl_import_check(import));
    CRM_ERR(ctl_import_follow(import));
    for (int i = 0; i < import->stage_count; i++) {
        if (import->stages[i].count) {
            CRM_ERR(ctl_import_insert(import, &import->stages[i]));
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
    ctl_import_t import = {.conn = conn, .workspace_id = workspace_id,
                       .pool = result_pool};
    crm_schema_t schema;
    crm_error_t *error;
    size_t count = 0;

    CRM_ERR(crm_schema_read(&schema, conn, result_pool));
    import.distributed = schema.distributed;
    while (crm_resources[count]) {
        count++;
    }
    import.stages = apr_pcalloc(result_pool, count * sizeof(ctl_stage_t));
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
