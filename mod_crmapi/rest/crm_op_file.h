/* SPDX-License-Identifier: Apache-2.0 */
/* crm_op_file.h: an operation that responds with the bytes of a file */
#ifndef CRM_OP_FILE_H
#define CRM_OP_FILE_H

#include <libpq-fe.h>

#include "crm_call.h"
#include "crm_resource.h"

/* A crm_handler_t: serve a file in pieces (crm_operation_t.file) of the row that the
 * path names: 404 if there is none. The response has the first piece, the others are
 * read while it is sent (crm_stream_t), each by a statement of its own: so the size of
 * a file costs no memory, and a slow client holds no connection. A Range gets its part
 * (206) or 416. It is shown by no browser in the site's name: Content-Disposition says
 * that it is to be stored, Content-Security-Policy that it may do nothing. */
crm_error_t *crm_op_file(crm_call_t *call);

/* Fill CALL's response with a file of the workspace WORKSPACE_ID, in the same
 * way. Row 0 of RESULT is the file: name, media type, size, id, first piece
 * (bytea, NULL: none). SQL reads a further one: $1 is the workspace, $2 the id,
 * $3 its number. Both texts must live as long as CALL's pool. Errors: CRM_E_RANGE. */
crm_error_t *crm_op_file_respond(crm_call_t *call, const char *workspace_id,
                                 const char *sql, const PGresult *result);

#endif /* CRM_OP_FILE_H */
