/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_prompt.h: the request to a language model */
#ifndef CRMAPID_PROMPT_H
#define CRMAPID_PROMPT_H

#include "crmapid_generate.h"

/* What a service understands. */
typedef struct crmd_dialect_t {
    int newer_limit;    /* max_completion_tokens instead of max_tokens */
    int no_schema;      /* JSON, but no JSON Schema */
} crmd_dialect_t;

/* Return the body of a chat completion request for SUBJECT in DIALECT, as JSON text
 * in POOL. */
const char *crmd_prompt(const crm_subject_t *subject,
                        const crmd_config_t *config,
                        const crmd_dialect_t *dialect, apr_pool_t *pool);

#endif /* CRMAPID_PROMPT_H */
