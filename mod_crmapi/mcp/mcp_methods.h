/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_methods.h: the methods of the protocol */
#ifndef MCP_METHODS_H
#define MCP_METHODS_H

#include "mcp_answer.h"

/* The revisions that are served, newest first, ended by NULL. The first is
 * modern: it has no "initialize", and each request says its version. */
extern const char *const mcp_versions[];

/* What of its params the header Mcp-Name repeats. */
typedef enum mcp_subject_t {
    MCP_OF_NOTHING, MCP_OF_NAME, MCP_OF_URI
} mcp_subject_t;

/* A method. */
typedef struct mcp_method_t {
    const char *name;           /* "tools/call" */
    int modern;                 /* it is one of 2026-07-28 */
    int earlier;                /* it is one of the revisions before */
    mcp_subject_t subject;
    /* Serve CALL, which is of this method. */
    crm_error_t *(*serve)(crm_call_t *call);
} mcp_method_t;

/* Return the method NAME, or NULL. */
const mcp_method_t *mcp_method_find(const char *name);

#endif /* MCP_METHODS_H */
