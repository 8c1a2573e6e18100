/* SPDX-License-Identifier: Apache-2.0 */
/* crm_envelope.h: errors as JSON (contract 5.5, 5.6) */
#ifndef CRM_ENVELOPE_H
#define CRM_ENVELOPE_H

#include "crm_buf.h"
#include "crm_error.h"

/* Write the JSON envelope of ERROR to BODY. */
void crm_envelope_error(crm_buf_t *body, const crm_error_t *error);

/* Write {index, message, details} to BODY: the item INDEX was refused because
 * of DETAILS (of crm_detail_t; contract 10.2). */
void crm_envelope_item(crm_buf_t *body, int index,
                       const apr_array_header_t *details);

#endif /* CRM_ENVELOPE_H */
