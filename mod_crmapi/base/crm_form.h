/* SPDX-License-Identifier: Apache-2.0 */
/* crm_form.h: parsing the body of an HTML form */
#ifndef CRM_FORM_H
#define CRM_FORM_H

#include "apr_pools.h"
#include "apr_tables.h"

#include "crm_error.h"

/* Set *FIELDS_P to the fields of a form, an array of crm_query_param_t in
 * RESULT_POOL. The LEN bytes at BODY have the media type CONTENT_TYPE (may be
 * NULL): application/x-www-form-urlencoded or multipart/form-data (RFC 7578).
 * Names and values are valid UTF-8 without U+0000, and names may repeat. A file
 * field in which no file was chosen is left out. Errors:
 * CRM_E_UNSUPPORTED_MEDIA_TYPE; CRM_E_BAD_REQUEST if the body is malformed or
 * has more than MAX fields; CRM_E_VALIDATION for a file. */
crm_error_t *crm_form_parse(apr_array_header_t **fields_p, const char *body,
                            apr_size_t len, const char *content_type, int max,
                            apr_pool_t *result_pool);

/* The same for the LEN bytes at BODY of application/x-www-form-urlencoded, whose
 * values may have U+0000 (crm_query_param_t.value_len). */
crm_error_t *crm_form_pairs(apr_array_header_t **fields_p, const char *body,
                            apr_size_t len, int max, apr_pool_t *result_pool);

/* Return CRM_E_BAD_REQUEST, in POOL, if a name occurs more than once in FIELDS,
 * NULL otherwise. */
crm_error_t *crm_form_once(const apr_array_header_t *fields, apr_pool_t *pool);

/* Add the field NAME with VALUE, of LEN bytes, to FIELDS. Neither is copied. */
void crm_form_add(apr_array_header_t *fields, const char *name,
                  const char *value, apr_size_t len);

/* Return the first value of the field NAME in FIELDS, NULL if it was not
 * sent. */
const char *crm_form_get(const apr_array_header_t *fields, const char *name);

/* Return TEXT, in RESULT_POOL, with LF for each line end: forms send CR LF, and
 * CR alone is replaced as well. */
const char *crm_form_lines(const char *text, apr_pool_t *result_pool);

#endif /* CRM_FORM_H */
