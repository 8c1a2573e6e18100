/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_tidy.h: steps as language models write them */
#ifndef CRMAPID_TIDY_H
#define CRMAPID_TIDY_H

#include <json-c/json.h>

#include "apr_pools.h"
#include "apr_tables.h"

#include "crm_steps.h"

/* Change LIST (may be NULL or no array), the steps that a model has written, where it
 * is plain what is meant: empty texts are left out, a delay of "2 days" is "2d", and
 * a text without a line break has those that it spells: "\n". */
void crmd_tidy_steps(json_object *list, apr_pool_t *scratch_pool);

/* Return NULL, or what is wrong with STEPS, an array of crm_step_t for SUBJECT, in
 * POOL: a text has a place that is still to be filled in, such as [Your Name], or a
 * link to a host that neither the plan nor the agent nor the company has. The contact
 * may be what a stranger wrote, and a model follows it. */
const char *crmd_tidy_fault(const apr_array_header_t *steps,
                            const crm_subject_t *subject, apr_pool_t *pool);

#endif /* CRMAPID_TIDY_H */
