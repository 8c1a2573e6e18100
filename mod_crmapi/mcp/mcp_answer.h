/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_answer.h: a request of a client, and answers to it as JSON-RPC */
#ifndef MCP_ANSWER_H
#define MCP_ANSWER_H

#include "crm_serve.h"

#include "crm_mcp.h"
#include "mcp_message.h"

/* The state of a call to the mount. */
typedef struct mcp_t {
    mcp_message_t message;
    const char *version, *method, *name;        /* of its headers */
    int code;                   /* of what is wrong with it, or 0 */
    const char *problem;        /* what is wrong */
    crm_error_t *failed;        /* its body could not be read, or NULL */
    int modern;                 /* it is of revision 2026-07-28, not of one with
                                   "initialize" */
} mcp_t;

/* Return the state of CALL, NULL if it has none yet. While an operation of the
 * API runs, CALL's state is that of the operation. */
static inline mcp_t *mcp_of(const crm_call_t *call)
{
    return call->state;
}

/* Return the configuration of CALL's vhost. */
static inline const crm_mcp_site_t *mcp_site(const crm_call_t *call)
{
    return call->service->mcp;
}

/* Begin the result of the request MCP in OUT. The caller adds at least one
 * member, and mcp_end_result(). */
void mcp_begin_result(crm_buf_t *out, const mcp_t *mcp);
void mcp_end_result(crm_buf_t *out);

/* Add to a result how long, in seconds, its client may keep it for this key (MCP
 * 2026-07-28, server/utilities/caching), and a comma. Earlier revisions have no
 * such members. */
void mcp_add_lifetime(crm_buf_t *out, const mcp_t *mcp, int seconds);

/* Make a JSON-RPC error the response of CALL: HTTP's STATUS, the error's CODE and
 * MESSAGE, and DATA, JSON or NULL. */
void mcp_answer_error(crm_call_t *call, int status, int code,
                      const char *message, const char *data);

/* A crm_mount_t.show_error: ERROR is of HTTP, such as a 401. */
void mcp_show_error(crm_call_t *call, const crm_error_t *error);

#endif /* MCP_ANSWER_H */
