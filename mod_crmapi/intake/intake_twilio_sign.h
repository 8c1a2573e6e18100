/* SPDX-License-Identifier: Apache-2.0 */
/* intake_twilio_sign.h: signatures of Twilio's webhooks */
#ifndef CRM_INTAKE_TWILIO_SIGN_H
#define CRM_INTAKE_TWILIO_SIGN_H

#include "apr_tables.h"

/* The size of a signature as text, 20 bytes in base64, with its NUL. */
#define CRM_TWILIO_SIGNATURE_SIZE 29

/* Write to OUT the signature with the key TOKEN of a request to URL with PARAMS
 * (of crm_query_param_t), the decoded fields of its form. By Twilio's
 * "Validating Signatures from Twilio" it is base64(HMAC-SHA1(TOKEN, URL and all
 * names and values, sorted by name, then value, without duplicates)). */
void crm_twilio_sign(char out[CRM_TWILIO_SIGNATURE_SIZE], const char *token,
                     const char *url, const apr_array_header_t *params,
                     apr_pool_t *scratch_pool);

/* Return, in POOL, the absolute URL with the default port of its scheme added,
 * or without its port if it has one; NULL if URL is malformed. */
const char *crm_twilio_other_url(const char *url, apr_pool_t *pool);

/* Return whether SIGNATURE (may be NULL) is the signature with the key TOKEN of
 * a request to URL with PARAMS. URL is tried with and without a port, as
 * Twilio's own libraries do. The comparison takes constant time. */
int crm_twilio_signed(const char *signature, const char *token,
                      const char *url, const apr_array_header_t *params,
                      apr_pool_t *scratch_pool);

#endif /* CRM_INTAKE_TWILIO_SIGN_H */
