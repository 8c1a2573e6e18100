/* SPDX-License-Identifier: Apache-2.0 */
/* crm_webform.h: what the files of web forms share */
#ifndef CRM_WEBFORM_H
#define CRM_WEBFORM_H

#include "crm_intake_site.h"

/* ---- intake_form_config.c: what a form's configuration says -------------- */

/* What may be answered (docs/forms.md). */
typedef enum crm_webform_type_t {
    CRM_WEBFORM_TEXT,
    CRM_WEBFORM_TEXTAREA,
    CRM_WEBFORM_NUMBER,
    CRM_WEBFORM_INTEGER,
    CRM_WEBFORM_BOOLEAN,
    CRM_WEBFORM_DATE,
    CRM_WEBFORM_EMAIL,
    CRM_WEBFORM_URL,
    CRM_WEBFORM_PHONE,
    CRM_WEBFORM_SELECT,
    CRM_WEBFORM_MULTISELECT
} crm_webform_type_t;

/* One of a select's. */
typedef struct crm_webform_option_t {
    const char *value;
    const char *label;
} crm_webform_option_t;

typedef struct crm_webform_field_t {
    const char *name;
    const char *label;
    crm_webform_type_t type;
    int standard;               /* it is about the contact: no answer of its
                                   own in the submission */
    int required;
    apr_size_t min_length;      /* in characters */
    apr_size_t max_length;
    const char *min;            /* of numbers and dates, as text; or NULL */
    const char *max;
    const apr_array_header_t *options;  /* of crm_webform_option_t */
} crm_webform_field_t;

typedef struct crm_webform_t {
    const char *id;
    const char *workspace_id;
    const char *bot_id;
    apr_array_header_t *fields; /* of crm_webform_field_t, each name once */
    const char *redirect_url;   /* absolute, http or https; or NULL */
    const char *thank_you;      /* or NULL */
    const char *honeypot;       /* a field that people leave empty */
    const char *lead_source;    /* of contacts that have none; or NULL */
    const apr_array_header_t *origins;  /* of const char *: pages of these may
                                           send it; NULL: all */
} crm_webform_t;

/* Set the fields and settings of FORM from its three objects of configuration
 * (NULL: {}). What is not understood is ignored. RESULT_POOL owns all. */
void crm_webform_configure(crm_webform_t *form, json_object *standard,
                           json_object *custom, json_object *survey,
                           apr_pool_t *result_pool);

/* Return the field NAME of FORM, NULL if there is none. */
const crm_webform_field_t *crm_webform_field(const crm_webform_t *form,
                                             const char *name);

/* ---- intake_form_rules.c: one answer ------------------------------------- */

/* Return the rule of FIELD that VALUE, trimmed and not empty, breaks, or NULL;
 * *CANONICAL_P = how it is kept: a number in plain decimal, "true", line ends
 * as LF. Made in POOL. */
const char *crm_webform_rule(const char **canonical_p,
                             const crm_webform_field_t *field,
                             const char *value, apr_pool_t *pool);

/* Return the option of FIELD whose value is VALUE, NULL if there is none. */
const crm_webform_option_t *crm_webform_option(
    const crm_webform_field_t *field, const char *value);

/* ---- intake_form_check.c: all answers ------------------------------------ */

/* What was answered, in the order in which it was sent. */
typedef struct crm_webform_taken_t {
    const char *email;          /* of the contact; NULL: not said */
    const char *phone;
    const char *name;
    const char *contact;        /* JSON object of its other texts */
    const char *responses;      /* JSON object of all other answers */
    const char *content;        /* "Label: answer" lines */
} crm_webform_taken_t;

/* Set *TAKEN to what ANSWERS (of crm_query_param_t, valid UTF-8; a name may
 * come several times) say to FORM. STRICT: unknown names are refused; else they
 * are ignored, as buttons have names, too. Errors: CRM_E_VALIDATION with one
 * detail for each wrong field. */
crm_error_t *crm_webform_check(crm_webform_taken_t *taken,
                               const crm_webform_t *form,
                               const apr_array_header_t *answers, int strict,
                               apr_pool_t *result_pool);

/* ---- intake_form_body.c: what was sent ----------------------------------- */

/* Return whether CALL is by a program that speaks JSON, and is answered so. */
int crm_webform_is_json(const crm_call_t *call);

/* Set *ANSWERS_P (of crm_query_param_t) to what BODY (LEN bytes) with
 * CONTENT_TYPE (may be NULL) says, in RESULT_POOL: a form, urlencoded or
 * multipart, or a JSON object. Errors: CRM_E_BAD_REQUEST,
 * CRM_E_UNSUPPORTED_MEDIA_TYPE, CRM_E_VALIDATION (a file; JSON that no field
 * of a form can have). */
crm_error_t *crm_webform_read(apr_array_header_t **answers_p,
                              const char *body, apr_size_t len,
                              const char *content_type,
                              apr_pool_t *result_pool);

/* ---- intake_form_page.c: what is answered -------------------------------- */

/* Answer CALL that FORM was taken as the submission ID. */
void crm_webform_thank(crm_call_t *call, const crm_webform_t *form,
                       const char *id, int internal);

/* Make ERROR the answer to CALL, which calls fields as FORM (may be NULL)
 * does. */
void crm_webform_say(crm_call_t *call, const crm_webform_t *form,
                     const crm_error_t *error);

#endif /* CRM_WEBFORM_H */
