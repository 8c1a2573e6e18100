/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_run.h: running an operation of the API inside a call of a tool */
#ifndef MCP_RUN_H
#define MCP_RUN_H

#include "mcp_arguments.h"

/* Serve OPERATION as the API would, in place of CALL, which is admitted. The body
 * of CALL's response is what the API would send; its headers are those for
 * CALL's client. Errors: the API's. */
crm_error_t *mcp_run(crm_call_t *call, mcp_operation_t *operation);

/* Make the LEN bytes of JSON at DATA the result of CALL, a call of a tool: as
 * structured content and as text. */
void mcp_answer_data(crm_call_t *call, const char *data, apr_size_t len);

/* Make ERROR the result of CALL: the API's envelope, as text. */
crm_error_t *mcp_answer_failure(crm_call_t *call, crm_error_t *error);

#endif /* MCP_RUN_H */
