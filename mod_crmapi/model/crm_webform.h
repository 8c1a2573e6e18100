/* SPDX-License-Identifier: Apache-2.0 */
/* crm_webform.h: the configuration of a web form */
#ifndef CRM_WEBFORM_H
#define CRM_WEBFORM_H

#include "apr_tables.h"

#include <json-c/json.h>

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

/* A type by its name in the configuration. */
typedef struct crm_webform_kind_t {
    const char *name;
    crm_webform_type_t type;
    apr_size_t max;             /* characters of an answer */
} crm_webform_kind_t;

/* An option of a select. */
typedef struct crm_webform_option_t {
    const char *value;
    const char *label;
} crm_webform_option_t;

/* A field of a form. */
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

/* A form: its fields and settings. */
typedef struct crm_webform_t {
    const char *id;
    const char *workspace_id;
    const char *bot_id;
    apr_array_header_t *fields; /* of crm_webform_field_t, names are unique */
    const char *redirect_url;   /* absolute, http or https; or NULL */
    const char *thank_you;      /* or NULL */
    const char *honeypot;       /* name of a field that people do not see */
    const char *lead_source;    /* for contacts without one; or NULL */
    const apr_array_header_t *origins;  /* of const char *: origins whose pages
                                           may send it; NULL: all */
} crm_webform_t;

/* Set the fields and settings of FORM from its three configuration objects
 * (NULL: {}). Unknown members are ignored. Everything is in RESULT_POOL. */
void crm_webform_configure(crm_webform_t *form, json_object *standard,
                           json_object *custom, json_object *survey,
                           apr_pool_t *result_pool);

/* Return the type NAME, NULL if there is none. */
const crm_webform_kind_t *crm_webform_kind(const char *name);

/* Return the type of the field NAME of the contact, NULL if forms have none of
 * that name. */
const crm_webform_kind_t *crm_webform_standard(const char *name);

/* Return the name of the contact's field that NAME is nearly (crm_near.h), or
 * NULL. */
const char *crm_webform_near(const char *name);

/* Return the member NAME of CONFIG, a field, if it is a length up to MAX, otherwise
 * DEFAULT_LENGTH; in characters. */
apr_size_t crm_webform_length(json_object *config, const char *name,
                              apr_size_t max, apr_size_t default_length);

/* Return the value of ONE, an option (any JSON, or NULL), as answers are: without
 * white space around it, in RESULT_POOL. NULL if it has none. */
const char *crm_webform_option_value(json_object *one,
                                     apr_pool_t *result_pool);

/* Return whether browsers may be redirected to URL. */
int crm_webform_url_ok(const char *url);

/* The member of standard_fields that has the form's settings. */
#define CRM_WEBFORM_SETTINGS "_form"

/* Return the field NAME of FORM, NULL if there is none. */
const crm_webform_field_t *crm_webform_field(const crm_webform_t *form,
                                             const char *name);

#endif /* CRM_WEBFORM_H */
