/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_merge.h: merge fields: {{first_name|there}} */
#ifndef CRMAPID_MERGE_H
#define CRMAPID_MERGE_H

#include "crmapid.h"

/* Set *OUT_P to TEXT with the values of SUBJECT in place of its merge fields,
 * in POOL. A value is put in as it is, never read again. ONE_LINE: ends of
 * lines in values become spaces. At most MAX characters, and not blank. Return
 * NULL or what is wrong, naming the field (docs/sequences.md, Merge fields).
 * OUT_P NULL: only the text is checked; what is empty or long in this SUBJECT
 * does not matter. */
const char *crmd_merge(const char **out_p, const char *text,
                       const crmd_subject_t *subject, int one_line, int max,
                       apr_pool_t *pool);

#endif /* CRMAPID_MERGE_H */
