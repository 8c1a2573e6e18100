/* SPDX-License-Identifier: Apache-2.0 */
/* crm_json_check.h: the strict check of JSON texts (RFC 8259, contract 6.1) */
#ifndef CRM_JSON_CHECK_H
#define CRM_JSON_CHECK_H

#include "apr_pools.h"

/* The maximum nesting depth of arrays and objects (contract 6.1). */
#define CRM_JSON_DEPTH 32

/* Check that the LEN bytes at TEXT are exactly one JSON text (RFC 8259). Also
 * refused: a byte order mark, duplicate member names (compared after
 * unescaping), more than CRM_JSON_DEPTH levels, invalid UTF-8, a lone
 * surrogate, U+0000 in a name. json-c alone accepts most of these. One pass, no
 * recursion. Return NULL, or the rule that TEXT breaks; *OFFSET_P is then the
 * offset of the byte that breaks it. */
const char *crm_json_check(apr_size_t *offset_p, const char *text,
                           apr_size_t len, apr_pool_t *scratch_pool);

/* Return what a client is told whose request body breaks RULE at byte OFFSET, both
 * from crm_json_check(). RESULT_POOL has the text. */
const char *crm_json_problem(const char *rule, apr_size_t offset,
                             apr_pool_t *result_pool);

#endif /* CRM_JSON_CHECK_H */
