/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_merge.h: merge fields: {{first_name|there}} */
#ifndef CRMAPID_MERGE_H
#define CRMAPID_MERGE_H

#include "crmapid_generate.h"

/* Set *OUT_P to TEXT with its merge fields replaced by values of SUBJECT, in
 * POOL (docs/sequences.md, Merge fields). Values are not searched for fields,
 * and each is one line; those of contacts and companies are no links
 * (crm_value.h). ONE_LINE: line breaks in fallbacks become spaces. The result must have at most
 * MAX characters and not be blank. Return NULL, or the field and the rule that
 * it breaks. OUT_P NULL: check the syntax of TEXT only; values of SUBJECT do
 * not matter. */
const char *crmd_merge(const char **out_p, const char *text,
                       const crmd_subject_t *subject, int one_line, int max,
                       apr_pool_t *pool);

#endif /* CRMAPID_MERGE_H */
