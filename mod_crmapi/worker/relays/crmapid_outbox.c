/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_outbox.c: forgetting messages in the folder of the relay maildir */
#include "crmapid_outbox.h"

#include <string.h>
#include <unistd.h>

#include "apr_strings.h"
#include "apr_tables.h"

#include "crm_file.h"
#include "crm_sql.h"
#include "crm_uuid.h"

/* Files that are asked for at once. */
#define BATCH 1000

static const char *const folders[] = {"/new", "/cur", "/tmp"};

/* The folder that is being looked at. */
typedef struct outbox_t {
    const char *folder;
    crm_conn_t *conn;
    apr_array_header_t *ids;    /* of const char *: of files, in their order */
    apr_array_header_t *names;  /* of const char *: these files */
    apr_int64_t *count;
    apr_pool_t *pool;
} outbox_t;

/* Delete those of OUTBOX's files that the database knows. */
static crm_error_t *forget(outbox_t *outbox)
{
    const char *ids = crm_sql_array(outbox->ids, outbox->pool);
    crm_stmt_t stmt = {"SELECT crmapi.erased_sent($1::uuid[])", 1, &ids};
    PGresult *result;

    if (!outbox->ids->nelts) {
        return NULL;
    }
    CRM_ERR(crm_db_query(&result, outbox->conn, &stmt, outbox->pool));
    for (int i = 0; i < PQntuples(result); i++) {
        for (int k = 0; k < outbox->ids->nelts; k++) {
            if (strcmp(APR_ARRAY_IDX(outbox->ids, k, const char *),
                       PQgetvalue(result, i, 0))) {
                continue;
            }
            *outbox->count += !unlink(apr_pstrcat(
                outbox->pool, outbox->folder, "/",
                APR_ARRAY_IDX(outbox->names, k, const char *), NULL));
        }
    }
    outbox->ids->nelts = outbox->names->nelts = 0;
    return NULL;
}

/* Look at the files of OUTBOX's folder. The name of one begins with the id of its
 * message. */
static crm_error_t *look(outbox_t *outbox)
{
    apr_array_header_t *names;
    apr_status_t status = crm_file_names(&names, outbox->folder, outbox->pool);

    if (status && !APR_STATUS_IS_ENOENT(status)) {
        return crm_error_createf(CRM_E_INTERNAL, outbox->pool, "%s: %pm",
                                 outbox->folder, &status);
    }
    for (int i = 0; i < names->nelts; i++) {
        const char *name = APR_ARRAY_IDX(names, i, const char *);
        char id[CRM_UUID_LEN + 1];

        if (strlen(name) > CRM_UUID_LEN
            && crm_uuid_parse(id, name, CRM_UUID_LEN)) {
            APR_ARRAY_PUSH(outbox->ids, const char *) =
                apr_pstrdup(outbox->pool, id);
            APR_ARRAY_PUSH(outbox->names, const char *) = name;
        }
        if (outbox->ids->nelts == BATCH) {
            CRM_ERR(forget(outbox));
        }
    }
    return forget(outbox);
}

crm_error_t *crmd_outbox_forget(apr_int64_t *count_p, const char *root,
                                crm_conn_t *conn, apr_pool_t *scratch_pool)
{
    outbox_t outbox = {.conn = conn, .count = count_p, .pool = scratch_pool};

    *count_p = 0;
    for (int i = 0; i < 3; i++) {
        outbox.folder = apr_pstrcat(scratch_pool, root, folders[i], NULL);
        outbox.ids = apr_array_make(scratch_pool, 64, sizeof(const char *));
        outbox.names = apr_array_make(scratch_pool, 64, sizeof(const char *));
        CRM_ERR(look(&outbox));
    }
    return NULL;
}
