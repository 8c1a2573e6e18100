/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_prompt.h: prompts: tasks that a user may choose (contract 21.4) */
#ifndef MCP_PROMPT_H
#define MCP_PROMPT_H

#include "mcp_answer.h"

/* mcp_method_t.serve of prompts/list and prompts/get. */
crm_error_t *mcp_prompts_list(crm_call_t *call);
crm_error_t *mcp_prompts_get(crm_call_t *call);

#endif /* MCP_PROMPT_H */
