/* SPDX-License-Identifier: Apache-2.0 */
/* crm_webform.h: declarations shared by the files of web forms */
#ifndef CRM_WEBFORM_H
#define CRM_WEBFORM_H

#include "crm_intake_site.h"

/* ---- intake_form_config.c: the configuration of a form ------------------- */

/* The types of a field (docs/forms.md). */
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

/* An option of a select. */
typedef struct crm_webform_option_t {
    const char *value;
    const char *label;
} crm_webform_option_t;

typedef struct crm_webform_field_t {
    const char *name;
    const char *label;
    crm_webform_type_t type;
    int standard;               /* it is stored in the contact, not as an answer
                                   of the submission */
    int required;
    apr_size_t min_length;      /* in characters */
    apr_size_t max_length;
    const char *min;            /* limits of numbers and dates, as text; or
                                   NULL */
    const char *max;
    const apr_array_header_t *options;  /* of crm_webform_option_t */
} crm_webform_field_t;

typedef struct crm_webform_t {
    const char *id;
    const char *workspace_id;
    const char *bot_id;
    apr_array_header_t *fields; /* of crm_webform_field_t, names are unique */
    const char *redirect_url;   /* absolute, http or https; or NULL */
    const char *thank_you;      /* or NULL */
    const char *honeypot;       /* name of a field that is hidden from people */
    const char *lead_source;    /* for contacts without one; or NULL */
    const apr_array_header_t *origins;  /* of const char *: origins whose pages
                                           may send it; NULL: all */
} crm_webform_t;

/* Set the fields and settings of FORM from its three configuration objects
 * (NULL: {}). Unknown members are ignored. Everything is in RESULT_POOL. */
void crm_webform_configure(crm_webform_t *form, json_object *standard,
                           json_object *custom, json_object *survey,
                           apr_pool_t *result_pool);

/* Return the field NAME of FORM, NULL if there is none. */
const crm_webform_field_t *crm_webform_field(const crm_webform_t *form,
                                             const char *name);

/* ---- intake_form_rules.c: one answer ------------------------------------- */

/* Return the rule of FIELD that VALUE, trimmed and not empty, breaks, or NULL.
 * *CANONICAL_P = the value to store: numbers in plain decimal, "true", line
 * ends as LF. Strings are in POOL. */
const char *crm_webform_rule(const char **canonical_p,
                             const crm_webform_field_t *field,
                             const char *value, apr_pool_t *pool);

/* Return the option of FIELD whose value is VALUE, NULL if there is none. */
const crm_webform_option_t *crm_webform_option(
    const crm_webform_field_t *field, const char *value);

/* ---- intake_form_check.c: all answers ------------------------------------ */

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
 * buttons have names too. Errors: CRM_E_VALIDATION with a detail for each
 * invalid field. */
crm_error_t *crm_webform_check(crm_webform_taken_t *taken,
                               const crm_webform_t *form,
                               const apr_array_header_t *answers, int strict,
                               apr_pool_t *result_pool);

/* ---- intake_form_body.c: reading the body -------------------------------- */

/* Return whether CALL is from a JSON client and gets a JSON response. */
int crm_webform_is_json(const crm_call_t *call);

/* Set *ANSWERS_P (of crm_query_param_t), in RESULT_POOL, to the fields in BODY
 * (LEN bytes) with CONTENT_TYPE (may be NULL): a form, urlencoded or multipart,
 * or a JSON object. Errors: CRM_E_BAD_REQUEST, CRM_E_UNSUPPORTED_MEDIA_TYPE,
 * CRM_E_VALIDATION (a file, or JSON that is not a valid value of any field). */
crm_error_t *crm_webform_read(apr_array_header_t **answers_p,
                              const char *body, apr_size_t len,
                              const char *content_type,
                              apr_pool_t *result_pool);

/* ---- intake_form_page.c: responses --------------------------------------- */

/* Respond to CALL that FORM was stored as the submission ID. */
void crm_webform_thank(crm_call_t *call, const crm_webform_t *form,
                       const char *id, int internal);

/* Make ERROR the response to CALL. Fields have the labels of FORM (may be
 * NULL). */
void crm_webform_say(crm_call_t *call, const crm_webform_t *form,
                     const crm_error_t *error);

#endif /* CRM_WEBFORM_H */
