/* SPDX-License-Identifier: Apache-2.0 */
/* crmapictl_attachment.c: attachments of messages */
#include "crmapictl_attachment.h"

#include <string.h>

#include "crm_db.h"
#include "crm_uuid.h"
#include "crmapictl_options.h"
#include "crmapictl_output.h"
#include "crmapictl_workspace.h"

/* The workspaces with attachments of a message id. */
static const char owners[] = "SELECT DISTINCT t.workspace_id"
    " FROM crmapi.attachment t WHERE t.message_id = $1";

/* Return the error that there is no message, if there is none. VALUES: workspace
 * (NULL: none has attachments of it) and id. */
static crm_error_t *check_message(ctl_t *ctl, const char *const values[2])
{
    PGresult *result;

    if (!values[0]) {
        return ctl_fault(ctl, "no message %s has attachments", values[1]);
    }
    CRM_ERR(ctl_query(&result, ctl, "SELECT FROM crmapi.message WHERE"
                      " workspace_id = $1::uuid AND id = $2::uuid", 2, values));
    return PQntuples(result) ? NULL
           : ctl_fault(ctl, "there is no message %s in the workspace",
                       values[1]);
}

crm_error_t *ctl_attachment_list(ctl_t *ctl)
{
    static const ctl_column_t columns[] = {
        {"number", 'n'}, {"id", 's'}, {"filename", 's'}, {"content_type", 's'},
        {"size", 'n'},
        {"stored", 's'}, {NULL, 0}
    };
    char id[CRM_UUID_LEN + 1];
    const char *values[2] = {NULL, id};
    PGresult *result;

    CRM_ERR(ctl_uuid(id, ctl, "MESSAGE_ID", ctl->args[0]));
    CRM_ERR(ctl_owner(&values[0], ctl, owners, id));
    CRM_ERR(ctl_query(&result, ctl, "SELECT number, id, filename, content_type,"
                      " size, CASE WHEN stored THEN 'yes' ELSE 'no' END"
                      " FROM crmapi.attachment WHERE workspace_id = $1::uuid"
                      " AND message_id = $2::uuid ORDER BY number", 2,
                      values));
    if (!PQntuples(result)) {
        CRM_ERR(check_message(ctl, values));
    }
    ctl_print(ctl, result, columns, 0);
    return NULL;
}

/* A crm_db_row_t: decode a row's only column, and write the bytes to stdout. */
static crm_error_t *write_piece(void *baton, const PGresult *result)
{
    const char *hex = PQgetvalue(result, 0, 0);
    unsigned byte;

    (void)baton;
    for (; sscanf(hex, "%2x", &byte) == 1; hex += 2) {
        putchar((int)byte);
    }
    return NULL;
}

crm_error_t *ctl_attachment_get(ctl_t *ctl)
{
    const char *given = ctl->args[0], *slash = strchr(given, '/');
    const char *number = slash ? slash + 1 : "";
    char id[CRM_UUID_LEN + 1];
    const char *values[3] = {NULL, id, number};
    crm_stmt_t pieces = {
        "SELECT encode(bytes, 'hex') FROM crmapi.attachment_piece"
        " WHERE workspace_id = $1::uuid AND attachment_id = $2::uuid"
        " ORDER BY number", 2, values
    };
    PGresult *result;

    if (!slash || !crm_uuid_parse(id, given, (apr_size_t)(slash - given))
        || !*number || strlen(number) > 9
        || number[strspn(number, "0123456789")]) {
        return ctl_misuse(ctl, "MESSAGE_ID/NUMBER must be a message's id and, "
                          "behind a slash, a number, as attachment list shows "
                          "it");
    }
    CRM_ERR(ctl_owner(&values[0], ctl, owners, id));
    CRM_ERR(ctl_query(&result, ctl, "SELECT stored, id"
                      " FROM crmapi.attachment WHERE workspace_id = $1::uuid"
                      " AND message_id = $2::uuid AND number = $3::integer",
                      3, values));
    if (!PQntuples(result)) {
        return ctl_fault(ctl, "there is no attachment %s", given);
    }
    if (*PQgetvalue(result, 0, 0) == 'f') {
        return ctl_fault(ctl, "it was too large to be stored");
    }
    values[1] = PQgetvalue(result, 0, 1);
    return crm_db_each(ctl->conn, &pieces, write_piece, NULL, ctl->pool);
}
