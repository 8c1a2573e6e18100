/* SPDX-License-Identifier: Apache-2.0 */
/* crm_form.h: reading what an HTML form has sent */
#ifndef CRM_FORM_H
#define CRM_FORM_H

#include "apr_pools.h"
#include "apr_tables.h"

#include "crm_error.h"

/* The most fields that a form may have. */
#define CRM_FORM_FIELDS 1000

/* Set *FIELDS_P to the fields of the form in the LEN bytes at BODY, an array
 * of crm_query_param_t in RESULT_POOL, by CONTENT_TYPE (may be NULL):
 * application/x-www-form-urlencoded or multipart/form-data (RFC 7578, texts
 * only). Strict: each name once, valid UTF-8 without U+0000, at most
 * CRM_FORM_FIELDS fields. Errors: CRM_E_UNSUPPORTED_MEDIA_TYPE,
 * CRM_E_BAD_REQUEST. */
crm_error_t *crm_form_parse(apr_array_header_t **fields_p, const char *body,
                            apr_size_t len, const char *content_type,
                            apr_pool_t *result_pool);

/* Return the value of the field NAME in FIELDS, NULL if it was not sent. */
const char *crm_form_get(const apr_array_header_t *fields, const char *name);

/* Return TEXT with the line ends that forms send (CR LF) and lonely CRs made
 * LF, in RESULT_POOL. */
const char *crm_form_lines(const char *text, apr_pool_t *result_pool);

#endif /* CRM_FORM_H */
