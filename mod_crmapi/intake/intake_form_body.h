/* SPDX-License-Identifier: Apache-2.0 */
/* intake_form_body.h: reading the body of a form as names and texts */
#ifndef CRM_INTAKE_FORM_BODY_H
#define CRM_INTAKE_FORM_BODY_H

#include "crm_serve.h"

/* Return whether the body of CALL is JSON. */
int crm_webform_is_json(const crm_call_t *call);

/* Return whether CALL gets a JSON response: its body is JSON, or it accepts JSON and no
 * page, as scripts do that send a form. */
int crm_webform_wants_json(const crm_call_t *call);

/* Set *ANSWERS_P (of crm_query_param_t), in RESULT_POOL, to the fields in BODY
 * (LEN bytes) with CONTENT_TYPE (may be NULL): a form, urlencoded or multipart,
 * or a JSON object. Errors: CRM_E_BAD_REQUEST, CRM_E_UNSUPPORTED_MEDIA_TYPE,
 * CRM_E_VALIDATION (a file; a JSON value that no field can have; too many
 * answers). */
crm_error_t *crm_webform_read(apr_array_header_t **answers_p,
                              const char *body, apr_size_t len,
                              const char *content_type,
                              apr_pool_t *result_pool);

#endif /* CRM_INTAKE_FORM_BODY_H */
