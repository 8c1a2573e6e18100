/* SPDX-License-Identifier: Apache-2.0 */
/* intake_form_check.h: checking all answers to a form */
#ifndef CRM_INTAKE_FORM_CHECK_H
#define CRM_INTAKE_FORM_CHECK_H

#include "crm_error.h"
#include "crm_webform.h"

/* The answers to a form, in the order in which they were sent. */
typedef struct crm_webform_taken_t {
    const char *email;          /* of the contact; NULL: not given */
    const char *phone;
    const char *name;
    const char *contact;        /* JSON object: other texts of the contact */
    const char *responses;      /* JSON object: all other answers */
    const char *content;        /* "Label: answer" lines */
} crm_webform_taken_t;

/* Set *TAKEN from ANSWERS (of crm_query_param_t, valid UTF-8; names may repeat)
 * to FORM. STRICT: unknown names are refused; otherwise they are ignored, since
 * buttons have names too. The results are in RESULT_POOL. Errors:
 * CRM_E_VALIDATION, with a detail for each invalid field; the form is empty;
 * the answers are longer than 64 KiB. */
crm_error_t *crm_webform_check(crm_webform_taken_t *taken,
                               const crm_webform_t *form,
                               const apr_array_header_t *answers, int strict,
                               apr_pool_t *result_pool);

#endif /* CRM_INTAKE_FORM_CHECK_H */
