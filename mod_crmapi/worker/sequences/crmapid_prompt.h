/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_prompt.h: the request to a language model */
#ifndef CRMAPID_PROMPT_H
#define CRMAPID_PROMPT_H

#include "crmapid_generate.h"

/* Return the body of a chat completion request for SUBJECT, as JSON text in
 * POOL. LIMIT is the member that limits the tokens of the answer. */
const char *crmd_prompt(const crm_subject_t *subject,
                        const crmd_config_t *config, const char *limit,
                        apr_pool_t *pool);

#endif /* CRMAPID_PROMPT_H */
