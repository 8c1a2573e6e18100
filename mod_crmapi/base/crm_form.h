/* SPDX-License-Identifier: Apache-2.0 */
/* crm_form.h: parsing the body of an HTML form */
#ifndef CRM_FORM_H
#define CRM_FORM_H

#include "apr_pools.h"
#include "apr_tables.h"

#include "crm_error.h"

/* The maximum number of fields in a form. */
#define CRM_FORM_FIELDS 1000

/* Parse the form in the LEN bytes at BODY and set *FIELDS_P to its fields, an
 * array of crm_query_param_t in RESULT_POOL. CONTENT_TYPE (NULL: none) is
 * application/x-www-form-urlencoded or multipart/form-data (RFC 7578) without
 * files. Refused: duplicate names, invalid UTF-8, U+0000, more than
 * CRM_FORM_FIELDS fields. Errors: CRM_E_UNSUPPORTED_MEDIA_TYPE,
 * CRM_E_BAD_REQUEST. */
crm_error_t *crm_form_parse(apr_array_header_t **fields_p, const char *body,
                            apr_size_t len, const char *content_type,
                            apr_pool_t *result_pool);

/* Return the value of the field NAME in FIELDS, or NULL. */
const char *crm_form_get(const apr_array_header_t *fields, const char *name);

/* Return TEXT in RESULT_POOL with every CR LF (forms send these) and every
 * single CR replaced by LF. */
const char *crm_form_lines(const char *text, apr_pool_t *result_pool);

#endif /* CRM_FORM_H */
