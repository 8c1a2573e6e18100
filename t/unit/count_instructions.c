/* SPDX-License-Identifier: Apache-2.0 */
/* count_instructions.c: requests from their parts to their answers, with rows
 * that were recorded instead of a database, for t/96-instructions.t */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apr_general.h"
#include "apr_strings.h"

#include "crm_api.h"
#include "crm_array.h"
#include "crm_domain.h"
#include "crm_key.h"
#include "crm_limit_key.h"
#include "crm_mcp.h"

#define KEY "svc_live_abcdefghijklmnopqrstuvwxABCDEF"
#define ID "0190a6f0-1c2d-7abc-8def-0123456789ab"
#define TIMES 100

/* A contact that is created. */
#define CONTACT \
    "{\"bot_id\":\"" ID "\",\"first_name\":\"Ada\",\"last_name\":\"King\"," \
    "\"emails\":[\"ada@example.com\"],\"phone_numbers\":[\"+4930123456\"]," \
    "\"tags\":[\"vip\",\"math\"],\"notes\":\"met at the conference\"," \
    "\"custom_fields\":{\"plan\":\"gold\",\"seats\":12}}"

/* A function that valgrind finds by its name. */
#ifdef __clang__
#define MEASURED __attribute__((noinline))
#else
#define MEASURED __attribute__((noinline, noclone))
#endif

/* A request, and the rows that the database answers it with. */
typedef struct sample_t {
    const char *name;
    const char *method, *path, *query, *body;
    const char *resource;       /* whose rows they are */
    int rows;
    int totals;                 /* a total comes before the row's columns */
    const crm_mount_t *mount;   /* NULL: the API */
} sample_t;

static const sample_t samples[] = {
    {"get", "GET", "/contacts/" ID, NULL, NULL, "contact", 1, 0, NULL},
    {"list", "GET", "/contacts", NULL, NULL, "contact", 25, 1, NULL},
    {"filters", "GET", "/conversations",
     "type=email&active=true&assigned_to=u1", NULL, "conversation", 25, 1, NULL},
    {"create", "POST", "/contacts", NULL, CONTACT, "contact", 1, 0, NULL},
    {"activity", "POST", "/activities", NULL,
     "{\"contact_id\":\"" ID "\",\"activity_type\":\"note\","
     "\"title\":\"Met at the conference\",\"description\":\"Yes, we are open"
     " on Saturday.\"}", "activity", 1, 0, NULL},
    {"answer", "POST", "/conversations/" ID "/messages", NULL,
     "{\"content\":\"Yes, we are open on Saturday.\",\"content_type\":"
     "\"text/markdown\",\"subject\":\"Met at the conference\"}",
     "message", 1, 0, NULL},
    {"tool_get", "POST", "/", NULL,
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":"
     "{\"name\":\"contacts_get\",\"arguments\":{\"id\":\"" ID "\"}}}",
     "contact", 1, 0, &crm_mcp_mount},
    {"tool_list", "POST", "/", NULL,
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":"
     "{\"name\":\"contacts_list\",\"arguments\":{\"page_size\":25}}}",
     "contact", 25, 0, &crm_mcp_mount},
    {"tool_create", "POST", "/", NULL,
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":"
     "{\"name\":\"contacts_create\",\"arguments\":" CONTACT "}}",
     "contact", 1, 0, &crm_mcp_mount},
};

/* Columns by the name of their type: what PostgreSQL would send. */
static const struct {
    const char *type;
    const char *text;
} values[] = {
    {"uuid", ID}, {"reference", ID}, {"text", "Ada Lovelace, Countess"},
    {"number", "1234.5000"}, {"integer", "12"}, {"boolean", "t"},
    {"time", "2026-11-21 12:34:56.789+00"}, {"channel", "4"},
    {"object", "{\"plan\": \"gold\", \"seats\": 12}"},
    {"tags", "{vip,math}"}, {"strings", "{a,b}"},
    {"emails", "[{\"email\": \"ada@example.com\", \"is_primary\": true}]"},
    {"phones", "[{\"phone_number\": \"+4930123456\", "
               "\"is_primary\": true}]"},
};

static const sample_t *sample;
static PGresult *recorded;

/* ---- instead of a database ----------------------------------------------- */

/* The linker has crm_db_query() lead here. */
__typeof__(crm_db_query) __wrap_crm_db_query;
crm_error_t *__wrap_crm_db_query(PGresult **result_p, crm_conn_t *conn,
                                 const crm_stmt_t *stmt, apr_pool_t *pool)
{
    (void)conn;
    (void)stmt;
    (void)pool;
    *result_p = recorded;
    return NULL;
}

/* The result is used again. */
__typeof__(crm_db_clear) __wrap_crm_db_clear;
void __wrap_crm_db_clear(PGresult *result, apr_pool_t *pool)
{
    (void)result;
    (void)pool;
}

static crm_error_t *acquire(crm_conn_t **conn_p, apr_time_t since, void *baton,
                            apr_pool_t *pool)
{
    static int nothing;

    (void)since;
    (void)baton;
    (void)pool;
    *conn_p = (crm_conn_t *)(void *)&nothing;
    return NULL;
}

static void release(crm_conn_t *conn, void *baton)
{
    (void)conn;
    (void)baton;
}

static crm_error_t *read_body(const char **data_p, apr_size_t *len_p,
                              apr_size_t max, void *baton, apr_pool_t *pool)
{
    (void)max;
    (void)baton;
    (void)pool;
    *data_p = sample->body;
    *len_p = strlen(sample->body);
    return NULL;
}

static const char *value_of(const crm_field_t *field)
{
    for (size_t i = 0; i < CRM_NELTS(values); i++) {
        if (!strcmp(values[i].type, field->type->name)) {
            return values[i].text;
        }
    }
    return field->values ? field->values[0] : "x";
}

/* Return the rows of the sample, made for SHAPE. */
static PGresult *record(const crm_shape_t *shape)
{
    PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    int count = shape->count + sample->totals;
    PGresAttDesc *columns = calloc((size_t)count, sizeof(*columns));
    static char name[] = "c";

    for (int i = 0; i < count; i++) {
        columns[i].name = name;
    }
    PQsetResultAttrs(result, count, columns);
    for (int row = 0; row < sample->rows; row++) {
        for (int i = 0; i < count; i++) {
            const char *text = i < sample->totals ? "1000000"
                : value_of(shape->fields[i - sample->totals]);
            char copy[256];

            apr_cpystrn(copy, text, sizeof(copy));
            PQsetvalue(result, row, i, copy, (int)strlen(copy));
        }
    }
    free(columns);
    return result;
}

/* ---- what is measured ---------------------------------------------------- */

/* Serve REQUEST, COUNT times. Instructions are counted in here. */
MEASURED
static apr_size_t serve_requests(const crm_service_t *service,
                                 crm_request_t *request, int count,
                                 apr_pool_t *pool)
{
    crm_response_t response;
    apr_size_t bytes = 0;

    for (int i = 0; i < count; i++) {
        request->pool = pool;
        crm_serve(&response, service,
                  sample->mount ? sample->mount : &crm_api_mount, request);
        if (response.status >= 300) {
            fprintf(stderr, "%s: %d %.*s\n", sample->name, response.status,
                    (int)response.body.len, response.body.data);
            exit(EXIT_FAILURE);
        }
        bytes += response.body.len;
        apr_pool_clear(pool);
    }
    return bytes;
}

/* The serialiser alone: the rows of RESULT as SHAPE has them, COUNT times. */
MEASURED
static apr_size_t write_rows(const crm_shape_t *shape, const PGresult *result,
                             int count, apr_pool_t *pool)
{
    apr_size_t bytes = 0;
    crm_buf_t buf;

    crm_buf_init(&buf, 65536, pool);
    for (int i = 0; i < count; i++) {
        buf.len = 0;
        for (int row = 0; row < sample->rows; row++) {
            crm_shape_write(&buf, shape, result, row, sample->totals);
        }
        bytes += buf.len;
    }
    return bytes;
}

/* What cannot be less: each byte of each value looked at once for whether it
 * must be escaped, and each byte of the answer copied. */
MEASURED
static apr_size_t scan_and_copy(const char *answer, apr_size_t len, int count,
                                const char *table)
{
    static char copy[1 << 20];
    apr_size_t seen = 0;

    for (int i = 0; i < count; i++) {
        apr_size_t at = 0;

        while (at < len) {
            apr_size_t end = at;

            while (end < len && !table[(unsigned char)answer[end]]) {
                end++;
            }
            end += end < len;
            memcpy(copy + at, answer + at, end - at);
            at = end;
        }
        seen += at;
    }
    return seen + (apr_size_t)copy[len / 2];
}

/* ---- one sample ---------------------------------------------------------- */

/* Make SERVICE one with the key KEY known to its memory. */
static void make_service(crm_service_t *service, apr_pool_t *pool)
{
    static const crm_mcp_site_t site = {NULL, CRM_MCP_ALL};
    crm_limit_config_t config = {16, {0, 0}, 0};
    apr_size_t size = crm_limit_size(&config);
    crm_limit_key_t key;

    memset(service, 0, sizeof(*service));
    service->settings.key_prefix = CRM_KEY_PREFIX;
    service->limit = apr_palloc(pool, size);
    crm_limit_init(service->limit, size, &config, pool);
    service->acquire = acquire;
    service->release = release;
    service->read_body = read_body;
    service->mcp = &site;
    memset(&key, 0, sizeof(key));
    crm_key_hash(key.hash, KEY, strlen(KEY));
    apr_cpystrn(key.key_id, ID, sizeof(key.key_id));
    apr_cpystrn(key.terms, ID, sizeof(key.terms));
    apr_cpystrn(key.workspace_id, ID, sizeof(key.workspace_id));
    apr_cpystrn(key.slug, "w", sizeof(key.slug));
    crm_limit_add(service->limit, &key, NULL);
}

/* Serve the sample. */
static void measure(apr_pool_t *pool)
{
    const crm_shape_t *shape =
        crm_shape_of(crm_resource_find(sample->resource));
    crm_service_t service;
    crm_request_t request;
    apr_table_t *headers;
    char table[256] = {0};
    crm_buf_t answer;
    apr_pool_t *scratch;

    make_service(&service, pool);
    recorded = record(shape);
    memset(&request, 0, sizeof(request));
    request.method = sample->method;
    request.path = sample->path;
    request.query = sample->query;
    headers = apr_table_make(pool, 4);
    apr_table_setn(headers, "Host", "crm.example");
    apr_table_setn(headers, "Authorization", "Bearer " KEY);
    if (sample->body) {
        apr_table_setn(headers, "Content-Type", "application/json");
    }
    if (sample->mount) {
        apr_table_setn(headers, "Accept",
                       "application/json, text/event-stream");
        apr_table_setn(headers, "MCP-Protocol-Version", "2025-11-25");
    }
    request.headers = headers;
    request.request_id = "r";
    apr_pool_create(&scratch, pool);
    serve_requests(&service, &request, TIMES, scratch);

    for (int c = 0; c < 32; c++) {
        table[c] = 1;
    }
    table['"'] = table['\\'] = 1;
    crm_buf_init(&answer, 65536, pool);
    for (int row = 0; row < sample->rows; row++) {
        crm_shape_write(&answer, shape, recorded, row, sample->totals);
    }
    printf("%d %" APR_SIZE_T_FMT "\n", TIMES, answer.len);
    write_rows(shape, recorded, TIMES, pool);
    scan_and_copy(answer.data, answer.len, TIMES, table);
    PQclear(recorded);
}

int main(int argc, const char *const *argv)
{
    apr_pool_t *pool;
    crm_error_t *error;

    apr_initialize();
    atexit(apr_terminate);
    apr_pool_create(&pool, NULL);
    for (size_t i = 0; i < CRM_NELTS(samples); i++) {
        if (argc == 2 && !strcmp(argv[1], samples[i].name)) {
            sample = &samples[i];
        }
    }
    if (!sample) {
        fputs("usage: count_instructions SAMPLE\n", stderr);
        return EXIT_FAILURE;
    }
    error = crm_api_init(&crm_domain, pool);
    if (!error) {
        error = crm_mcp_init(pool);
    }
    if (error) {
        fprintf(stderr, "%s\n", error->log);
        return EXIT_FAILURE;
    }
    measure(pool);
    return EXIT_SUCCESS;
}
