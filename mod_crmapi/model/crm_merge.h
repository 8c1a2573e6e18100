/* SPDX-License-Identifier: Apache-2.0 */
/* crm_merge.h: merge fields: {{first_name|there}} */
#ifndef CRM_MERGE_H
#define CRM_MERGE_H

#include "crm_steps.h"

/* Set *OUT_P to TEXT with its merge fields replaced by values of SUBJECT, in
 * POOL (docs/sequences.md, Merge fields). Values are not searched for fields,
 * and each is one line; those of contacts and companies are no links
 * (crm_value.h). ONE_LINE: line breaks in fallbacks become spaces. The result must have
 * at most MAX characters and not be blank. Return NULL, or the field and the rule that
 * it breaks. OUT_P NULL: check TEXT as it is: the syntax of its fields, and the length
 * of what is around them; values of SUBJECT do not matter. */
const char *crm_merge(const char **out_p, const char *text,
                      const crm_subject_t *subject, int one_line, int max,
                      apr_pool_t *pool);

#endif /* CRM_MERGE_H */
