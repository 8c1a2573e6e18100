/* SPDX-License-Identifier: Apache-2.0 */
/* crm_form.h: reading what an HTML form has sent */
#ifndef CRM_FORM_H
#define CRM_FORM_H

#include "apr_pools.h"
#include "apr_tables.h"

#include "crm_error.h"

/* Set *FIELDS_P to the fields of the form in the LEN bytes at BODY, an array
 * of crm_query_param_t in RESULT_POOL, by CONTENT_TYPE (may be NULL):
 * application/x-www-form-urlencoded or multipart/form-data (RFC 7578). Texts
 * are valid UTF-8 without U+0000; a name may come more than once; a file that
 * was not chosen is left out. Errors: CRM_E_UNSUPPORTED_MEDIA_TYPE;
 * CRM_E_BAD_REQUEST, also for more than MAX fields; CRM_E_VALIDATION for a
 * file. */
crm_error_t *crm_form_parse(apr_array_header_t **fields_p, const char *body,
                            apr_size_t len, const char *content_type, int max,
                            apr_pool_t *result_pool);

/* Fail with CRM_E_BAD_REQUEST, in POOL, if a name comes more than once in
 * FIELDS. */
crm_error_t *crm_form_once(const apr_array_header_t *fields, apr_pool_t *pool);

/* Add the field NAME with VALUE (LEN bytes; both kept) to FIELDS. */
void crm_form_add(apr_array_header_t *fields, const char *name,
                  const char *value, apr_size_t len);

/* Return whether CONTENT_TYPE (may be NULL) is the media type NAME. */
int crm_form_is_type(const char *content_type, const char *name);

/* Return the value of the field NAME in FIELDS, NULL if it was not sent. */
const char *crm_form_get(const apr_array_header_t *fields, const char *name);

/* Return TEXT with the line ends that forms send (CR LF) and lonely CRs made
 * LF, in RESULT_POOL. */
const char *crm_form_lines(const char *text, apr_pool_t *result_pool);

#endif /* CRM_FORM_H */
