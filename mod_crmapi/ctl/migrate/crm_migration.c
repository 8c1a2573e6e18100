/* SPDX-License-Identifier: Apache-2.0 */
/* crm_migration.c: reading the migrations in schema/ */
#include "crm_migration.h"

#include <stdlib.h>
#include <string.h>

#include "apr_file_io.h"
#include "apr_lib.h"
#include "apr_strings.h"

#include "crm_array.h"
#include "crm_file.h"
#include "crm_text.h"

/* Beginnings of lines that say how to apply a file. */
#define MIN_MODULE "-- min_module: "
#define STEP "-- step: "

/* The kinds of steps: the first word of the title, and the prefix of the name
 * after it (OBJECT). NULL: there is no name. */
static const struct {
    const char *word;
    const char *object;
} kinds[CRM_MIGRATION_KINDS] = {
    [CRM_MIGRATION_TRANSACTION] = {"transaction", NULL},
    [CRM_MIGRATION_INDEX] = {"index", ""},
    [CRM_MIGRATION_ALONE] = {"alone", NULL},
    [CRM_MIGRATION_BATCHES] = {"batches", "crmapi."},
};

crm_error_t *crm_migration_fault(apr_pool_t *result_pool, const char *format,
                                 ...)
{
    crm_error_t *error = crm_error_create(CRM_E_INTERNAL, NULL, result_pool);
    va_list args;

    va_start(args, format);
    error->message = error->log = apr_pvsprintf(result_pool, format, args);
    va_end(args);
    return error;
}

/* --- a file's contents ---------------------------------------------------- */

/* Return whether the LEN bytes at LINE begin with START. */
static int begins(const char *line, apr_size_t len, const char *start)
{
    return len >= strlen(start) && !memcmp(line, start, strlen(start));
}

/* Return whether LINE, of LEN bytes, is a comment or has only spaces. */
static int says_nothing(const char *line, apr_size_t len)
{
    crm_text_trim(&line, &len);
    return !len || begins(line, len, "--");
}

/* Return whether LINE, a comment, is probably a misspelt MIN_MODULE or STEP. */
static int is_misspelt(const char *line)
{
    static const char *const words[] = {"step:", "min_module:"};

    return CRM_BEGINS_ONE_OF(line + strspn(line, "- \t"), words);
}

/* Set the kind and the object of STEP from its title. Return 0 if it has no
 * valid ones. */
static int read_title(crm_migration_step_t *step, apr_pool_t *pool)
{
    const char *title = step->title;
    apr_size_t len = strcspn(title, " :");
    int kind = 0;

    while (kind < CRM_MIGRATION_KINDS
           && (strlen(kinds[kind].word) != len
               || memcmp(title, kinds[kind].word, len))) {
        kind++;
    }
    if (kind == CRM_MIGRATION_KINDS) {
        return 0;
    }
    step->kind = (crm_migration_kind_t)kind;
    step->object = NULL;
    title += len;
    if (kinds[kind].object) {
        if (*title != ' '
            || !begins(title + 1, strlen(title + 1), kinds[kind].object)) {
            return 0;
        }
        title += 1 + strlen(kinds[kind].object);
        len = strspn(title, "abcdefghijklmnopqrstuvwxyz0123456789_");
        step->object = apr_pstrmemdup(pool, title, len);
        title += len;
    }
    return (!step->object || *step->object)
           && (!*title || (title[0] == ':' && title[1] == ' ' && title[2]));
}

/* The parts of a file that have been read. */
typedef struct parser_t {
    crm_migration_t *migration;
    crm_migration_step_t *step; /* the current one, or NULL */
    const char *start;          /* of its SQL */
    int line_number;
    apr_pool_t *pool;
} parser_t;

static crm_error_t *line_fault(const parser_t *parser, const char *what)
{
    return crm_migration_fault(parser->pool, "CRM2109: %s, line %d: %s",
                               parser->migration->name, parser->line_number,
                               what);
}

/* End the current step at END. */
static void end_step(parser_t *parser, const char *end)
{
    if (parser->step) {
        parser->step->sql = apr_pstrmemdup(parser->pool, parser->start,
                                           (apr_size_t)(end - parser->start));
    }
}

/* Read LINE, "-- min_module: N". */
static crm_error_t *read_min_module(parser_t *parser, const char *line,
                                    apr_size_t len)
{
    crm_migration_t *migration = parser->migration;
    const char *value = apr_pstrmemdup(parser->pool, line + strlen(MIN_MODULE),
                                       len - strlen(MIN_MODULE));
    int number = atoi(value);

    if (parser->step || migration->min_module) {
        return line_fault(parser, "min_module may appear once, before the"
                          " steps");
    }
    if (number < 1 || number > migration->number
        || strcmp(value, apr_itoa(parser->pool, number))) {
        return line_fault(parser, "min_module must be a number, and not above"
                          " that of the file");
    }
    migration->min_module = number;
    return NULL;
}

/* Read LINE, "-- step: TITLE", of LEN bytes. */
static crm_error_t *read_step(parser_t *parser, const char *line,
                              apr_size_t len)
{
    end_step(parser, line);
    parser->step = apr_array_push(parser->migration->steps);
    parser->step->title = apr_pstrmemdup(parser->pool, line + strlen(STEP),
                                         len - strlen(STEP));
    parser->start = line + len;
    if (!read_title(parser->step, parser->pool)) {
        return line_fault(parser, "a step is \"transaction\", \"alone\","
                          " \"index NAME\" or \"batches crmapi.TABLE\", with or"
                          " without \": TEXT\"");
    }
    return NULL;
}

/* Read LINE, of LEN bytes. *PREAMBLE_P: nothing but comments came before. */
static crm_error_t *read_line(parser_t *parser, int *preamble_p,
                              const char *line, apr_size_t len)
{
    if (begins(line, len, MIN_MODULE)) {
        return read_min_module(parser, line, len);
    }
    if (begins(line, len, STEP)) {
        if (!*preamble_p && !parser->step) {
            return line_fault(parser, "SQL must follow the first step's line");
        }
        return read_step(parser, line, len);
    }
    *preamble_p &= says_nothing(line, len);
    if (begins(line, len, "--") && is_misspelt(line)) {
        return line_fault(parser, "write \"" MIN_MODULE "N\" or \"" STEP
                          "KIND\"");
    }
    return NULL;
}

/* Set min_module and steps of MIGRATION, in RESULT_POOL, from TEXT, the content
 * of its file. The caller has set number and name. */
static crm_error_t *parse(crm_migration_t *migration, const char *text,
                          apr_pool_t *result_pool)
{
    parser_t parser = {migration, NULL, text, 0, result_pool};
    int preamble = 1;

    migration->min_module = 0;
    migration->steps = apr_array_make(result_pool, 4,
                                      sizeof(crm_migration_step_t));
    while (*text) {
        apr_size_t len = strcspn(text, "\n");

        parser.line_number++;
        CRM_ERR(read_line(&parser, &preamble, text, len));
        text += len + (text[len] == '\n');
    }
    if (!parser.step) {
        parser.step = apr_array_push(migration->steps);
        parser.step->kind = CRM_MIGRATION_TRANSACTION;
        parser.step->title = kinds[CRM_MIGRATION_TRANSACTION].word;
        parser.step->object = NULL;
    }
    end_step(&parser, text);
    if (!migration->min_module) {
        migration->min_module = migration->number;
    }
    return NULL;
}

/* --- files ---------------------------------------------------------------- */

/* Return the number in NAME, NNNN-name.sql, or 0 if NAME has another form. */
static int number_of(const char *name)
{
    apr_size_t len = strlen(name);

    for (int i = 0; i < 4; i++) {
        if (!apr_isdigit(name[i])) {
            return 0;
        }
    }
    return name[4] == '-' && len > 9 && !strcmp(name + len - 4, ".sql")
           ? atoi(name) : 0;
}

static crm_error_t *read_file(crm_migration_t *migration, const char *dir,
                              apr_pool_t *pool)
{
    const char *path = apr_pstrcat(pool, dir, "/", migration->name, NULL);
    unsigned char hash[CRM_KEY_HASH_LEN];
    apr_finfo_t info;
    apr_file_t *file;
    apr_status_t status;
    apr_size_t len;
    char *sql;

    status = apr_file_open(&file, path, APR_FOPEN_READ, APR_FPROT_OS_DEFAULT,
                           pool);
    if (!status) {
        status = apr_file_info_get(&info, APR_FINFO_SIZE, file);
    }
    if (status) {
        return crm_migration_fault(pool, "CRM2101: cannot read %s: %pm", path,
                                   &status);
    }
    len = (apr_size_t)info.size;
    sql = apr_palloc(pool, len + 1);
    status = apr_file_read_full(file, sql, len, &len);
    apr_file_close(file);
    if (status) {
        return crm_migration_fault(pool, "CRM2101: cannot read %s: %pm", path,
                                   &status);
    }
    sql[len] = '\0';
    crm_key_hash(hash, sql, len);
    crm_key_hash_hex(migration->sha256, hash);
    return parse(migration, sql, pool);
}

static int by_number(const void *a, const void *b)
{
    return ((const crm_migration_t *)a)->number
           - ((const crm_migration_t *)b)->number;
}

crm_error_t *crm_migration_read(apr_array_header_t **migrations_p,
                                const char *dir, apr_pool_t *result_pool)
{
    apr_array_header_t *migrations = apr_array_make(result_pool, 8,
                                                    sizeof(crm_migration_t));
    apr_array_header_t *names;
    apr_status_t status = crm_file_names(&names, dir, result_pool);

    if (status) {
        return crm_migration_fault(result_pool, "CRM2102: cannot read the"
                                   " folder %s: %pm", dir, &status);
    }
    for (int i = 0; i < names->nelts; i++) {
        const char *name = APR_ARRAY_IDX(names, i, const char *);

        if (number_of(name)) {
            crm_migration_t *migration = apr_array_push(migrations);

            migration->number = number_of(name);
            migration->name = name;
        }
    }
    qsort(migrations->elts, (size_t)migrations->nelts,
          sizeof(crm_migration_t), by_number);
    for (int i = 0; i < migrations->nelts; i++) {
        crm_migration_t *migration = &APR_ARRAY_IDX(migrations, i,
                                                    crm_migration_t);

        if (migration->number != i + 1) {
            return crm_migration_fault(result_pool, "CRM2103: %s: %04d comes"
                                       " next in %s", migration->name, i + 1,
                                       dir);
        }
        CRM_ERR(read_file(migration, dir, result_pool));
    }
    *migrations_p = migrations;
    return migrations->nelts ? NULL
           : crm_migration_fault(result_pool, "CRM2104: no migrations in %s",
                                 dir);
}

crm_error_t *crm_migration_replace(apr_array_header_t *migrations,
                                   const char *dir, apr_pool_t *result_pool)
{
    for (int i = 0; i < migrations->nelts; i++) {
        crm_migration_t *migration = &APR_ARRAY_IDX(migrations, i,
                                                    crm_migration_t);
        const char *path = apr_pstrcat(result_pool, dir, "/", migration->name,
                                       NULL);
        crm_migration_t other = *migration;
        apr_finfo_t info;

        if (!apr_stat(&info, path, APR_FINFO_TYPE, result_pool)) {
            CRM_ERR(read_file(&other, dir, result_pool));
            migration->steps = other.steps;
        }
    }
    return NULL;
}
