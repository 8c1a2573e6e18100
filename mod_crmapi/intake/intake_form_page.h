/* SPDX-License-Identifier: Apache-2.0 */
/* intake_form_page.h: responses to a form, as pages and as JSON */
#ifndef CRM_INTAKE_FORM_PAGE_H
#define CRM_INTAKE_FORM_PAGE_H

#include "crm_serve.h"
#include "crm_webform.h"

/* Tell CALL's client that its answers to FORM were stored as the submission ID.
 * INTERNAL: see docs/forms.md. */
void crm_webform_thank(crm_call_t *call, const crm_webform_t *form,
                       const char *id, int internal);

/* Make ERROR the response to CALL. Fields have the labels of FORM (may be
 * NULL). */
void crm_webform_show_error(crm_call_t *call, const crm_webform_t *form,
                            const crm_error_t *error);

#endif /* CRM_INTAKE_FORM_PAGE_H */
